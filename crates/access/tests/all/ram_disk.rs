//! A memory as a disk: times from both sides, parts of blocks, payload, and what it refuses.

use crate::common;
use nvlab_access::{BlockDevice, RamDisk};
use nvlab_controller::ControllerError;
use nvlab_controller::envy::{Envy, EnvyConfig, SegmentCleaning};
use nvlab_medium::MemStore;
use nvlab_medium::banks::Access;
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nor, NorConfig};
use nvlab_medium::ram::{Backup, Ram, RamConfig};
use nvlab_units::{Geometry, Interruption, Span, Time};

const PAGE: u64 = 256;
/// A word of 8 B over the bus: 60 ns of control and 100 ns of memory.
const WORD: Span = Span::from_ns(160);

/// A small eNVy: 8 segments of 32 pages, a buffer of 16 pages.
fn memory() -> Envy<MemStore> {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        blocks_per_die: 8,
        pages_per_block: 32,
        units_per_page: 1,
        unit_bytes: PAGE as u32,
    };
    let flash = FlashConfig {
        rules: CellRules::Nor,
        geometry,
        timing: FlashTiming {
            interruption: Interruption::Suspend {
                latency: Span::ZERO,
                resume: Span::from_us(4),
                limit: u32::MAX,
            },
            copy_back: true,
            ..FlashTiming::plain(Span::from_ns(100), Span::from_us(4), Span::from_ms(50))
        },
        endurance: Endurance { cycles: 1000, spread: 0.0 },
        faults: Faults::NONE,
    };
    let config = EnvyConfig {
        logical_pages: 151,
        buffer_pages: 16,
        flush_at: 8,
        cleaning: SegmentCleaning::Fifo,
        wear_spread: None,
        control: Span::from_ns(60),
        word_bytes: 8,
        path_bytes: 256,
        mapping_cache_entries: 0,
        transaction_pages: 0,
    };
    let ram = RamConfig {
        capacity_bytes: 64 << 10,
        word_bytes: 256,
        read: Access::even(Span::from_ns(100)),
        write: Access::even(Span::from_ns(100)),
        backup: Backup::Battery { hold: None },
        banks: 1,
        stripe_bytes: 4096,
        seed: 1,
    };
    let nor =
        Nor::new(NorConfig { flash, slowing: None }, MemStore::new(Nor::<MemStore>::store_bytes(&geometry)));
    let sram = Ram::new(ram.clone(), MemStore::new(ram.capacity_bytes));
    Envy::new(config, nor, sram).unwrap()
}

fn disk(overhead: Span) -> RamDisk<Envy<MemStore>> {
    RamDisk::new(memory(), overhead)
}

#[test]
fn a_ram_disk_behaves_like_an_array() {
    let mut disk = disk(Span::from_us(1));
    assert_eq!(disk.capacity_bytes(), 75 * 512, "the half block at the end is not used");
    common::any_bytes_against_an_array(&mut disk, 3000);
    disk.window().check();
}

/// So many words over the bus, one after the other, and the driver before them.
#[test]
fn a_block_is_so_many_words() {
    let mut disk = disk(Span::from_us(3));
    let data = [7; 512];
    let first = disk.write(Time::ZERO, 0, 512, &data).unwrap();
    // The second time its pages are in the buffer: nothing but 64 words.
    let again = disk.write(first.end, 0, 512, &data).unwrap();
    assert_eq!(again.end, first.end + Span::from_us(3) + WORD * 64);
    let read = disk.read(again.end, 0, 512, &mut [0; 512]).unwrap();
    assert_eq!(read.end, again.end + Span::from_us(3) + WORD * 64);
    // Bytes 5..13 lie in two words.
    let part = disk.write(read.end, 5, 8, &data[..8]).unwrap();
    assert_eq!(part.end, read.end + Span::from_us(3) + WORD * 2);
    let mut back = [0; 16];
    disk.read(part.end, 0, 16, &mut back).unwrap();
    assert_eq!(back, [7; 16]);
    let flush = disk.flush(part.end + Span::from_ms(1)).unwrap();
    assert_eq!(flush.end, flush.start + Span::from_us(3), "everything is durable already");
}

/// One processor copies: a request waits until the one before is done, not a picosecond longer.
#[test]
fn requests_wait_for_the_processor() {
    let mut disk = disk(Span::from_us(1));
    let first = disk.write(Time::ZERO, 0, 512, &[1; 512]).unwrap();
    let early = disk.read(first.end.before(Span::from_ps(1)), 0, 512, &mut [0; 512]).unwrap();
    assert_eq!(early.start, first.end);
    let late = disk.read(early.end + Span::from_ps(1), 0, 512, &mut [0; 512]).unwrap();
    assert_eq!(late.start, early.end + Span::from_ps(1));
}

#[test]
fn what_is_trimmed_and_what_is_refused() {
    let mut disk = disk(Span::ZERO);
    let now = disk.write(Time::ZERO, 0, 1024, &[9; 1024]).unwrap().end;
    // Whole pages inside 100..1000: the second and the third.
    let now = disk.trim(now, 100, 900).unwrap().end;
    let mut back = [1; 1024];
    let now = disk.read(now, 0, 1024, &mut back).unwrap().end;
    let page = |n: usize| back[n * PAGE as usize..][..PAGE as usize].to_vec();
    assert_eq!([page(0), page(1), page(2), page(3)].map(|page| page[0]), [9, 0, 0, 9]);
    let capacity = disk.capacity_bytes();
    assert!(capacity < disk.window().capacity_bytes());
    let refused = ControllerError::OutsideWindow { offset: capacity - 1, bytes: 2, capacity };
    assert_eq!(disk.read(now, capacity - 1, 2, &mut [0; 2]), Err(refused));
    assert!(disk.write(now, u64::MAX, 1, &[0]).is_err());
}
