//! What a write costs, calculated from the datasheet; and a measurement of the simulator's speed.

use crate::array::UNIT;
use crate::hftl::device::{Setup, pcm_config, setups};
use nvlab_controller::{BesidePram, Controller, Hftl};
use nvlab_medium::flash::Nand;
use nvlab_medium::pcm::Pcm;
use nvlab_units::{Extent, Lpa, Span, Time};

/// Compare: one asynchronous word, the others synchronous.
fn compare(words: u64) -> Span {
    Span::from_ns(80 + 10 * (words - 1))
}

#[test]
fn a_write_costs_its_program_and_the_words_that_change() {
    let setup = &setups()[0];
    let mut device = setup.device();
    let word = Span::from_us(10);
    let idle = Time::from_ps(Span::from_ms(10).ps());
    let transfer = setup.flash().timing.transfer.transfer(UNIT as u64);
    let (data, overhead) = ([7; UNIT], Span::from_us(2));
    let mut steps = device.pram().stats().steps;

    // The first page: the block is opened before (one word: its state), then transfer and program; beside it the
    // live bit and the write pointer, a word each; then the map entry, page 0 + 1: one of two words.
    let served = device.write(idle, Extent::one(Lpa(0)), &data).unwrap();
    let expected = overhead + (compare(4) + word) + transfer + setup.program + (compare(2) + word);
    assert_eq!(served.end.since(idle), expected);
    assert_eq!(device.pram().stats().steps - steps, 4);
    steps += 4;

    // An overwrite: pointer, live bit and map entry, and afterwards the old live bit.
    let idle = idle + Span::from_ms(10);
    let served = device.write(idle, Extent::one(Lpa(0)), &data).unwrap();
    assert_eq!(served.end.since(idle), overhead + transfer + setup.program + (compare(2) + word));
    assert_eq!(device.pram().stats().steps - steps, 4);

    // A read: a look-up, the page, the transfer.
    let idle = idle + Span::from_ms(10);
    let served = device.read(idle, Extent::one(Lpa(0)), &mut [0; UNIT]).unwrap();
    assert_eq!(served.end.since(idle), overhead + Span::from_ns(90) + Span::from_us(60) + transfer);

    // A trim: the entry back to zero, then the live bit; the host waits for the first.
    let idle = idle + Span::from_ms(10);
    let served = device.trim(idle, Extent::one(Lpa(0))).unwrap();
    assert_eq!(served.end.since(idle), overhead + compare(2) + word);
    assert_eq!(
        device.flush(served.end).unwrap().end.since(idle),
        overhead + compare(2) + word + compare(4) + word
    );
}

/// System 003 slide 20: 2.5 MB of PRAM for 1 GB of 2 KB pages; 2 MiB of it is the map.
#[test]
fn the_pram_need_of_the_paper() {
    let setup = Setup { pages_per_block: 128, spare_blocks: 4096 - 20, ..setups()[0].clone() };
    let flash = nvlab_medium::flash::FlashConfig {
        geometry: nvlab_units::Geometry { unit_bytes: 2048, ..setup.flash().geometry },
        ..setup.flash()
    };
    let config = nvlab_controller::hftl::HftlConfig { logical_units: 500_000, ..setup.config() };
    let device = Hftl::new(config, Nand::new(flash, ()), Pcm::new(pcm_config(4 << 20, 1), ())).unwrap();
    let map = 500_000 * 4;
    assert_eq!(device.pram_bytes(), 64 + 4096 * 8 + 4096 * 16 + map);
    assert!(device.pram_bytes() < 5 << 19);
    assert!(device.memory_bytes() < 128 << 10, "{}", device.memory_bytes());
}
