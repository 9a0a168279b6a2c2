//! The protocol's numbers and formats: pure functions on bytes, all big-endian.

/// `NBDMAGIC`, the first 8 bytes that a server sends.
pub const MAGIC: u64 = 0x4e42_444d_4147_4943; // "NBDMAGIC"
/// `IHAVEOPT`, the second 8 bytes of a server and the head of every option.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054; // "IHAVEOPT"
/// Head of every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Precedes every request.
pub(crate) const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Head of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Precedes a chunk of a structured reply.
pub const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Flags of the greeting and of the client's answer.
pub const FIXED_NEWSTYLE: u16 = 1;
/// The zeros after an export's description can be left out.
pub const NO_ZEROES: u16 = 2;

/// Bytes of an option's head, of a request, of a simple reply, of a chunk's head.
pub const OPTION_BYTES: usize = 16;
/// Length of a request, without its data.
pub const REQUEST_BYTES: usize = 28;
/// Length of a simple reply, without its data.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// See [`OPTION_BYTES`].
pub(crate) const CHUNK_BYTES: usize = 20;

/// The most data of one request: larger ones are refused.
pub const PAYLOAD_MAX: u32 = 32 << 20;
/// Bytes of a name, as the protocol has it.
pub(crate) const NAME_MAX: usize = 4096;

/// Options: `NBD_OPT_*`.
pub mod option {
    /// Chooses an export, without a way to refuse.
    pub const EXPORT_NAME: u32 = 1;
    /// Ends the negotiation and the connection.
    pub const ABORT: u32 = 2;
    /// Asks for the names of the exports.
    pub const LIST: u32 = 3;
    /// From its answer on everything is encrypted.
    pub const STARTTLS: u32 = 5;
    /// Asks for size, flags and limits of an export without choosing it.
    pub const INFO: u32 = 6;
    /// Chooses an export and ends the negotiation.
    pub const GO: u32 = 7;
    /// Replies to reads come in chunks from now on.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Asks which contexts BLOCK_STATUS can report.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Chooses the contexts that BLOCK_STATUS will report.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options: `NBD_REP_*`.
pub mod reply {
    /// The option is done; no more replies to it.
    pub const ACK: u32 = 1;
    /// The name of one export, in answer to LIST.
    pub const SERVER: u32 = 2;
    /// One item of information, of a type in [`info`](super::info).
    pub const INFO: u32 = 3;
    /// The number and name of one context.
    pub const META_CONTEXT: u32 = 4;
    /// This bit is set in every reply that refuses.
    pub const IS_ERROR: u32 = 1 << 31;
    /// The option is not known or not supported.
    pub const ERR_UNSUP: u32 = 0x8000_0001;
    /// The option is malformed or comes at the wrong time.
    pub const ERR_INVALID: u32 = 0x8000_0003;
    /// The server wants STARTTLS first.
    pub const ERR_TLS_REQD: u32 = 0x8000_0005;
    /// No export has this name.
    pub const ERR_UNKNOWN: u32 = 0x8000_0006;
    /// The option is longer than the server reads.
    pub const ERR_TOO_BIG: u32 = 0x8000_0009;
}

/// Types of information in [`reply::INFO`]: `NBD_INFO_*`.
pub mod info {
    /// Size in bytes (64 bits) and flags (16 bits) of the export.
    pub const EXPORT: u16 = 0;
    /// The name of the export, in UTF-8.
    pub const NAME: u16 = 1;
    /// A description for people, in UTF-8.
    pub const DESCRIPTION: u16 = 2;
    /// Least, best and greatest number of bytes of a request.
    pub const BLOCK_SIZE: u16 = 3;
}

/// What an export can do: transmission flags, `NBD_FLAG_*`.
pub mod can {
    /// Always set: the other flags are valid.
    pub const HAS_FLAGS: u16 = 1;
    /// FLUSH may be sent.
    pub const FLUSH: u16 = 1 << 2;
    /// Requests may have the flag FUA: force unit access.
    pub const FUA: u16 = 1 << 3;
    /// TRIM may be sent.
    pub const TRIM: u16 = 1 << 5;
    /// WRITE_ZEROES may be sent.
    pub const WRITE_ZEROES: u16 = 1 << 6;
    /// Reads may have the flag DF (do not fragment); only with structured replies.
    pub const DF: u16 = 1 << 7;
    /// A flush on one connection covers writes on all.
    pub const MULTI_CONN: u16 = 1 << 8;
    /// CACHE may be sent.
    pub const CACHE: u16 = 1 << 10;
    /// WRITE_ZEROES may have the flag FAST_ZERO.
    pub const FAST_ZERO: u16 = 1 << 11;
}

/// Commands: `NBD_CMD_*`.
pub mod command {
    /// Reads a range; the reply carries the data.
    pub const READ: u16 = 0;
    /// Writes a range; the data follow the request.
    pub const WRITE: u16 = 1;
    /// Ends the connection without a reply, once earlier requests are answered.
    pub const DISCONNECT: u16 = 2;
    /// Makes every write that was answered durable.
    pub const FLUSH: u16 = 3;
    /// Discards a range: it may read as anything afterwards.
    pub const TRIM: u16 = 4;
    /// Announces that a range will be read.
    pub const CACHE: u16 = 5;
    /// Writes zeros without sending them.
    pub const WRITE_ZEROES: u16 = 6;
    /// Asks which parts of a range are allocated.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of commands: `NBD_CMD_FLAG_*`.
pub mod flag {
    /// The write is durable before it is answered.
    pub const FUA: u16 = 1;
    /// WRITE_ZEROES must not deallocate the range.
    pub const NO_HOLE: u16 = 2;
    /// The data of a read must come in one chunk.
    pub const DF: u16 = 4;
    /// BLOCK_STATUS must describe only the first extent.
    pub const REQ_ONE: u16 = 8;
    /// WRITE_ZEROES must fail if it is not faster than a write.
    pub const FAST_ZERO: u16 = 16;
}

/// Flags and types of chunks of structured replies: `NBD_REPLY_FLAG_DONE`, `NBD_REPLY_TYPE_*`.
pub mod chunk {
    /// Flag: the last chunk of this reply.
    pub const DONE: u16 = 1;
    /// Type: no payload.
    pub const NONE: u16 = 0;
    /// Type: an offset (64 bits) and the data found there.
    pub const OFFSET_DATA: u16 = 1;
    /// Type: the number of a context and its extents.
    pub const BLOCK_STATUS: u16 = 5;
    /// Type: an error number and a message.
    pub const ERROR: u16 = 0x8001;
}

/// Error numbers in replies: those of Linux, by their meaning.
pub mod error {
    /// Success.
    pub const NONE: u32 = 0;
    /// EIO: the device failed, or its power did.
    pub const IO: u32 = 5;
    /// EINVAL: the request itself is wrong.
    pub const INVALID: u32 = 22;
    /// ENOSPC: the device is worn out, or a write extends past its end.
    pub const NO_SPACE: u32 = 28;
    /// It cannot be done quickly, or at all.
    pub const NOT_SUPPORTED: u32 = 95;
    /// ESHUTDOWN: the server is stopping.
    pub const SHUTDOWN: u32 = 108;
}

/// The one context of block status.
pub(crate) const ALLOCATION: &[u8] = b"base:allocation";
/// The number that the server gives it.
pub const ALLOCATION_ID: u32 = 1;
/// An extent is a hole that reads as zero.
pub(crate) const HOLE_AND_ZERO: u32 = 3;

/// Splits bytes off the front.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(front)
}

fn take_u16(bytes: &mut &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(take(bytes, 2)?.try_into().expect("2 bytes")))
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(take(bytes, 4)?.try_into().expect("4 bytes")))
}

fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(take(bytes, 8)?.try_into().expect("8 bytes")))
}

/// Number and length of an option, from its head.
pub fn option_head(bytes: &[u8; OPTION_BYTES]) -> Option<(u32, u32)> {
    let mut rest = &bytes[..];
    (take_u64(&mut rest)? == OPTION_MAGIC).then_some(())?;
    Some((take_u32(&mut rest)?, take_u32(&mut rest)?))
}

/// What GO and INFO carry: the export, and what the client wants to know.
pub fn info_request(mut bytes: &[u8]) -> Option<(&[u8], Vec<u16>)> {
    let name = take_name(&mut bytes)?;
    let count = take_u16(&mut bytes)?;
    (bytes.len() == count as usize * 2).then_some(())?;
    let wanted = bytes.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]]));
    Some((name, wanted.collect()))
}

/// What LIST_META_CONTEXT and SET_META_CONTEXT carry: the export, and queries.
pub fn context_request(mut bytes: &[u8]) -> Option<(&[u8], Vec<&[u8]>)> {
    let name = take_name(&mut bytes)?;
    let count = take_u32(&mut bytes)?;
    // A query has at least its length: more of them than that cannot be there.
    (count as usize <= bytes.len() / 4).then_some(())?;
    let queries: Option<Vec<&[u8]>> = (0..count).map(|_| take_name(&mut bytes)).collect();
    bytes.is_empty().then_some((name, queries?))
}

/// A length and this many bytes.
fn take_name<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_u32(bytes)? as usize;
    (length <= NAME_MAX).then_some(())?;
    take(bytes, length)
}

/// A request as it stands on the wire, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// See [`flag`].
    pub flags: u16,
    /// See [`command`].
    pub command: u16,
    /// Chosen by the client and repeated in the reply.
    pub cookie: u64,
    /// First byte of the range on the device.
    pub offset: u64,
    /// Length of the range.
    pub bytes: u32,
}

impl Request {
    /// From its bytes; `None` without the magic.
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Request> {
        let mut rest = &bytes[..];
        (take_u32(&mut rest)? == REQUEST_MAGIC).then_some(())?;
        Some(Request {
            flags: take_u16(&mut rest)?,
            command: take_u16(&mut rest)?,
            cookie: take_u64(&mut rest)?,
            offset: take_u64(&mut rest)?,
            bytes: take_u32(&mut rest)?,
        })
    }

    /// The 28 bytes of the wire, magic included.
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..].copy_from_slice(&self.bytes.to_be_bytes());
        bytes
    }
}

/// A simple reply.
pub(crate) fn simple_reply(error: u32, cookie: u64) -> [u8; SIMPLE_REPLY_BYTES] {
    let mut bytes = [0; SIMPLE_REPLY_BYTES];
    bytes[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    bytes[4..8].copy_from_slice(&error.to_be_bytes());
    bytes[8..].copy_from_slice(&cookie.to_be_bytes());
    bytes
}

/// The head of the only, and so last, chunk of a structured reply.
pub(crate) fn chunk_head(kind: u16, cookie: u64, bytes: u32) -> [u8; CHUNK_BYTES] {
    let mut head = [0; CHUNK_BYTES];
    head[..4].copy_from_slice(&CHUNK_MAGIC.to_be_bytes());
    head[4..6].copy_from_slice(&chunk::DONE.to_be_bytes());
    head[6..8].copy_from_slice(&kind.to_be_bytes());
    head[8..16].copy_from_slice(&cookie.to_be_bytes());
    head[16..].copy_from_slice(&bytes.to_be_bytes());
    head
}

/// Appends a reply to an option; `data` is its payload in parts.
pub fn option_reply(into: &mut Vec<u8>, option: u32, kind: u32, data: &[&[u8]]) {
    into.extend(OPTION_REPLY_MAGIC.to_be_bytes());
    into.extend(option.to_be_bytes());
    into.extend(kind.to_be_bytes());
    into.extend((data.iter().map(|part| part.len()).sum::<usize>() as u32).to_be_bytes());
    data.iter().for_each(|part| into.extend_from_slice(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_as_it_was_written() {
        let request = Request { flags: 3, command: 6, cookie: 1 << 63 | 5, offset: 1 << 40, bytes: 9 };
        let mut bytes = request.encode();
        assert_eq!(Request::parse(&bytes), Some(request));
        bytes[0] ^= 1;
        assert_eq!(Request::parse(&bytes), None);
    }

    /// Whatever comes, nothing panics, and what is taken is part of it.
    #[test]
    fn random_bytes_are_refused_or_understood() {
        let mut rng = nvlab_units::Rng::new(8);
        let mut understood = [0u32; 2];
        for _ in 0..200_000 {
            // Small lengths are likely, or hardly anything would be understood.
            let bytes: Vec<u8> = (0..rng.below(40))
                .map(|_| match rng.below(10) {
                    0 => rng.bits() as u8,
                    1 => rng.below(4) as u8,
                    _ => 0,
                })
                .collect();
            if let Some((name, wanted)) = info_request(&bytes) {
                assert_eq!(4 + name.len() + 2 + 2 * wanted.len(), bytes.len());
                understood[0] += 1;
            }
            if let Some((name, queries)) = context_request(&bytes) {
                let queries: usize = queries.iter().map(|query| 4 + query.len()).sum();
                assert_eq!(4 + name.len() + 4 + queries, bytes.len());
                understood[1] += 1;
            }
        }
        assert!(understood.iter().all(|&count| count > 1000), "{understood:?}");
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let go = |name: u32, rest: &[u8]| {
            let bytes = [&name.to_be_bytes()[..], rest].concat();
            info_request(&bytes).map(|(name, wanted)| (name.to_vec(), wanted))
        };
        assert_eq!(go(2, b"ab\0\x01\0\x03"), Some((b"ab".to_vec(), vec![3])));
        assert_eq!(go(0, b"\0\0"), Some((vec![], vec![])));
        for wrong in [&b"ab\0\x02\0\x03"[..], b"ab\0\0\0", b"ab\0", b"a"] {
            assert_eq!(go(2, wrong), None, "{wrong:?}");
        }
        assert_eq!(go(u32::MAX, b"ab\0\0"), None);
        assert_eq!(context_request(b"\0\0\0\0\xff\xff\xff\xff\0\0\0\0"), None);
        let one = b"\0\0\0\x01x\0\0\0\x01\0\0\0\x05base:";
        assert_eq!(context_request(one), Some((&b"x"[..], vec![&b"base:"[..]])));
        assert_eq!(context_request(&one[..one.len() - 1]), None);
        assert_eq!(context_request(&[&one[..], b"x"].concat()), None);
    }
}
