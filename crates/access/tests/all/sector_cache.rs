//! A sector cache over a device of larger units, against a plain array.

use crate::common::{DIRECT, page_map};
use nvlab_access::{Attached, BlockDevice, CachedDisk, SectorCache};
use nvlab_controller::PageMap;
use nvlab_medium::MemStore;
use nvlab_units::{Geometry, Rng};
use std::cell::RefCell;
use std::io::{Read, Seek, SeekFrom, Write};

const CAPACITY: usize = 96 << 10;

fn device() -> Attached<PageMap<MemStore>> {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        blocks_per_die: 20,
        pages_per_block: 4,
        units_per_page: 1,
        unit_bytes: 2048,
    };
    page_map(geometry, (CAPACITY / 2048) as u32, DIRECT)
}

#[test]
fn any_reads_and_writes_against_an_array() {
    for cache_bytes in [512, 4 << 10, 64 << 10] {
        let cache = RefCell::new(SectorCache::new(device(), cache_bytes));
        let mut disk = CachedDisk::new(&cache);
        let mut plain = vec![0u8; CAPACITY];
        let mut rng = Rng::new(cache_bytes);
        for i in 0..4000 {
            // Whole sectors half of the time, which pass the cache by.
            let unit = if rng.chance(0.5) { 512 } else { 1 };
            let offset = rng.below((CAPACITY / unit) as u64) as usize * unit;
            let length = (1 + rng.below(3000) as usize).next_multiple_of(unit).min(CAPACITY - offset);
            disk.seek(SeekFrom::Start(offset as u64)).unwrap();
            if rng.chance(0.5) {
                let data: Vec<u8> = (0..length).map(|_| rng.bits() as u8).collect();
                disk.write_all(&data).unwrap();
                plain[offset..offset + length].copy_from_slice(&data);
            } else {
                let mut data = vec![0xee; length];
                disk.read_exact(&mut data).unwrap();
                assert!(data == plain[offset..offset + length], "read {i}, {length} B at {offset}");
            }
            if i % 500 == 0 {
                cache.borrow_mut().sync().unwrap();
            }
        }
        cache.borrow_mut().sync().unwrap();
        let now = cache.borrow().now();
        let mut device = cache.into_inner().into_device();
        let mut all = vec![0; CAPACITY];
        device.read(now, 0, CAPACITY as u32, &mut all).unwrap();
        assert!(all == plain, "the device holds something else after a sync");
    }
}

/// What a cache is for: many changes of a few sectors are one write each, when it is asked for.
#[test]
fn changes_gather_until_the_sync() {
    let cache = RefCell::new(SectorCache::new(device(), 16 << 10));
    let mut disk = CachedDisk::new(&cache);
    for i in 0..1000u64 {
        disk.seek(SeekFrom::Start(4096 + i % 1024)).unwrap();
        disk.write_all(&[(i % 251) as u8 + 1]).unwrap();
    }
    let units = |cache: &RefCell<SectorCache<Attached<PageMap<MemStore>>>>| {
        cache.borrow().device().controller().stats().host_write_units
    };
    assert_eq!(units(&cache), 0);
    cache.borrow_mut().sync().unwrap();
    // Two neighbouring sectors in one request, in one unit.
    assert_eq!(units(&cache), 1);
    // Nothing changed since, nor by writing the same again.
    disk.seek(SeekFrom::Start(4096)).unwrap();
    disk.write_all(&[1]).unwrap();
    cache.borrow_mut().sync().unwrap();
    assert_eq!(units(&cache), 1);
}
