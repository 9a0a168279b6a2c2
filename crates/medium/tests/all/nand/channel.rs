//! Relocated data crosses the channel too: it yields to the host's, and is late when the channel is full.

use super::config;
use nvlab_medium::flash::nand::Payload;
use nvlab_medium::flash::{CellRules, FlashConfig, Nand};
use nvlab_units::{BlockId, Die, Geometry, Ppa, Rate, Rng, Span, Ticket, Time};

const DIES: u32 = 4;

/// Four dies on a channel that moves a page in 100 us; they read one in 60 us and program one in 200 us.
fn array() -> Nand {
    let config = config(CellRules::Nand, 1, 0);
    let geometry = Geometry {
        dies_per_channel: DIES,
        blocks_per_die: 2,
        pages_per_block: 1000,
        unit_bytes: 4000,
        ..config.geometry
    };
    let mut timing = config.timing.clone();
    timing.program = Span::from_us(200);
    timing.transfer = Rate::from_bytes_per_second(40_000_000);
    timing.copy_back = false;
    Nand::new(FlashConfig { geometry, timing, ..config }, ())
}

/// Moves `count` pages on a die to its second block.
fn relocate(nand: &mut Nand, at: Time, die: u32, count: u32) -> Ticket {
    nand.relocation_reads(at, Die(die), &[count], count);
    let block = BlockId(2 * die + 1);
    let page = nand.pages_written(block);
    nand.program(at, block, page, count, Payload::default(), false).unwrap()
}

const fn us(n: u64) -> Time {
    Time::from_ns(n * 1000)
}

#[test]
fn a_channel_is_busy_no_longer_than_all_the_time() {
    for seed in 0..200 {
        let (mut rng, mut nand, mut now) = (Rng::new(seed), array(), Time::ZERO);
        for block in (0..2 * DIES).step_by(2) {
            nand.assume(BlockId(block), 1000, array().cells());
        }
        for _ in 0..100 {
            now += Span::from_us(rng.below(400));
            let die = rng.below(DIES as u64) as u32;
            if rng.chance(0.5) {
                let page = rng.below(1000) as u32;
                nand.read(now, Ppa(die * 2000 + page), 1, &mut []).unwrap();
            } else {
                relocate(&mut nand, now, die, 1 + rng.below(8) as u32);
            }
        }
        let idle = (0..DIES).fold(now, |idle, die| idle.max(nand.idle_at(Die(die), now)));
        let moving = nand.stats().transfer_time;
        assert!(moving.ps() <= idle.ps() as u128, "seed {seed}: {} s of {idle}", moving.seconds());
    }
}

/// What is moved on three dies keeps the channel for 2.4 ms. A page of the fourth is there after that, and its program ends 200 us
/// later, as tight as that; alone it takes as long as the die does. A read of the host waits for none.
#[test]
fn relocated_data_is_late_where_the_channel_is_full_and_the_host_is_not() {
    let mut nand = array();
    nand.assume(BlockId(6), 1000, array().cells());
    let mut one = nand.clone();
    let alone = relocate(&mut one, us(0), 3, 4);
    // 400 us until all have left the die, and the first program begins with the page that has arrived.
    assert_eq!(one.finish(Die(3), alone, us(0)), us(400 + 100 + 4 * 200));
    for die in 0..3 {
        relocate(&mut nand, us(0), die, 4);
    }
    let late = relocate(&mut nand, us(0), 3, 1);
    assert_eq!(nand.clone().finish(Die(3), late, us(0)), us(2400 + 200 + 200));
    let read = nand.read(us(500), Ppa(6000), 1, &mut []).unwrap();
    assert_eq!(read.end, us(500 + 60 + 100));
    // The read took 100 us of what is moved later.
    let later = relocate(&mut nand, us(500), 1, 1);
    assert_eq!(nand.finish(Die(1), later, us(500)), us(2600 + 100 + 200 + 200));
}
