//! What a stranger sends to the NBD server, byte for byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nvlab_serve::nbd::wire::{self, Request};

fuzz_target!(|bytes: &[u8]| {
    if let Some((name, wanted)) = wire::info_request(bytes) {
        let mut again = (name.len() as u32).to_be_bytes().to_vec();
        again.extend(name);
        again.extend((wanted.len() as u16).to_be_bytes());
        wanted.iter().for_each(|kind| again.extend(kind.to_be_bytes()));
        assert_eq!(again, bytes);
    }
    if let Some((name, queries)) = wire::context_request(bytes) {
        let mut again = (name.len() as u32).to_be_bytes().to_vec();
        again.extend(name);
        again.extend((queries.len() as u32).to_be_bytes());
        for query in queries {
            again.extend((query.len() as u32).to_be_bytes());
            again.extend(query);
        }
        assert_eq!(again, bytes);
    }
    if let Some(head) = bytes.first_chunk::<{ wire::OPTION_BYTES }>()
        && let Some((number, length)) = wire::option_head(head)
    {
        assert_eq!(head[8..], [number.to_be_bytes(), length.to_be_bytes()].concat());
    }
    if let Some(head) = bytes.first_chunk::<{ wire::REQUEST_BYTES }>()
        && let Some(request) = Request::parse(head)
    {
        assert_eq!(request.encode(), *head);
    }
});
