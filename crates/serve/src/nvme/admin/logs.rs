//! Log pages of I/O controllers.

use super::features::TEMPERATURE;
use crate::nvme::command::{ALL_NAMESPACES, Command, DATA_BYTES_MAX, Status, admin, nvm};
use crate::nvme::controller::{Controller, ERRORS_MAX};
use crate::nvme::namespace::Health;
use crate::nvme::page::Page;
use crate::nvme::subsystem::Subsystem;

/// The log page of health.
pub const HEALTH: u8 = 0x02;
const SUPPORTED: u8 = 0x00;
const ERRORS: u8 = 0x01;
const FIRMWARE: u8 = 0x03;
const CHANGED_NAMESPACES: u8 = 0x04;
const EFFECTS: u8 = 0x05;

/// Bytes of an entry of the error log.
const ERROR_BYTES: usize = 64;
/// A data unit is a thousand times 512 bytes.
const DATA_UNIT_BYTES: u128 = 512_000;
/// Spare below this share, in percent, is a warning.
const SPARE_THRESHOLD: u8 = 10;

/// The page that a command asks for.
pub fn page_id(command: &Command) -> u8 {
    command.dword(10) as u8
}

/// The length that a command asks for.
pub fn bytes(command: &Command) -> Result<u32, Status> {
    let (lower, upper) = (command.dword(10) >> 16, command.dword(11) & 0xffff);
    let bytes = ((upper << 16 | lower) as u64 + 1) * 4;
    // Longer pages are read in parts.
    u32::try_from(bytes).ok().filter(|&bytes| bytes <= DATA_BYTES_MAX).ok_or(Status::INVALID_FIELD)
}

/// From which byte on.
pub fn offset(command: &Command) -> Result<u64, Status> {
    let (offset, by_index) = (command.dwords(12), command.dword(14) >> 23 & 1 != 0);
    match offset.is_multiple_of(4) && !by_index {
        true => Ok(offset),
        false => Err(Status::INVALID_FIELD),
    }
}

/// Whether reading a page ends what was reported as an event.
pub fn clears_event(command: &Command) -> bool {
    page_id(command) == HEALTH && command.dword(10) >> 15 & 1 == 0
}

/// The health of all devices.
pub fn health(subsystem: &Subsystem) -> Health {
    let all = subsystem.namespaces.iter().map(|namespace| namespace.health());
    all.reduce(Health::and).unwrap_or_default()
}

/// A whole page. `temperature`: the bit of a warning about it.
pub fn page(
    subsystem: &Subsystem,
    controller: &Controller,
    temperature: u8,
    command: &Command,
) -> Result<Vec<u8>, Status> {
    let page = match page_id(command) {
        SUPPORTED => [SUPPORTED, ERRORS, HEALTH, FIRMWARE, CHANGED_NAMESPACES, EFFECTS]
            .into_iter()
            .fold(Page::new(1024), |page, id| page.u32(4 * id as usize, 1)),
        ERRORS => errors(controller),
        HEALTH => {
            let health = match command.namespace() {
                0 | ALL_NAMESPACES => health(subsystem),
                number => subsystem.namespace(number).ok_or(Status::INVALID_NAMESPACE)?.1.health(),
            };
            of_health(&health, temperature, controller.failures().1)
        }
        // The first slot is active, with this revision.
        FIRMWARE => Page::new(512).u8(0, 1).text(8, 8, env!("CARGO_PKG_VERSION")),
        // None did.
        CHANGED_NAMESPACES => Page::new(4096),
        EFFECTS => effects((command.dword(14) >> 24) as u8)?,
        _ => return Err(Status::INVALID_LOG_PAGE),
    };
    Ok(page.done())
}

fn errors(controller: &Controller) -> Page {
    let (failures, _) = controller.failures();
    let page = Page::new(ERROR_BYTES * ERRORS_MAX);
    failures.iter().enumerate().fold(page, |page, (place, failure)| {
        let at = place * ERROR_BYTES;
        page.u64(at, failure.number)
            .u16(at + 8, failure.queue)
            .u16(at + 10, failure.command.id())
            .u16(at + 12, failure.status.bits())
            // Where in the command the error is: not told.
            .u16(at + 14, u16::MAX)
            .u64(at + 16, if failure.queue == 0 { 0 } else { failure.command.dwords(10) })
            .u32(at + 24, if failure.queue == 0 { 0 } else { failure.command.namespace() })
    })
}

fn of_health(health: &Health, temperature: u8, errors: u64) -> Page {
    let wide = |page: Page, at: usize, value: u128| page.bytes(at, &value.to_le_bytes());
    let page = Page::new(512)
        .u8(0, health.warnings | temperature)
        .u16(1, TEMPERATURE)
        .u8(3, health.spare_percent)
        .u8(4, SPARE_THRESHOLD)
        .u8(5, health.used_percent);
    let page = wide(page, 32, health.read_bytes.div_ceil(DATA_UNIT_BYTES));
    let page = wide(page, 48, health.written_bytes.div_ceil(DATA_UNIT_BYTES));
    let page = wide(page, 64, health.reads);
    let page = wide(page, 80, health.writes);
    let page = wide(page, 112, health.power_cycles);
    let page = wide(page, 128, (health.on_seconds / 3600) as u128);
    let page = wide(page, 144, health.unsafe_shutdowns);
    let page = wide(page, 160, health.media_errors);
    wide(page, 176, errors as u128)
}

/// Which commands there are, and what they change: of admin queues, and of I/O queues with a command set.
fn effects(set: u8) -> Result<Page, Status> {
    if set != 0 {
        return Err(Status::INVALID_FIELD);
    }
    /// It is supported; it changes the contents of blocks.
    const READS: u32 = 1;
    const WRITES: u32 = 1 | 1 << 1;
    let admin = [
        admin::GET_LOG_PAGE,
        admin::IDENTIFY,
        admin::ABORT,
        admin::SET_FEATURES,
        admin::GET_FEATURES,
        admin::ASYNC_EVENT_REQUEST,
        admin::KEEP_ALIVE,
    ];
    let io = [
        (nvm::FLUSH, READS),
        (nvm::WRITE, WRITES),
        (nvm::READ, READS),
        (nvm::COMPARE, READS),
        (nvm::WRITE_ZEROES, WRITES),
        (nvm::DATASET_MANAGEMENT, WRITES),
        (nvm::VERIFY, READS),
    ];
    let page = admin.into_iter().fold(Page::new(4096), |page, code| page.u32(4 * code as usize, READS));
    Ok(io.into_iter().fold(page, |page, (code, effects)| page.u32(1024 + 4 * code as usize, effects)))
}
