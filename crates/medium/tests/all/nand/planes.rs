//! Reads of several planes: every time is a closed form of sense, transfer and decoding.

use nvlab_medium::flash::nand::Payload;
use nvlab_medium::flash::{
    BitErrors, CellRules, Endurance, Faults, FlashConfig, FlashTiming, Nand, PlaneReads, Registers, SlcMode,
};
use nvlab_units::{BlockId, Die, Geometry, Interruption, Ppa, Rate, Rng, Span, Time};

const BLOCK: BlockId = BlockId(0);
/// Units of a page of one plane, and of all four.
const PAGE: u32 = 4;
const ROW: u32 = 16;
/// At 1600 MB/s a unit of 4 KiB takes 2.56 us.
const UNIT: Span = Span::from_ns(2560);
const SENSE: [Span; 3] = [Span::from_us(45), Span::from_us(60), Span::from_us(75)];
const ONE: PlaneReads = PlaneReads::ONE;
const MULTI: PlaneReads =
    PlaneReads { planes: 4, together: true, independent: false, registers: Registers::Two };
const INDEPENDENT: PlaneReads = PlaneReads { independent: true, ..MULTI };

fn config(reads: PlaneReads) -> FlashConfig {
    FlashConfig {
        rules: CellRules::Nand,
        geometry: Geometry {
            channels: 1,
            dies_per_channel: 1,
            blocks_per_die: 2,
            pages_per_block: 16,
            units_per_page: 3 * ROW,
            unit_bytes: 4096,
        },
        timing: FlashTiming {
            read: SENSE.to_vec(),
            units_per_read: PAGE,
            reads,
            transfer: Rate::from_bytes_per_second(1_600_000_000),
            interruption: Interruption::Suspend {
                latency: Span::from_us(20),
                resume: Span::from_us(5),
                limit: 2,
            },
            ..FlashTiming::plain(Span::ZERO, Span::from_us(1000), Span::from_us(5000))
        },
        endurance: Endurance { cycles: 1000, spread: 0.0 },
        faults: Faults::NONE,
    }
}

/// A word line holds one page of each plane.
fn slc() -> SlcMode {
    SlcMode {
        pages_per_block: 16,
        units_per_page: ROW,
        read: Span::from_us(25),
        program: Span::from_us(200),
        erase: Span::from_us(5000),
        cycles: 1000,
    }
}

/// A die whose first block is programmed, idle at the time returned.
fn programmed(config: FlashConfig) -> (Nand, Time) {
    let mut nand = Nand::new(config, ());
    let queued = nand.program(Time::ZERO, BLOCK, 0, 16, Payload::default(), false).unwrap();
    let idle = nand.finish(Die(0), queued, Time::ZERO);
    nand.reset_stats();
    (nand, idle)
}

/// Reads units and returns when they began and ended, after `from`.
fn read(nand: &mut Nand, from: Time, at: Span, first: u32, count: u32) -> (Span, Span) {
    let served = nand.read(from + at, Ppa(first), count, &mut []).unwrap();
    (served.start.since(from), served.end.since(from))
}

/// The whole page, read as the controller reads it: as many units at a time as one command fetches.
fn read_page(nand: &mut Nand, from: Time) -> Vec<(Span, Span)> {
    let (mut first, mut served) = (0, Vec::new());
    while first < 3 * ROW {
        let count = nand.units_together(Ppa(first));
        served.push(read(nand, from, Span::ZERO, first, count));
        first += count;
    }
    served
}

#[test]
fn one_command_senses_the_same_page_of_all_planes() {
    let (mut nand, idle) = programmed(config(MULTI));
    assert_eq!((nand.units_together(Ppa(0)), nand.units_together(Ppa(5))), (ROW, ROW - 5));
    // Senses of 45, 60 and 75 us, each while the 64 KiB before it cross the channel in 41 us.
    let row = UNIT * ROW as u64;
    let [lower, middle, upper] = SENSE;
    let ends = [lower, lower + middle, lower + middle + upper];
    let expected: Vec<_> = ends.iter().zip(SENSE).map(|(&end, sense)| (end - sense, end + row)).collect();
    assert_eq!(read_page(&mut nand, idle), expected);
    assert_eq!(nand.stats().reads, 3);
    // One plane at a time: twelve senses, of which the last ends after four times as long.
    let (mut nand, idle) = programmed(config(ONE));
    let last = *read_page(&mut nand, idle).last().unwrap();
    assert_eq!(last.1, (lower + middle + upper) * 4 + UNIT * PAGE as u64);
}

#[test]
fn registers_decide_what_a_plane_does_during_a_transfer() {
    let row = UNIT * ROW as u64;
    let (mut nand, idle) = programmed(config(PlaneReads { registers: Registers::One, ..MULTI }));
    let whole = SENSE[0] + SENSE[1] + SENSE[2] + row * 3;
    assert_eq!(read_page(&mut nand, idle).last().unwrap().1, whole);
    // On a slow channel a row takes 164 us, longer than any sense: two registers allow one sense ahead and no more.
    let mut slow = config(MULTI);
    slow.timing.transfer = Rate::from_bytes_per_second(400_000_000);
    let row = row * 4;
    let (mut nand, idle) = programmed(slow.clone());
    let [first, second, third] = read_page(&mut nand, idle).try_into().unwrap();
    assert_eq!((first.0, second.0, third.0), (Span::ZERO, SENSE[0], SENSE[0] + row));
    assert_eq!((first.1, second.1, third.1), (SENSE[0] + row, SENSE[0] + row * 2, SENSE[0] + row * 3));
    slow.timing.reads.registers = Registers::Unlimited;
    let (mut nand, idle) = programmed(slow);
    assert_eq!(read_page(&mut nand, idle)[2].0, SENSE[0] + SENSE[1]);
}

/// Two programs, one after the other: what their data does to the die.
#[test]
fn registers_decide_what_crosses_during_a_program() {
    let page = UNIT * (3 * ROW) as u64;
    let program = Span::from_us(1000);
    let cases = [(Registers::Unlimited, Span::ZERO), (Registers::Two, page * 2 / 3), (Registers::One, page)];
    for (registers, loading) in cases {
        let mut config = config(PlaneReads { registers, ..MULTI });
        config.timing.one_shot = 3;
        assert_eq!(config.program_time(), program + loading, "{registers:?}");
        let ends = |config: &FlashConfig, slc: Option<SlcMode>, host: bool| {
            let nand: Nand = Nand::new(config.clone(), ());
            let mut nand = if let Some(slc) = slc { nand.with_slc_mode(slc) } else { nand };
            nand.set_slc(BLOCK, slc.is_some());
            let queue = |nand: &mut Nand, page| {
                nand.program(Time::ZERO, BLOCK, page, 1, Payload::default(), host).unwrap()
            };
            let tickets = [0, 1].map(|page| queue(&mut nand, page));
            let ends = tickets.map(|ticket| nand.finish(Die(0), ticket, Time::ZERO).since(Time::ZERO));
            (ends, nand.stats().program_time.ps())
        };
        // The data of the first one arrives while the die has nothing to do.
        let busy = ((program + loading) * 2).ps() as u128;
        let first = page + program;
        assert_eq!(ends(&config, None, true), ([first, first + loading + program], busy), "{registers:?}");
        assert_eq!(ends(&config, None, false), ends(&config, None, true), "{registers:?}, relocated");
        // In SLC mode a program has one page of each plane.
        let slc = slc();
        let row = UNIT * ROW as u64;
        let loading = if registers == Registers::One { row } else { Span::ZERO };
        let first = row + slc.program;
        let second = first + loading + slc.program;
        assert_eq!(ends(&config, Some(slc), true).0, [first, second], "{registers:?}");
        // Data that stays in the die is not waited for.
        config.timing.copy_back = true;
        assert_eq!(ends(&config, None, false).0, [program, program * 2], "{registers:?}");
    }
}

/// Four dies, of which two may program at the same time.
#[test]
fn no_more_dies_program_at_the_same_time_than_may() {
    let ends = |programs: Option<u32>| {
        let mut config = config(PlaneReads::ONE);
        config.geometry.dies_per_channel = 4;
        config.timing.programs = programs;
        // No program waits for its data.
        config.timing.copy_back = true;
        let program = config.timing.program;
        let mut nand: Nand = Nand::new(config, ());
        let first_of =
            |nand: &Nand, die| (0..8).map(BlockId).find(|&block| nand.die_of(block) == die).unwrap();
        let mut ends = Vec::new();
        for page in 0..16 {
            for die in 0..4 {
                let block = first_of(&nand, Die(die));
                let ticket = nand.program(Time::ZERO, block, page, 1, Payload::default(), false).unwrap();
                ends.push((die, ticket));
            }
        }
        let ends =
            ends.into_iter().map(|(die, ticket)| nand.finish(Die(die), ticket, Time::ZERO).since(Time::ZERO));
        (ends.collect::<Vec<_>>(), program)
    };
    let (all, program) = ends(None);
    assert_eq!(all.iter().max(), Some(&(program * 16)));
    let (two, _) = ends(Some(2));
    // One begins every half of a program's time.
    assert_eq!(two.iter().max(), Some(&(program * 63 / 2 + program)));
    for &end in &two {
        let during = two.iter().filter(|&&other| other > end - program && other - program < end).count();
        assert!(
            during <= 3,
            "{during} overlap with one: itself, one that ends and one that begins meanwhile"
        );
        let then = end - program / 4;
        let together = two.iter().filter(|&&other| other > then && other - program <= then).count();
        assert!(together <= 2, "{together} at the same time");
    }
}

#[test]
fn planes_sense_different_pages_at_the_same_time() {
    // A unit of each plane, each in another page; the second read of a plane waits for the first.
    let units = [0, 3 * ROW + PAGE, 6 * ROW + 2 * PAGE, 9 * ROW + 3 * PAGE, 12 * ROW];
    let starts = |reads: PlaneReads| {
        let (mut nand, idle) = programmed(config(reads));
        let starts = units.map(|unit| read(&mut nand, idle, Span::ZERO, unit, 1).0);
        (starts, nand.stats())
    };
    let sense = SENSE[0];
    let (found, stats) = starts(INDEPENDENT);
    assert_eq!(found, [Span::ZERO, Span::ZERO, Span::ZERO, Span::ZERO, sense]);
    assert_eq!(stats.read_time.ps(), (sense * 5).ps() as u128);
    assert_eq!(stats.read_busy.ps(), (sense * 5 / 4).ps() as u128);
    let (found, stats) = starts(MULTI);
    assert_eq!(found, std::array::from_fn(|i| sense * i as u64));
    assert_eq!(stats.read_busy.ps(), (sense * 5).ps() as u128);
}

/// Random reads that all wait at the beginning: each plane is busy for the sum of its senses, and the die has read them
/// all when the last plane has.
#[test]
fn many_random_reads_take_as_long_as_the_busiest_plane() {
    let (mut nand, idle) = programmed(config(INDEPENDENT));
    let (mut rng, mut planes, mut end) = (Rng::new(8), [Span::ZERO; 4], Span::ZERO);
    for _ in 0..2000 {
        let unit = rng.below(16 * 3 * ROW as u64) as u32;
        let physical = unit % (3 * ROW) / PAGE;
        planes[physical as usize % 4] += SENSE[physical as usize / 4];
        end = end.max(read(&mut nand, idle, Span::ZERO, unit, 1).1);
    }
    let busiest = planes.into_iter().max().unwrap();
    assert!(end > busiest && end <= busiest + UNIT * 4, "{end} after {busiest}");
    // By hand: 2000 x 60 us over 4 planes.
    assert!((0.95..1.1).contains(&(end.seconds() / 30e-3)), "{end}");
}

#[test]
fn an_operation_is_suspended_for_all_planes_at_once() {
    let (mut nand, idle) = programmed(config(INDEPENDENT));
    let erase = nand.erase(idle, BlockId(1)).unwrap();
    let us = Span::from_us;
    // Two planes are read during one suspension, a third read suspends again; a fourth waits for the end.
    assert_eq!(read(&mut nand, idle, us(100), 0, 1).0, us(120));
    assert_eq!(read(&mut nand, idle, us(110), PAGE, 1).0, us(110));
    assert_eq!(read(&mut nand, idle, us(300), 0, 1).0, us(320));
    // Suspended from 100 to 165 + 5 and from 300 to 365 + 5.
    assert_eq!(read(&mut nand, idle, us(500), 0, 1).0, us(5000 + 70 + 70));
    assert_eq!(nand.finish(Die(0), erase, idle + us(500)).since(idle), us(5140));
}

#[test]
fn decoding_and_retries_add_to_each_read() {
    let mut errors = config(MULTI);
    errors.timing.decode = Span::from_us(5);
    let once = SENSE[0] + UNIT + Span::from_us(5);
    let (mut nand, idle) = programmed(errors.clone());
    assert_eq!(read(&mut nand, idle, Span::ZERO, 0, 1).1, once);
    // 328 errors in a codeword, of which 10 can be corrected; with the first retry 0.3.
    errors.faults.bit_errors = Some(BitErrors {
        rate_fresh: 1e-2,
        rate_worn: 1e-2,
        codeword_bits: 32_768,
        correctable: 10,
        retries: 3,
        retry_factor: 1e-3,
    });
    let (mut nand, idle) = programmed(errors);
    assert_eq!(read(&mut nand, idle, Span::ZERO, 0, 1), (Span::ZERO, once * 2));
    assert_eq!((nand.stats().reads, nand.stats().retries), (2, 1));
}

/// Blocks in SLC mode have the same planes.
#[test]
fn planes_of_a_block_in_slc_mode() {
    let mut nand: Nand = Nand::new(config(INDEPENDENT), ()).with_slc_mode(slc());
    nand.set_slc(BLOCK, true);
    let queued = nand.program(Time::ZERO, BLOCK, 0, 2, Payload::default(), false).unwrap();
    let idle = nand.finish(Die(0), queued, Time::ZERO);
    assert_eq!(nand.units_together(Ppa(0)), ROW);
    let row = UNIT * ROW as u64;
    assert_eq!(read(&mut nand, idle, Span::ZERO, 0, ROW).1, Span::from_us(25) + row);
    let later = Span::from_us(1000);
    let starts = [3 * ROW, 3 * ROW + PAGE, 1].map(|unit| read(&mut nand, idle, later, unit, 1).0);
    assert_eq!(starts, [later, later, later + Span::from_us(25)]);
}
