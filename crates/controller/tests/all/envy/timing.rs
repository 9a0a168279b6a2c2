//! Times, from both sides: what the module says a step takes is what it takes, to the picosecond.

use crate::envy::device::{Ask, Model, Setup, draw, perform, setups};
use nvlab_controller::envy::{EnvyConfig, SegmentCleaning};
use nvlab_controller::{Background, Controller, Envy};
use nvlab_medium::flash::Nor;
use nvlab_medium::ram::Ram;
use nvlab_units::{Extent, Lpa, Rng, Span, Time};

const ACCESS: Span = Span::from_ns(160);
const LONG: Span = Span::from_ns(4160);
const PICO: Span = Span::from_ps(1);
/// From the end of an access until the array turns to what is queued.
const RESUME: Span = Span::from_us(4);

fn setup(dies: u32, buffer: u32, flush_at: u32) -> Setup {
    Setup {
        cleaning: SegmentCleaning::Fifo,
        dies,
        segments: 5,
        pages: 16,
        page_bytes: 256,
        buffer,
        flush_at,
        wear_spread: None,
        // The active segment of every die is partly filled.
        utilization: 0.45,
        transaction_pages: 4,
    }
}

/// Every page in flash, nothing in the buffer, everything at rest.
fn full(setup: &Setup) -> (Envy<()>, Time) {
    let mut device = setup.timing_only();
    let mut now = Time::ZERO;
    for lpa in 0..device.capacity_units() {
        now = device.write(now, Extent::one(Lpa(lpa)), &[]).unwrap().end;
    }
    now = device.idle_at(now).unwrap() + Span::from_ms(1);
    device.reset_stats();
    (device, now)
}

fn load(device: &mut Envy<()>, at: Time, offset: u64) -> Span {
    device.load(at, offset, 8, &mut []).unwrap().end - at
}

fn store(device: &mut Envy<()>, at: Time, offset: u64) -> Span {
    device.store(at, offset, 8, &[]).unwrap().end - at
}

#[test]
fn words_take_160_ns() {
    let (mut device, now) = full(&setup(1, 8, 0));
    assert_eq!(load(&mut device, now, 0), ACCESS, "from flash");
    let now = now + Span::from_us(100);
    assert_eq!(device.load(now, 0, 32, &mut []).unwrap().end - now, ACCESS * 4, "four words");
    let now = now + Span::from_us(100);
    let across = device.load(now, 252, 8, &mut []).unwrap();
    assert_eq!(across.end - now, ACCESS * 2, "half a word of each of two pages");

    let (mut device, now) = full(&setup(1, 8, 4));
    let now = now + Span::from_ms(1);
    // The last four pages are in SRAM still.
    let last = device.capacity_bytes() - 256;
    assert_eq!(device.buffered_pages(), 4);
    assert_eq!(load(&mut device, now, last), ACCESS, "from SRAM");
    assert_eq!(store(&mut device, now + Span::from_us(9), last), ACCESS, "in place");
    assert_eq!(device.stats().copies_on_write, 0);
    assert_eq!(store(&mut device, now + Span::from_us(18), 0), ACCESS * 2, "the copy, then the word");
    assert_eq!(device.stats().copies_on_write, 1);
}

#[test]
fn a_missed_mapping_reads_the_table() {
    let setup = setup(1, 8, 0);
    let config = EnvyConfig { mapping_cache_entries: 4, ..setup.config() };
    let mut device = Envy::new(config, Nor::new(setup.nor(), ()), Ram::new(setup.ram(), ())).unwrap();
    let cycle = Span::from_ns(100);
    let at = |i: u64| Time::from_ns(1000 * i);
    assert_eq!(load(&mut device, at(1), 0), ACCESS + cycle);
    assert_eq!(load(&mut device, at(2), 8), ACCESS, "the same page");
    assert_eq!(load(&mut device, at(3), 4 * 256), ACCESS + cycle, "takes the place of page 0");
    assert_eq!(load(&mut device, at(4), 0), ACCESS + cycle);
    assert_eq!(device.stats().mapping_misses, 3);
}

#[test]
fn a_flush_takes_4160_ns_and_a_store_waits_for_it() {
    let (device, now) = full(&setup(1, 1, 0));
    let mut alone = device.clone();
    let stored = now + store(&mut alone, now, 0);
    assert_eq!(stored - now, ACCESS * 2);
    assert_eq!(alone.idle_at(stored).unwrap() - stored, RESUME + LONG, "one flush");
    let done = stored + RESUME + LONG;
    // A store that finds the only slot taken begins when the flush is done.
    for (at, waits) in [(done.before(PICO), PICO), (done, Span::ZERO), (done + PICO, Span::ZERO)] {
        let mut device = device.clone();
        store(&mut device, now, 0);
        assert_eq!(store(&mut device, at, 512), waits + ACCESS * 2, "at {} ps", at.ps());
        assert_eq!(device.stats().buffer_wait.ps(), waits.ps() as u128);
    }
}

#[test]
fn an_access_suspends_a_flush_and_the_flush_resumes_later() {
    let (device, now) = full(&setup(1, 8, 0));
    let mut device = device.clone();
    let stored = now + store(&mut device, now, 0);
    // In the middle of the flush: the load does not wait, the flush loses the load and the resume wait.
    let middle = stored + RESUME + Span::from_us(1);
    assert_eq!(load(&mut device, middle, 4096), ACCESS);
    let again = middle + ACCESS + Span::from_us(2);
    assert_eq!(load(&mut device, again, 4096), ACCESS, "during the resume wait");
    let resumed = again + ACCESS + RESUME;
    assert_eq!(device.idle_at(again + ACCESS).unwrap(), resumed + (LONG - Span::from_us(1)));
}

#[test]
fn with_several_dies_only_the_die_touched_is_suspended() {
    // A store to SRAM touches no die, unlike in the base design.
    let (mut base, start) = full(&setup(1, 8, 4));
    let base_stored = start + store(&mut base, start, 0);
    let hit = base.capacity_bytes() - 256;
    let touched = base_stored + RESUME + Span::from_us(1);
    store(&mut base, touched, hit);
    assert_eq!(
        base.idle_at(touched + ACCESS).unwrap(),
        touched + ACCESS + RESUME + (LONG - Span::from_us(1))
    );
    let (mut two, start) = full(&setup(2, 8, 4));
    let two_stored = start + store(&mut two, start, 0);
    let touched = two_stored + Span::from_us(1);
    let hit = two.capacity_bytes() - 256;
    store(&mut two, touched, hit);
    assert_eq!(two.idle_at(touched + ACCESS).unwrap(), two_stored + LONG);
}

#[test]
fn dies_flush_side_by_side() {
    for dies in [1, 2, 4, 8] {
        let (mut device, mut now) = full(&Setup { pages: 4096, ..setup(dies, 64, 0) });
        let begin = now;
        device.reset_stats();
        // Few enough that no segment has to be cleaned.
        for i in 0..4000 {
            now = device.write(now, Extent::one(Lpa(i * 7 % device.capacity_units())), &[]).unwrap().end;
        }
        let end = device.idle_at(now).unwrap();
        assert_eq!((device.stats().flushed_pages, device.stats().cleans), (4000, 0));
        let each = (end - begin).seconds() / 4000.0;
        let expected = LONG.seconds() / dies as f64;
        // In the base design each store takes the one path too, and the array waits behind it, except behind the
        // last ones, which fill the buffer.
        let store = if dies == 1 { (ACCESS + RESUME).seconds() * (4000.0 - 64.0) / 4000.0 } else { 0.0 };
        assert!(
            (each / (expected + store) - 1.0).abs() < 0.002,
            "{dies} dies: {each:e} s, not {expected:e} s"
        );
    }
}

/// 32 dies could flush a page every 130 ns; the path takes 160 ns for each.
#[test]
fn the_path_bounds_flushes() {
    let (mut device, mut now) = full(&Setup { pages: 1024, ..setup(32, 64, 0) });
    let begin = now;
    for i in 0..4000 {
        now = device.write(now, Extent::one(Lpa(i * 7 % device.capacity_units())), &[]).unwrap().end;
    }
    // The last flush has crossed the path when it begins.
    let each = (device.idle_at(now).unwrap() - begin - LONG).seconds() / 4000.0;
    assert!((each / ACCESS.seconds() - 1.0).abs() < 0.002, "{each:e} s");
}

#[test]
fn a_clean_takes_4160_ns_a_page_and_the_erase() {
    let setup = setup(1, 1, 0);
    let (mut device, mut now) = full(&setup);
    for i in 0.. {
        let stored = device.write(now, Extent::one(Lpa(i % 7)), &[]).unwrap().end;
        let idle = device.idle_at(stored).unwrap();
        if device.stats().cleans > 0 {
            // Copies, the flush behind them, then the erase. One SRAM record before the erase; those before the
            // copies are written while the array waits behind the store.
            let live = device.stats().clean_live_pages;
            assert_eq!((device.stats().cleans, device.stats().clean_pages), (1, live));
            assert!(live > 0, "nothing to copy");
            let record = Span::from_ns(100);
            assert_eq!(idle - stored, RESUME + LONG * (live + 1) + Span::from_ms(50) + record);
            return;
        }
        now = idle + Span::from_us(1);
    }
}

#[test]
fn transactions_take_a_cycle_and_an_abort_one_for_each_page() {
    let (mut device, now) = full(&setup(1, 8, 0));
    let begun = device.begin(now).unwrap().end;
    assert_eq!(begun - now, ACCESS);
    let mut at = begun;
    for lpa in [0, 5, 5, 9] {
        at += store(&mut device, at, lpa * 256) + Span::from_ms(1);
    }
    let mut other = device.clone();
    assert_eq!(device.commit(at).unwrap().end - at, ACCESS);
    assert_eq!(other.abort(at).unwrap().end - at, ACCESS * 4, "three pages and the record");
}

/// A page stored word after word is copied first, like any other: the first word does not say that the rest follows.
#[test]
fn a_page_stored_word_after_word_is_copied_once() {
    let (mut device, now) = full(&setup(1, 8, 0));
    let stored = device.store(now, 0, 512, &[]).unwrap().end;
    assert_eq!(stored - now, ACCESS * (2 * 32 + 2), "two pages of 32 words and their copies");
    assert_eq!(device.stats().copies_on_write, 2);
    let crossed = device.write(stored, Extent::one(Lpa(8)), &[]).unwrap().end;
    assert_eq!(crossed - stored, ACCESS, "a page that crosses the path at once");
    assert_eq!(device.stats().copies_on_write, 2);
}

/// What the flash is charged with: the cycles in which it is read, not those of the SRAM on the same path.
#[test]
fn flash_counts_its_own_reads() {
    for dies in [1, 2] {
        let (mut device, start) = full(&setup(dies, 8, 4));
        let last = device.capacity_bytes() - 256;
        let mut now = start;
        let after = |end: Time| end + Span::from_us(20);
        now = after(device.load(now, last, 8, &mut []).unwrap().end);
        now = after(device.store(now, last, 8, &[]).unwrap().end);
        now = after(device.begin(now).unwrap().end);
        now = after(device.commit(now).unwrap().end);
        assert_eq!(device.nor().stats().reads, 0, "{dies} dies: the page is in SRAM");
        assert_eq!(device.nor().stats().read_time.ps(), 0);
        now = after(device.load(now, 0, 32, &mut []).unwrap().end);
        assert_eq!(device.nor().stats().reads, 4, "{dies} dies: four words");
        now = after(device.store(now, 0, 8, &[]).unwrap().end);
        assert_eq!(device.nor().stats().reads, 5, "{dies} dies: the copy");
        device.read(now, Extent::one(Lpa(5)), &mut []).unwrap();
        assert_eq!(device.nor().stats().reads, 6, "{dies} dies: a page over the path");
        assert_eq!(device.nor().stats().read_time.ps(), (ACCESS * 6).ps() as u128);
    }
}

/// The same requests take the same time whether or not payload is kept, and count the same.
#[test]
fn payload_changes_no_time() {
    let (mut waits, mut moved) = (Span::ZERO, 0);
    for (seed, setup) in setups().into_iter().enumerate() {
        let (mut keeps, mut plain) = (setup.device(), setup.timing_only());
        let mut model = Model::new(keeps.capacity_bytes());
        let mut rng = Rng::stream(seed as u64, "payload");
        let mut now = Time::ZERO;
        for i in 0..3000 {
            let ask = draw(&mut rng, &setup);
            let data = vec![0xA5; 3 * setup.page_bytes as usize];
            let end = perform(&mut keeps, &mut model, now, ask);
            let bare = perform_bare(&mut plain, now, ask, &data);
            assert_eq!(end.ps(), bare.ps(), "request {i}, {ask:?} at {} ps, {setup:?}", now.ps());
            now += match rng.below(3) {
                0 => end - now,
                // Two that ask at the same time.
                1 => Span::ZERO,
                _ => (end - now) + Span::from_ns(rng.below(30_000)),
            };
            if i % 256 == 0 {
                keeps.settle(now);
            }
        }
        assert_eq!(keeps.stats(), plain.stats(), "{setup:?}");
        assert_eq!(keeps.nor().stats(), plain.nor().stats(), "{setup:?}");
        assert_eq!(keeps.idle_at(now).unwrap(), plain.idle_at(now).unwrap(), "{setup:?}");
        if setup.dies > 1 {
            waits += Span::from_ps(plain.stats().buffer_wait.ps() as u64);
            moved += plain.stats().transfer_pages;
        }
    }
    assert!(waits > Span::from_ms(100) && moved > 100, "{waits:?}, {moved} pages between dies");
}

/// The request alone, on a device that keeps nothing.
fn perform_bare(device: &mut Envy<()>, at: Time, ask: Ask, data: &[u8]) -> Time {
    let served = match ask {
        Ask::Load { offset, bytes } => device.load(at, offset, bytes, &mut []),
        Ask::Store { offset, bytes } => device.store(at, offset, bytes, data),
        Ask::WritePages(extent) => device.write(at, extent, data),
        Ask::Trim(extent) => device.trim(at, extent),
        Ask::Begin => device.begin(at),
        Ask::Commit => device.commit(at),
        Ask::Abort => device.abort(at),
    };
    served.map_or(at, |served| served.end)
}
