//! The power fails at every request: before, during and after, and again during recovery. With energy for every dirty line
//! nothing acknowledged is lost; with less, exactly the lines that were not in time; without, what was not flushed.

use crate::cached::device::{
    AMPLE, Ask, Device, LINE, LINE_WORDS, Model, Setup, WORD, draw, perform, read_all, setups,
};
use nvlab_controller::{Background, Cached, Controller, Powered};
use nvlab_medium::ram::Backup;
use nvlab_units::{Extent, Lpa, Rng, Span, Time};

/// What is acknowledged is durable at once.
fn protects(setup: &Setup) -> bool {
    setup.backup == AMPLE
}

fn acknowledge(setup: &Setup, model: &mut Model, ask: Ask) {
    match (ask, ask.changes()) {
        (Ask::Flush, _) => model.durable(model.all()),
        // What a trim leaves may be any earlier version, unless the page map can promise more.
        (Ask::Trim(_), Some(words)) if setup.buffer == Some(true) => model.durable(words),
        (Ask::Trim(_), _) => {}
        (_, Some(words)) if protects(setup) => model.durable(words),
        _ => {}
    }
}

/// A trim that is not durable may bring back any version before it.
fn forget_trimmed(setup: &Setup, model: &mut Model, ask: Ask) {
    if let (Ask::Trim(_), Some((first, count)), false) = (ask, ask.changes(), setup.buffer == Some(true)) {
        model.may_go_back((first, count));
    }
}

/// Cuts at `cut`, checks, cuts the recovery, checks, continues to write, checks.
fn cut_and_check(setup: &Setup, device: &Device, model: &Model, cut: Time, context: &dyn Fn() -> String) {
    let (mut after, report) = device.clone().power_cycle(cut).unwrap();
    after.check();
    assert_eq!(after.dirty_lines(), 0);
    let ready = cut + report.time;
    let found = read_all(&mut after.clone(), ready);
    (0..).zip(&found).for_each(|(word, &found)| model.identify(word, found, context));
    for eighth in [1, 5] {
        let second = ready + report.time * eighth / 8;
        let (mut twice, later) = after.clone().power_cycle(second).unwrap();
        assert_eq!(read_all(&mut twice, second + later.time), found, "{} and again", context());
    }
    let mut model = model.clone();
    model.settle_on(&found);
    let (mut rng, mut now) = (Rng::new(cut.ps()), ready);
    for nth in 0..20 {
        let ask = draw(&mut rng, after.capacity_units(), nth);
        now = perform(&mut after, &mut model, now, ask).unwrap();
        forget_trimmed(setup, &mut model, ask);
    }
    after.check();
}

fn cut_everywhere(setup: &Setup, seed: u64) {
    let mut device = setup.device();
    let lines = device.capacity_units();
    let (mut model, mut rng) = (Model::new(lines), Rng::stream(seed, "cuts"));
    let mut now = Time::ZERO;
    for nth in 0..90 {
        let ask = draw(&mut rng, lines, nth);
        device.settle(now);
        let end = perform(&mut device, &mut model, now, ask).unwrap();
        forget_trimmed(setup, &mut model, ask);
        let context = |cut: Time| format!("seed {seed}, cut at {} ps after {ask:?} of {setup:?}", cut.ps());
        let within = now + end.since(now) * rng.below(1000) / 1000;
        let after = end + Span::from_ns(rng.below(400_000));
        if nth > 20 {
            for cut in [now, within] {
                cut_and_check(setup, &device, &model, cut, &|| context(cut));
            }
        }
        acknowledge(setup, &mut model, ask);
        if nth > 20 {
            for cut in [end, after] {
                cut_and_check(setup, &device, &model, cut, &|| context(cut));
            }
        }
        now = if rng.chance(0.5) { end } else { after };
    }
}

#[test]
fn with_energy_for_every_line_nothing_acknowledged_is_lost() {
    for (seed, setup) in setups(AMPLE).iter().enumerate() {
        cut_everywhere(setup, seed as u64);
    }
}

#[test]
fn with_less_or_none_nothing_flushed_is_lost() {
    let short = Backup::Capacitor { hold: Span::from_us(300) };
    for (seed, backup) in [short, Backup::None].into_iter().enumerate() {
        for (nth, setup) in setups(backup).iter().enumerate() {
            cut_everywhere(setup, (seed * 100 + nth) as u64);
        }
    }
}

/// The test itself must be able to fail: without energy a store is lost.
#[test]
#[should_panic(expected = "durable is 1")]
fn an_early_acknowledgement_is_caught() {
    let setup = setups(Backup::None)[8];
    let mut device = setup.device();
    let mut model = Model::new(device.capacity_units());
    let end = perform(&mut device, &mut model, Time::ZERO, Ask::Store(3, 1)).unwrap();
    model.durable((3, 1));
    cut_and_check(&setup, &device, &model, end, &|| "a store".into());
}

/// One line for each set: frames, and so the order in which they are written back, are those of the lines.
fn direct_mapped(hold: Span) -> Setup {
    Setup {
        sets: 64,
        ways: 1,
        line_units: 1,
        dirty_lines_max: 64,
        prefetch_lines: 0,
        write_backs: 1,
        backup: Backup::Capacitor { hold },
        buffer: Some(true),
    }
}

/// How many of 64 dirty lines survive a cut with energy for `hold`; they must be the first ones, each whole.
fn survivors(hold: Span) -> usize {
    let setup = direct_mapped(hold);
    let mut device = setup.device();
    let mut model = Model::new(device.capacity_units());
    let lines = Extent { start: Lpa(0), count: 64 };
    let mut now =
        perform(&mut device, &mut model, Time::ZERO, Ask::Write(Extent { count: 32, ..lines })).unwrap();
    now = perform(&mut device, &mut model, now, Ask::Write(Extent { start: Lpa(32), count: 32 })).unwrap();
    now = perform(&mut device, &mut model, now, Ask::Store(5, 1)).unwrap();
    assert_eq!(device.dirty_lines(), 64);
    let (mut after, report) = device.power_cycle(now).unwrap();
    assert!(report.time >= hold.min(Span::from_us(1)), "the flush takes its time: {}", report.time);
    let found = read_all(&mut after, now + report.time);
    let whole: Vec<bool> = found
        .chunks(LINE_WORDS as usize)
        .enumerate()
        .take(64)
        .map(|(line, words)| {
            let first = line as u32 * LINE_WORDS;
            let new = (first..).zip(words).all(|(word, &found)| found == model.current(word));
            assert!(new || words.iter().all(|&word| word == 0), "line {line} is of two times: {words:?}");
            new
        })
        .collect();
    let count = whole.iter().take_while(|&&new| new).count();
    assert!(whole[count..].iter().all(|&new| !new), "not the first ones: {whole:?}");
    count
}

/// Each line takes 2 us of firmware, 1 us in the buffer behind, and its way out of the memory; when the buffer is full (16
/// units), two dies program two units each in 200 us.
#[test]
fn as_many_lines_survive_as_the_energy_is_for() {
    assert_eq!(survivors(Span::ZERO), 0);
    assert_eq!(survivors(Span::from_ms(20)), 64);
    let each = 2_000 + 1_000 + 60 + LINE_WORDS as u64 * 3;
    for lines in [1, 2, 5, 10, 14] {
        let hold = Span::from_ns(each * lines);
        assert_eq!(survivors(hold), lines as usize, "{hold}");
        // The last was on its way: it may be there or not.
        let fewer = survivors(hold.saturating_sub(Span::from_ns(1)));
        assert!((lines as usize - 1..=lines as usize).contains(&fewer), "{hold}: {fewer}");
    }
    let counts: Vec<usize> = (0..40).map(|nth| survivors(Span::from_us(100 * nth))).collect();
    assert!(counts.is_sorted(), "{counts:?}");
    // Programs of 4 units in 200 us, less what is in the buffer: 64 lines in (64 - 16) / 4 x 200 us.
    let needed = 100 * counts.iter().position(|&count| count == 64).unwrap() as u64;
    assert!((2_000..=3_200).contains(&needed), "{needed} us");
}

/// A process that is killed leaves the memory and what is behind: a later one writes back what was dirty.
#[test]
fn what_a_killed_process_left_is_found_again() {
    for (seed, setup) in setups(AMPLE).iter().filter(|setup| setup.buffer == Some(true)).enumerate() {
        let mut device = setup.device();
        let lines = device.capacity_units();
        let (mut model, mut rng, mut now) = (Model::new(lines), Rng::new(seed as u64), Time::ZERO);
        for nth in 0..400 {
            now = perform(&mut device, &mut model, now, draw(&mut rng, lines, nth)).unwrap();
        }
        let now = device.idle_at(now).unwrap();
        // The page map recovers as after a cut; the memory of the cache is what it was.
        let (behind, _) = device.behind().clone().power_cycle(now).unwrap();
        let ram = device.into_ram();
        let (mut again, ready) = Cached::reopen(setup.cached(), behind, ram, now).unwrap();
        assert!(ready >= now && again.dirty_lines() == 0);
        again.check();
        let found = read_all(&mut again, ready);
        assert!((0..).zip(&found).all(|(word, &found)| found == model.current(word)), "seed {seed}");
        // Nothing is marked any more: the next start finds nothing to write back.
        let (behind, _) = again.behind().clone().power_cycle(ready).unwrap();
        let (last, _) = Cached::reopen(setup.cached(), behind, again.into_ram(), ready).unwrap();
        assert_eq!(last.stats().written_back, 0);
    }
    assert_eq!(LINE, WORD * LINE_WORDS);
}
