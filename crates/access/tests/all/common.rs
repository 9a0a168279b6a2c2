//! A page map behind a link, and any bytes against a plain array.

use nvlab_access::{Attached, BlockDevice, HostPath};
use nvlab_controller::PageMap;
use nvlab_controller::page_map::PageMapConfig;
use nvlab_medium::MemStore;
use nvlab_medium::flash::{CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand};
use nvlab_units::{Geometry, Rng, Span, Time};

/// No link: the host is at the controller.
pub const DIRECT: HostPath = HostPath {
    rate: None,
    rate_write: None,
    full_duplex: true,
    overhead: Span::ZERO,
    command: Span::ZERO,
    command_write: Span::ZERO,
};

/// A page map of so many units on one die.
pub fn page_map(geometry: Geometry, logical_units: u32, path: HostPath) -> Attached<PageMap<MemStore>> {
    let flash = FlashConfig {
        rules: CellRules::Nand,
        geometry,
        timing: FlashTiming {
            copy_back: true,
            ..FlashTiming::plain(Span::from_us(25), Span::from_us(200), Span::from_us(1500))
        },
        endurance: Endurance { cycles: 1000, spread: 0.0 },
        faults: Faults::NONE,
    };
    let config = PageMapConfig { free_blocks_min: 1, ..PageMapConfig::plain(logical_units) };
    let store = MemStore::new(Nand::<MemStore>::store_bytes(&geometry));
    Attached::new(PageMap::new(config, Nand::new(flash, store)).unwrap(), path)
}

/// Reads and writes any bytes of a device, and compares what it reads with a plain array.
pub fn any_bytes_against_an_array(device: &mut impl BlockDevice, requests: u32) {
    let mut plain = vec![0u8; device.capacity_bytes() as usize];
    let mut rng = Rng::new(4);
    let mut now = Time::ZERO;
    for i in 0..requests {
        let offset = rng.below(plain.len() as u64 - 1);
        let bytes = (1 + rng.below(2000)).min(plain.len() as u64 - offset);
        let range = offset as usize..(offset + bytes) as usize;
        now = if rng.chance(0.5) {
            let data: Vec<u8> = (0..bytes).map(|_| rng.bits() as u8).collect();
            plain[range].copy_from_slice(&data);
            device.write(now, offset, bytes as u32, &data).unwrap().end
        } else {
            let mut data = vec![0; bytes as usize];
            let end = device.read(now, offset, bytes as u32, &mut data).unwrap().end;
            assert_eq!(data, plain[range], "request {i}: {bytes} bytes at {offset}");
            end
        };
    }
}
