//! A device that is said to be steady, and what becomes of that.

use nvlab_design::Design;
use nvlab_report::{run_text, warnings};
use nvlab_run::plan::{Settings, Source, Task};
use nvlab_run::result::RunResult;
use nvlab_run::{RunError, State, run_requests};
use nvlab_workload::Serves;

fn run_on(design: Design, workload: &str, until: &str, state: State) -> Result<RunResult, RunError> {
    let source = Source::read(workload, None).unwrap();
    let settings = Settings { seed: 1, until: Some(until.parse().unwrap()), state: state.into() };
    Task::new(design, "bench-4g".into(), &source, settings).unwrap().run(&mut |_, _| true)
}

/// A run that is too short for what it says has a sign before the figure.
#[test]
fn a_run_that_is_too_short_says_so() {
    let short = run_on(design(), "uniform rw=randwrite bs=4KiB qd=8", "5k io", State::Steady).unwrap();
    let doubts = short.doubts("waf");
    assert!(!doubts.is_empty());
    let text = run_text(&short, Default::default());
    assert!(text.contains(&format!("! WA {}", doubts[0])), "{text}");
}

/// A die of 230 blocks of 1 MiB, whose wear is levelled when it has drifted 100 erases apart.
fn design() -> Design {
    let sets = [
        "media.nand.blocks=230",
        "media.nand.endurance=1000",
        "ftl.streams=host-and-relocated",
        "ftl.wear.kind=static",
        "ftl.wear.threshold=100",
    ];
    Design::load("bench-4g", &sets.map(String::from)).unwrap_or_else(|errors| panic!("{errors}"))
}

const HALF: &str = "uniform rw=randwrite bs=4KiB qd=8 span=50%";

/// Half of a drive is overwritten at random, the other half never: levelling begins long after write amplification is constant.
/// It had been 2.3 then and 3.8 afterwards, and nothing was said.
#[test]
fn what_wear_levelling_will_change_is_said_before() {
    let run = |requests: u64| run_on(design(), HALF, &format!("{requests} io"), State::Steady).unwrap();
    let short = run(50_000);
    let now = short.write_amplification.total;
    assert!(short.precondition.converged && short.write_amplification.wear == 0.0, "{short:?}");
    let later = short.lifetime.levelling.expect("it has not begun");
    // Of the 230 blocks, 101 are never written again: at most 101 / 230 / 100 of all programs are for levelling.
    assert!((later.write_amplification / now - 1.0 / (1.0 - 0.44 / 100.0)).abs() < 0.0005, "{later:?} {now}");
    // Until it begins cells last as before, and then by so much less.
    let rated = 230.0 * 1000.0 * (1 << 20) as f64;
    let share = later.from_life_share;
    let lasting = rated * (share / now + (1.0 - share) / later.write_amplification);
    assert!((short.lifetime.host_bytes.unwrap() / lasting - 1.0).abs() < 0.01, "{:?}", short.lifetime);
    // It begins when it is said to begin: at so many cycles of the mean block.
    let cycles = share * 1000.0 - short.flash.as_ref().unwrap().cycles_mean;
    let requests = (cycles * 230.0 * 256.0 / now) as u64;
    let before = run(50_000 + requests * 3 / 4);
    let after = run(50_000 + requests * 3 / 2);
    assert_eq!(before.write_amplification.wear, 0.0, "{requests} requests until {share} of its life");
    assert!(after.write_amplification.wear > 0.0, "{requests} requests until {share} of its life");
    // And it costs what it is said to cost.
    let long = run(3_000_000);
    let wa = &long.write_amplification;
    assert!(wa.wear > 0.003 && (wa.total / now - 1.0).abs() < 0.02, "{wa:?} after {now}");
    assert_eq!(long.lifetime.levelling, None);
    for run in [&short, &before, &after, &long] {
        assert_eq!(warnings(run), [""; 0]);
    }
}

/// A write buffer that is always full absorbs more overwrites than one that has time: the small drive was prepared to 1.94 and ran at
/// 2.94.
#[test]
fn a_device_is_prepared_at_the_pace_of_its_run() {
    let sets = ["media.tlc.blocks=24", "ftl.spare=30 %", "ftl.map.checkpoint=256 MiB"].map(String::from);
    let design = Design::load("ssd-tlc", &sets).unwrap_or_else(|errors| panic!("{errors}"));
    let run = run_on(design, "zipf rw=randwrite bs=4KiB rate=20k/s", "2M io", State::Steady).unwrap();
    let prepared = &run.precondition;
    assert!(prepared.converged && prepared.own_pace_bytes > 0, "{prepared:?}");
    let (was, is) = (prepared.last_windows[1], run.write_amplification.total);
    assert!((is / was - 1.0).abs() < 0.05, "{is}, prepared to {was}");
}

/// One request in five trims a place, four write one: each place was last written with a probability of four fifths.
#[test]
fn what_trims_leave_is_said() {
    let trims =
        run_on(design(), "uniform rw=randwrite bs=4KiB qd=8 trim=20%", "20k io", State::Steady).unwrap();
    let held = trims.precondition.held.expect("a page map tells");
    assert!((held - 0.8).abs() < 0.005, "{held}");
    assert!(trims.precondition.about.contains("80 % holds data"), "{}", trims.precondition.about);
    let writes = run_on(design(), HALF, "20k io", State::Steady).unwrap();
    assert_eq!(writes.precondition.held, None);
}

/// A device is prepared by writes to a third of it and then written to everywhere: the data that lay still lies among the rest.
#[test]
fn a_run_that_leaves_the_steady_state_says_so() {
    let open = |text: &str| Source::read(text, None).unwrap();
    let (all, third) =
        (open("uniform rw=randwrite bs=4KiB qd=8"), "uniform rw=randwrite bs=4KiB qd=8 span=33%");
    let settings = Settings { seed: 1, until: Some("500k io".parse().unwrap()), state: State::Steady.into() };
    let third = open(third);
    let task = Task::new(design(), "bench-4g".into(), &all, settings).unwrap();
    let requests = |source: &Source, seed| {
        let opened = source.open(design().capacity_bytes(), Serves::Blocks, seed).unwrap();
        opened.work.requests().unwrap()
    };
    let (mut work, mut own) = (requests(&all, 1), requests(&third, 2));
    let run =
        run_requests(&design(), &task.plan, &mut *work, Some(&mut *own), None, &mut |_, _| true).unwrap();
    let (converged, found) = (run.precondition.last_windows[1], run.write_amplification.total);
    assert!(run.precondition.converged && found > 1.1 * converged, "{converged} and {found}");
    let notes = warnings(&run);
    let begin = "write amplification was ";
    assert!(notes.len() == 1 && notes[0].starts_with(begin), "{notes:?}");
    assert!(notes[0].contains(&format!("but {converged:.2} at the end of preconditioning")), "{notes:?}");
    assert!(notes[0].contains("(cleaning "), "{notes:?}");
    // The same device under what it was prepared by keeps its promise.
    let mut same = requests(&third, 1);
    let mut own = requests(&third, 2);
    let kept =
        run_requests(&design(), &task.plan, &mut *same, Some(&mut *own), None, &mut |_, _| true).unwrap();
    assert_eq!(warnings(&kept), [""; 0]);
}
