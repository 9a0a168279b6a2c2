//! What Identify tells.

use super::{EVENTS_MAX, VERSION, features};
use crate::nvme::command::{ALL_NAMESPACES, COMMAND_BYTES, Command, DATA_BYTES_MAX, Status};
use crate::nvme::controller::{Controller, ERRORS_MAX, Kind};
use crate::nvme::namespace::{BLOCK_BYTES, Namespace};
use crate::nvme::page::Page;
use crate::nvme::subsystem::{DISCOVERY_NQN, QUEUE_ENTRIES, Subsystem};
use crate::nvme::{nvm, tcp};

/// Bytes of every structure.
pub const BYTES: u32 = 4096;
/// The command set of every namespace.
const NVM_SET: u8 = 0;

/// Structures, by number.
mod structure {
    pub const NAMESPACE: u8 = 0x00;
    pub const CONTROLLER: u8 = 0x01;
    pub const NAMESPACES: u8 = 0x02;
    pub const DESCRIPTORS: u8 = 0x03;
    pub const SET_NAMESPACE: u8 = 0x05;
    pub const SET_CONTROLLER: u8 = 0x06;
    pub const SET_NAMESPACES: u8 = 0x07;
    pub const COMMON_NAMESPACE: u8 = 0x08;
    pub const ALLOCATED_NAMESPACES: u8 = 0x10;
    pub const ALLOCATED_NAMESPACE: u8 = 0x11;
    pub const ATTACHED_CONTROLLERS: u8 = 0x12;
    pub const CONTROLLERS: u8 = 0x13;
    pub const COMMAND_SETS: u8 = 0x1c;
}

/// The structure that a command asks for.
pub fn page(subsystem: &Subsystem, controller: &Controller, command: &Command) -> Result<Vec<u8>, Status> {
    let (wanted, set) = (command.dword(10) as u8, (command.dword(11) >> 24) as u8);
    if controller.kind == Kind::Discovery && wanted != structure::CONTROLLER {
        return Err(Status::INVALID_FIELD);
    }
    let from = (command.dword(10) >> 16) as u16;
    let number = command.namespace();
    let namespace = || subsystem.namespace(number).map(|(_, found)| found).ok_or(Status::INVALID_NAMESPACE);
    let known_set = || if set == NVM_SET { Ok(()) } else { Err(Status::INVALID_FIELD) };
    let page = match wanted {
        structure::NAMESPACE if number == ALL_NAMESPACES => common_to_namespaces(),
        structure::NAMESPACE | structure::ALLOCATED_NAMESPACE => of_namespace(namespace()?),
        structure::CONTROLLER => of_controller(subsystem, controller),
        structure::NAMESPACES | structure::ALLOCATED_NAMESPACES => namespaces(subsystem, number)?,
        structure::SET_NAMESPACES => known_set().and_then(|()| namespaces(subsystem, number))?,
        structure::DESCRIPTORS => descriptors(namespace()?),
        // Of the NVM command set: nothing but zeros without protection information.
        structure::SET_NAMESPACE => known_set().and(namespace()).map(|_| Page::new(BYTES as usize))?,
        structure::SET_CONTROLLER => known_set().map(|()| nvm_controller())?,
        // Shared by controllers, and ready.
        structure::COMMON_NAMESPACE => namespace().map(|_| Page::new(BYTES as usize).u8(1, 1).u8(14, 1))?,
        structure::ATTACHED_CONTROLLERS => namespace().map(|_| controllers(subsystem, from))?,
        structure::CONTROLLERS => controllers(subsystem, from),
        // One combination, with the NVM command set.
        structure::COMMAND_SETS => Page::new(BYTES as usize).u64(0, 1 << NVM_SET),
        _ => return Err(Status::INVALID_FIELD),
    };
    Ok(page.done())
}

fn of_controller(subsystem: &Subsystem, controller: &Controller) -> Page {
    let is_discovery = controller.kind == Kind::Discovery;
    let nqn = if is_discovery { DISCOVERY_NQN } else { &subsystem.nqn };
    let page = Page::new(BYTES as usize)
        .text(4, 20, &subsystem.serial)
        .text(24, 40, &subsystem.model)
        .text(64, 8, env!("CARGO_PKG_VERSION"))
        // The subsystem may have several controllers.
        .u8(76, 1 << 1)
        .u8(77, DATA_BYTES_MAX.ilog2() as u8 - 12)
        .u16(78, controller.id)
        .u32(80, VERSION)
        // 128-bit host identifiers.
        .u32(96, 1)
        .u8(111, if is_discovery { 2 } else { 1 })
        .u8(259, EVENTS_MAX as u8 - 1)
        // Log pages: extended, and, of namespaces, health and effects.
        .u8(261, if is_discovery { 1 << 2 } else { 1 | 1 << 1 | 1 << 2 })
        .u8(262, ERRORS_MAX as u8 - 1)
        // Keep-alive timers have a granularity of 100 ms.
        .u16(320, 1)
        .u16(514, QUEUE_ENTRIES)
        // Scatter-gather lists, and data in capsules by offset.
        .u32(536, 1 | 1 << 20)
        .bytes(768, nqn.as_bytes())
        .u32(1792, (COMMAND_BYTES as u32 + tcp::IN_CAPSULE_BYTES) / 16)
        .u32(1796, 1)
        // One descriptor for each command.
        .u8(1803, 1);
    if is_discovery {
        return page;
    }
    let count = subsystem.namespaces.len() as u32;
    // Namespaces do not change while a controller lives; the event is there for hosts that expect it.
    page.u32(92, 1 << 8)
        // One firmware slot, read-only.
        .u8(260, 1 | 1 << 1)
        .u16(266, features::TEMPERATURE_WARNING)
        .u16(268, features::TEMPERATURE_WARNING + 15)
        // Sizes of queue entries: 64 and 16 bytes.
        .u8(512, 0x66)
        .u8(513, 0x44)
        .u32(516, count)
        .u16(520, nvm::OPTIONAL_COMMANDS)
        // A write cache; a flush may be of all namespaces.
        .u8(525, 1 | 3 << 1)
        .u32(540, count)
        // I/O queues can be disconnected.
        .u16(1804, 1)
}

fn nvm_controller() -> Page {
    // The most blocks of Verify and Write Zeroes, as a power of two of 4 KiB.
    let most = (nvm::BLOCKS_MAX * BLOCK_BYTES / 4096).ilog2() as u8;
    Page::new(BYTES as usize).u8(0, most).u8(1, most)
}

fn formats(page: Page) -> Page {
    // One format: blocks without metadata.
    page.u8(128 + 2, BLOCK_BYTES.ilog2() as u8)
}

fn common_to_namespaces() -> Page {
    formats(Page::new(BYTES as usize))
}

fn of_namespace(namespace: &Namespace) -> Page {
    let unit = namespace.unit_blocks - 1;
    // After a deallocation blocks read as zero, or as anything; Write Zeroes can deallocate if that reads as zero.
    let deallocated = if namespace.drive.reads_trimmed_as_zero() { 1 | 1 << 3 } else { 0 };
    let page = Page::new(BYTES as usize)
        .u64(0, namespace.blocks)
        .u64(8, namespace.blocks)
        .u64(16, namespace.blocks)
        // The preferred sizes below are valid.
        .u8(24, 1 << 4)
        // Shared by controllers.
        .u8(30, 1)
        .u8(33, deallocated)
        .u64(48, namespace.blocks * BLOCK_BYTES as u64)
        // Of writes: granularity and alignment; of deallocations the same; the best size.
        .u16(64, unit)
        .u16(66, unit)
        .u16(68, unit)
        .u16(70, unit)
        .u16(72, unit);
    formats(page)
}

/// The namespaces with greater numbers.
fn namespaces(subsystem: &Subsystem, after: u32) -> Result<Page, Status> {
    // Nothing can be greater than these.
    if after >= ALL_NAMESPACES - 1 {
        return Err(Status::INVALID_NAMESPACE);
    }
    let numbers = (1..=subsystem.namespaces.len() as u32).filter(|&number| number > after);
    let places = numbers.take(BYTES as usize / 4).enumerate();
    Ok(places.fold(Page::new(BYTES as usize), |page, (place, number)| page.u32(4 * place, number)))
}

fn descriptors(namespace: &Namespace) -> Page {
    // A UUID, then the command set: type, length, two reserved bytes, value.
    Page::new(BYTES as usize).bytes(0, &[3, 16]).bytes(4, &namespace.uuid).bytes(20, &[4, 1]).u8(24, NVM_SET)
}

fn controllers(subsystem: &Subsystem, from: u16) -> Page {
    let ids = subsystem.controller_ids(from);
    let ids = &ids[..ids.len().min(BYTES as usize / 2 - 1)];
    let page = Page::new(BYTES as usize).u16(0, ids.len() as u16);
    ids.iter().enumerate().fold(page, |page, (place, &id)| page.u16(2 + 2 * place, id))
}
