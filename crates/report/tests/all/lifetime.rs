//! Lifetime follows from what was programmed: no run, however short and whatever came before it, promises more than rated
//! cycles times the bytes of the flash.

use nvlab_design::{BUILT_IN, Design, Ftl};
use nvlab_report::{Assertion, Format, NameStyle, RunDocument, compare_text};
use nvlab_run::metric::metric;
use nvlab_run::plan::{Settings, Source, Task};
use nvlab_run::result::RunResult;
use nvlab_run::{Preparation, State};
use std::sync::atomic::{AtomicUsize, Ordering};

const WRITES: &str = "uniform rw=randwrite bs=16KiB";
/// Larger devices are not preconditioned to a steady state here: it takes too long.
const STEADY_BYTES: u64 = 128 << 20;

fn run(design: Design, workload: &str, until: &str, state: State) -> RunResult {
    let source = Source::read(workload, None).unwrap();
    let settings = Settings { seed: 1, until: Some(until.parse().unwrap()), state: state.into() };
    let name = design.name.clone();
    Task::new(design, name, &source, settings).unwrap().run(&mut |_, _| true).unwrap()
}

fn load(name: &str, sets: &[&str]) -> Design {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    Design::load(name, &sets).unwrap_or_else(|errors| panic!("{name}: {errors}"))
}

/// The design with so few blocks that writing it takes only a moment.
fn small(name: &str) -> Design {
    let medium = load(name, &[]).ftl.medium().to_string();
    let blocks = |count: u32| format!("media.{medium}.blocks={count}");
    let more = |count, more: &[&str]| {
        [vec![blocks(count)], more.iter().map(|set| set.to_string()).collect()].concat()
    };
    // What is used in place has a size instead.
    let in_place = vec![format!("media.{medium}.size=12 MiB")];
    // A memory has segments of 16 MiB; some name the bytes of the host.
    let memory = ["media.flash.block=256 KiB", "media.flash.erase=781.25 us", "ftl.buffer.size=256 KiB"];
    let named = more(64, &["ftl.capacity=4 MiB"]);
    let plain = [16, 32, 64, 128].map(|count| more(count, &[]));
    let tried = [more(16, &memory)].into_iter().chain(plain).chain([named, in_place]);
    let found = tried.into_iter().find_map(|sets| {
        let design = Design::load(name, &sets).ok()?;
        // Some designs turn out to be impossible only when built.
        let source = Source::read(writes(&design), None).unwrap();
        let settings = Settings { seed: 1, until: Some("1 io".parse().unwrap()), state: State::Full.into() };
        Task::new(design.clone(), name.into(), &source, settings).ok()?.run(&mut |_, _| true).ok()?;
        Some(design)
    });
    found.unwrap_or_else(|| panic!("{name} cannot be made small"))
}

/// Writes that a design takes.
fn writes(design: &Design) -> &'static str {
    match design.ftl {
        Ftl::Zoned(_) => "sequential bs=16KiB qd=32",
        _ => WRITES,
    }
}

/// The share of the cells' life that the programs of a run take, of the array that is worn out first.
fn worn_share(design: &Design, run: &RunResult) -> f64 {
    if let Ftl::Direct(_) = &design.ftl {
        // Disks do not wear.
        return run.pram.as_ref().map_or(0.0, |pram| pram.line_writes_mean / pram.rated_writes as f64);
    }
    let data = match &design.ftl {
        Ftl::Envy(envy) => envy.nor_config(design, 1).flash,
        _ => design.flash_config(1),
    };
    let log = match &design.ftl {
        Ftl::Blocks(blocks) => design.log_config(blocks, 1),
        _ => None,
    };
    let share = |role: &str, pages: u64| {
        let Some(medium) = run.media.iter().find(|medium| medium.role == role) else { return 0.0 };
        medium.programs as f64 / (medium.rated_cycles as f64 * medium.blocks as f64 * pages as f64)
    };
    let slc = design.ftl.slc().map_or(1, |slc| slc.mode.pages_per_block);
    let data = share("data", data.geometry.pages_per_block as u64) + share("slc", slc as u64);
    data.max(log.map_or(0.0, |log| share("log", log.geometry.pages_per_block as u64)))
}

#[test]
fn no_design_promises_more_than_its_cells_bear() {
    // A log serves no requests for blocks, a RAM disk has no cells that wear.
    let left_out = |name: &str| matches!(load(name, &[]).ftl, Ftl::Rvm(_) | Ftl::RamDisk(_));
    let names: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).filter(|name| !left_out(name)).collect();
    let next = AtomicUsize::new(0);
    let check = |name: &str| {
        let design = small(name);
        for state in [State::Fresh, State::Full, State::Steady] {
            if state == State::Steady && design.raw_bytes() > STEADY_BYTES {
                continue;
            }
            let run = run(design.clone(), writes(&design), "200 io", state);
            let (what, worn) = (format!("{name} {}", state.name()), worn_share(&design, &run));
            let Some(promised) = run.lifetime.host_bytes else {
                assert_eq!(worn, 0.0, "{what}: programmed, and lasts without end");
                continue;
            };
            let asked = (run.write.count * 16384) as f64;
            assert!(promised * worn <= asked * 1.000_001, "{what}: {promised:e} bytes, {worn:e} for {asked}");
            let per_day = promised / run.design.capacity_bytes as f64 / (5.0 * 365.25);
            assert!((run.lifetime.drive_writes_per_day.unwrap() / per_day - 1.0).abs() < 1e-9, "{what}");
        }
    };
    let check_some = || {
        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            check(name);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(check_some);
        }
    });
}

/// 3,000 cycles of 129 GiB are 0.42 PB. Erases lag behind programs after `full` and `fresh`: counted alone they promised
/// 24 PB and 108 drive writes a day.
#[test]
fn a_short_run_after_full_is_not_taken_for_a_long_life() {
    for state in [State::Fresh, State::Full] {
        let run = run(small("ssd-tlc"), "uniform rw=randwrite bs=4KiB qd=32", "3000 io", state);
        // What the write buffer absorbed wears nothing.
        let absorbed = run.write_amplification.total.min(1.0);
        let most = run.lifetime.rated_cycles as f64 * run.design.raw_bytes as f64 / absorbed;
        let promised =
            run.lifetime.host_bytes.unwrap_or_else(|| panic!("{}: nothing is promised", state.name()));
        assert!(promised <= most * (1.0 + 1e-9), "{}: {promised:e} of {most:e}", state.name());
        assert!(promised > most / 50.0, "{}: {promised:e} of {most:e}", state.name());
        assert_eq!(
            run.lifetime.years_worst_block,
            None,
            "blocks were erased {} times",
            run.flash.as_ref().unwrap().cycles_mean
        );
    }
}

/// Which erases fall into a short run is an accident: counted where they are more than the blocks filled, and only there, they
/// promised less on average than the same device does in the long run.
#[test]
fn short_runs_promise_on_average_what_a_long_one_does() {
    let sets = ["media.nand.blocks=24", "media.nand.pages=64", "array.channels=4", "ftl.spare=20%"];
    let design = load("bench-4g", &sets);
    let of = |until: String, seed: u64| {
        let source = Source::read("uniform rw=randwrite bs=4KiB qd=4", None).unwrap();
        let state = Preparation { seed, ..State::Steady.into() };
        let settings = Settings { seed, until: Some(until.parse().unwrap()), state };
        Task::new(design.clone(), "bench-4g".into(), &source, settings)
            .unwrap()
            .run(&mut |_, _| true)
            .unwrap()
    };
    let written = |run: &RunResult| run.write.bytes as f64;
    let life = |run: &RunResult| written(run) / run.media[0].cycles;
    let long = of("60 x capacity".into(), 1);
    let erased = long.media[0].erases as f64 / long.media[0].blocks as f64;
    assert!((long.media[0].cycles / erased - 1.0).abs() < 0.01, "{:?}", long.media[0]);
    // A few dozen blocks are filled in each, and the four dies clean nearly at the same time.
    let short: Vec<RunResult> =
        (0..24).map(|number| of(format!("{} io", 640 + 28 * number), 2 + number)).collect();
    let cycles: f64 = short.iter().map(|run| run.media[0].cycles).sum();
    let mean = short.iter().map(written).sum::<f64>() / cycles;
    assert!((mean / life(&long) - 1.0).abs() < 0.02, "{mean:e} and {:e}", life(&long));
    let larger =
        |run: &RunResult| run.media[0].cycles.max(run.media[0].erases as f64 / run.media[0].blocks as f64);
    let before = short.iter().map(written).sum::<f64>() / short.iter().map(larger).sum::<f64>();
    assert!(before < 0.997 * life(&long), "the larger of two counts: {before:e} and {:e}", life(&long));
}

/// A block that is erased before it is full costs a whole cycle.
#[test]
fn what_was_not_programmed_of_an_erased_block_is_used_up() {
    let run = run(small("mlc-bast"), "uniform rw=randwrite bs=4KiB", "3 x capacity", State::Full);
    let data = &run.media[0];
    let pages = data.programmed_bytes as f64 / (run.design.raw_bytes as f64 / data.blocks as f64);
    let erases = data.erases as f64;
    assert!(pages < 0.9 * erases, "{pages} blocks of programs, {erases} erases");
    assert!((data.cycles * data.blocks as f64 / erases - 1.0).abs() < 0.01, "{data:?}");
}

/// What a cache in SLC mode took has not been programmed to the cells with all bits yet, but it will be: before anything was
/// folded, 970-evo-plus-250gb promised 1.89 PB, and all its TLC allow 0.825.
#[test]
fn what_waits_in_a_cache_counts_as_folded() {
    let mut unfolded = 0;
    let cases = [
        ("970-evo-plus-250gb", State::Fresh),
        ("tlc-pslc", State::Fresh),
        ("qlc-pslc", State::Fresh),
        ("hybrid-slc-mlc", State::Full),
    ];
    for (name, state) in cases {
        let run = run(small(name), "sequential rw=write bs=16KiB", "0.004 x capacity", state);
        let (data, cache) = (&run.media[0], &run.media[1]);
        assert!(cache.programs > 0, "{name}: {cache:?}");
        unfolded += (data.programs < cache.programs / 5) as u32;
        // Nothing is written twice, so all of it will be.
        assert!(data.programmed_bytes >= run.write.bytes, "{name}: {data:?} {cache:?}");
        let most = run.write.bytes as f64 * data.rated_cycles as f64 / data.cycles;
        let promised = run.lifetime.host_bytes.unwrap();
        assert!(promised <= 1.000_001 * most, "{name}: {promised:e} of {most:e}");
    }
    assert!(unfolded >= 3, "{unfolded}");
}

fn verdict(text: &str, run: &RunResult) -> (bool, String) {
    let verdict = Assertion::parse(text).unwrap().check(run).unwrap_or_else(|error| panic!("{error}"));
    (verdict.holds, verdict.text)
}

#[test]
fn without_end_is_only_what_programs_nothing() {
    let reads = run(small("ssd-tlc"), "uniform rw=randread bs=4KiB", "100 io", State::Full);
    assert_eq!(reads.lifetime.years, None);
    let (holds, text) = verdict("lifetime > 5 years", &reads);
    assert!(holds && text.ends_with("lifetime is unlimited: nothing was programmed"), "{text}");
    // A memory whose buffer holds all that was stored: it is not known what will have to be programmed.
    let stores = run(small("envy"), "uniform rw=randwrite bs=512B", "20 io", State::Fresh);
    assert_eq!((stores.flash.as_ref().unwrap().programs, stores.lifetime.years), (0, None));
    let (holds, text) = verdict("lifetime > 5 years", &stores);
    assert!(!holds && text.contains("lifetime is undetermined: no host data"), "{text}");
    assert!(!verdict("lifetime < 5 years", &stores).0, "neither answer is true");
    let error = Assertion::parse("log.lifetime > 5 years").unwrap().check(&reads).unwrap_err();
    assert!(error.ends_with("has no log.lifetime"), "a drive without a log: {error}");
}

/// A slower device wears more slowly: that is no merit.
#[test]
fn a_closed_loop_compares_bytes_not_years() {
    let of = |workload: &str| run(small("ssd-tlc"), workload, "3000 io", State::Full);
    let table = |run: &RunResult| {
        let groups = [vec![run.clone()], vec![run.clone()]];
        compare_text::<&str>(&groups, &[], Format::Csv, NameStyle::Whole).unwrap()
    };
    let closed = table(&of("uniform rw=randwrite bs=4KiB qd=32"));
    assert!(closed.contains("lifetime.bytes") && closed.contains("lifetime.dwpd"), "{closed}");
    assert!(!closed.contains("lifetime_years"), "{closed}");
    let open = table(&of("uniform rw=randwrite bs=4KiB rate=10k/s"));
    assert!(open.contains("lifetime_years") && !open.contains("lifetime.dwpd"), "{open}");
}

/// Ends before or after the space that was erased at its beginning has been regained: below, its lifetime is told to be without the
/// cost of cleaning, above it is not; in between write amplification still grows.
#[test]
fn a_lifetime_without_cleaning_says_so() {
    let small = ["media.mlc.blocks=64", "ftl.spare=20%", "ftl.buffer.size=1MiB"];
    let design = || load("ssd-mlc-2010", &small);
    let of = |until: &str, state| {
        let run = run(design(), WRITES, until, state);
        (metric("lifetime.regained", &run).unwrap(), run.lifetime.caveat.clone(), run)
    };
    let (regained, note, fresh) = of("0.9 x capacity", State::Fresh);
    assert!(regained < 0.1, "{regained}");
    let note = note.unwrap();
    assert!(note.starts_with("the lifetime does not include the cost of cleaning ("), "{note}");
    let (_, none, steady) = of("2 x capacity", State::Steady);
    assert_eq!(none, None);
    assert!(fresh.lifetime.host_bytes.unwrap() > 1.5 * steady.lifetime.host_bytes.unwrap());
    // A short run of a steady device has too few erases to say anything.
    let (_, few, _) = of("20 io", State::Steady);
    assert!(few.is_some());
    // From a full drive the note ends where the share says so, neither earlier nor later.
    let mut told = Vec::new();
    for capacities in ["0.1", "0.3", "1", "3", "10"] {
        let (regained, note, _) = of(&format!("{capacities} x capacity"), State::Full);
        assert_eq!(note.is_some(), regained < 0.9, "{capacities}: {regained}");
        told.push(note.is_some());
    }
    assert!(told[0] && !told[4] && told.is_sorted_by(|a, b| a >= b), "{told:?}");
    // People and programs are told.
    let text = nvlab_report::run_text(&fresh, Default::default());
    let document = serde_json::to_value(RunDocument::new(&fresh, &[])).unwrap();
    assert!(text.contains("! the lifetime does not include the cost of cleaning"), "{text}");
    assert_eq!(document["notes"][0].as_str(), Some(note.as_str()));
    let document = serde_json::to_value(RunDocument::new(&steady, &[])).unwrap();
    let notes: Vec<_> =
        document["notes"].as_array().into_iter().flatten().filter_map(|note| note.as_str()).collect();
    assert!(notes.iter().all(|note| !note.contains("cost of cleaning")), "{notes:?}");
    let compared =
        compare_text(&[vec![fresh], vec![steady]], &["lifetime.bytes"], Format::Human, NameStyle::Whole)
            .unwrap();
    assert!(compared.contains("the lifetime does not include the cost of cleaning"), "{compared}");
}
