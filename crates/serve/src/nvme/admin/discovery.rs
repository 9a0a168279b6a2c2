//! The log page of discovery controllers: where the subsystem is.

use super::logs;
use crate::nvme::command::{Command, Status};
use crate::nvme::page::Page;
use crate::nvme::subsystem::Subsystem;
use std::net::{IpAddr, SocketAddr};

/// The log page of discovery.
const DISCOVERY: u8 = 0x70;
/// Bytes of its header and of an entry.
const ENTRY_BYTES: usize = 1024;
/// The transport TCP.
const TCP: u8 = 3;
/// The host chooses no controller.
const ANY_CONTROLLER: u16 = 0xffff;
/// Entries of an admin queue, at most.
const ADMIN_ENTRIES: u16 = 32;

/// Of the host that connected to `address`: there it finds the subsystem, too.
pub fn page(subsystem: &Subsystem, address: SocketAddr, command: &Command) -> Result<Vec<u8>, Status> {
    if logs::page_id(command) != DISCOVERY {
        return Err(Status::INVALID_LOG_PAGE);
    }
    let family = match address.ip() {
        IpAddr::V4(_) => 1,
        IpAddr::V6(_) => 2,
    };
    let entry = ENTRY_BYTES;
    // A generation that never changes, one record, of format 0; then the record.
    let page = Page::new(2 * ENTRY_BYTES).u64(0, 1).u64(8, 1);
    let page = page.u8(entry, TCP).u8(entry + 1, family);
    // The type: an NVM subsystem. Whether it needs a secure channel: it does not.
    let page = page.u8(entry + 2, 2).u8(entry + 3, 2);
    let page = page.u16(entry + 4, 1).u16(entry + 6, ANY_CONTROLLER).u16(entry + 8, ADMIN_ENTRIES);
    let page = page.text(entry + 32, 32, &address.port().to_string());
    let page = page.bytes(entry + 256, subsystem.nqn.as_bytes());
    Ok(page.text(entry + 512, 256, &address.ip().to_string()).done())
}
