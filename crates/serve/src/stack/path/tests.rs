//! The arithmetic of paths: differences, sums, and their file.

use super::Group::{Block, Entry, Files};
use super::*;
use crate::stack::Part::Client;
use crate::stack::{Sample, Series};
use toml::{Table, Value};

/// Every layer takes another time, the same in every round; those that wait, a hundred times as long.
fn measured(rounds: u32) -> Measured {
    let series = Layer::ALL.iter().zip(1u32..).flat_map(|(&layer, number)| {
        let client = 1000.0 * number as f64;
        let server = if layer >= Layer::Loop { 300.0 * number as f64 } else { 0.0 };
        let wall = client + server + if layer >= Layer::Loop { 5000.0 } else { 0.0 };
        [Op::Read, Op::Write].into_iter().filter(move |op| layer.has(*op)).map(move |op| {
            let samples = vec![Sample { wall, client, server }; rounds as usize];
            Series { layer, op, requests: 1, samples, disturbed: 0 }
        })
    });
    let options = StackOptions { rounds, ..StackOptions::default() };
    Measured { options, series: series.collect(), missing: Vec::new(), asleep: None }
}

fn with(mut measured: Measured, layer: Layer, change: impl Fn(usize, &mut Sample)) -> Measured {
    for series in measured.series.iter_mut().filter(|series| series.layer == layer) {
        series.samples.iter_mut().enumerate().for_each(|(round, sample)| change(round, sample));
    }
    measured
}

fn path(key: &str) -> Path {
    key.parse().unwrap()
}

/// What goes from layer to layer adds up to the whole, whatever the layers take.
#[test]
fn stages_add_up_to_the_path() {
    let measured = measured(4);
    for path in Path::all().filter(|path| path.key() != "ext4-io_uring") {
        let op = if path.writes_only() { Op::Write } else { Op::Read };
        let budget = path.budget(&measured, op).unwrap();
        let error = budget.sum() - budget.whole.median;
        assert!(error.abs() < 1e-6, "{}: {} for {}", path.key(), budget.sum(), budget.whole.median);
    }
    let put_together = path("ext4-io_uring").budget(&measured, Op::Read).unwrap();
    let client = |layer| measured.find(layer, Op::Read).unwrap().stat(Client, Rounds::All).median;
    let expected = client(Layer::LoopRing) + client(Layer::Ext4Direct) - client(Layer::Loop);
    let found: f64 = put_together
        .stages
        .iter()
        .filter(|stage| [Entry, Block, Files].contains(&stage.group))
        .map(|s| s.ns)
        .sum();
    assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
}

#[test]
fn the_whole_is_from_other_rounds_than_the_stages() {
    // Rounds count from 0: these are the second, fourth and so on.
    let slower = with(measured(8), Layer::Fuse, |round, sample| {
        sample.wall += if round.is_multiple_of(2) { 0.0 } else { 4000.0 };
    });
    let budget = path("fuse").budget(&slower, Op::Read).unwrap();
    assert!((budget.whole.median - budget.sum() - 4000.0).abs() < 1e-6);
    assert!(budget.miss() < -0.1, "{}", budget.miss());
    assert!(budget.fault().unwrap().contains("more than 10 %"), "{budget:?}");
    assert_eq!(path("loop").budget(&slower, Op::Read).unwrap().fault(), None);
}

#[test]
fn a_negative_stage_is_kept_as_it_is() {
    // XFS is faster than the loop device below it: by a little, and by more than can be.
    let faster = |by: f64| {
        let below = 1000.0 * 8.0;
        with(measured(4), Layer::XfsDirect, move |_, sample| {
            sample.wall += below - by - sample.client;
            sample.client = below - by;
        })
    };
    let little = path("xfs-direct").budget(&faster(50.0), Op::Read).unwrap();
    let stage = little.stages.iter().find(|stage| stage.name == "XFS").unwrap();
    assert!((stage.ns + 50.0).abs() < 1e-6 && little.fault().is_none(), "{little:?}");
    assert!((little.sum() - little.whole.median).abs() < 1e-6, "the sum has it");
    let text = little.toml("here", &StackOptions::default(), None);
    assert!(text.contains("-50.0 ns, written as 0"), "{text}");
    let much = path("xfs-direct").budget(&faster(2000.0), Op::Read).unwrap();
    assert!(much.fault().unwrap().contains("\"XFS\" is negative (-2000 ns"), "{much:?}");
}

#[test]
fn a_missing_layer_is_named() {
    let mut measured = measured(4);
    measured.series.retain(|series| series.layer != Layer::Loop);
    assert_eq!(path("ext4-direct").budget(&measured, Op::Read), Err(Layer::Loop));
    assert!(path("fuse").budget(&measured, Op::Read).is_ok());
    assert!("ext5".parse::<Path>().unwrap_err().contains("ext4-direct"));
}

/// A time as the file has it, in ns.
fn ns(value: &Value) -> f64 {
    let text = value.as_str().unwrap();
    nvlab_units::quantity::span(text).unwrap().ps() as f64 / 1e3
}

#[test]
fn the_file_says_what_was_measured() {
    let (small, options) = (measured(6), StackOptions { rounds: 6, ..StackOptions::default() });
    let budget = path("ext4-direct").budget(&small, Op::Write).unwrap();
    let text = budget.toml("a \"machine\", today", &options, None);
    let table: Table = text.parse().unwrap();
    assert_eq!(table["schema"].as_integer(), Some(1));
    assert_eq!(table["stack"]["cite"].as_str(), Some("a \"machine\", today"));
    assert_eq!(table["stack"]["completion"].as_str(), Some("interrupt"));
    let stages = table["stage"].as_array().unwrap();
    assert_eq!(stages.len(), budget.stages.len());
    for (read, stage) in stages.iter().zip(&budget.stages) {
        let (cpu, wait) = (ns(&read["cpu"]), ns(&read["wait"]));
        assert!((cpu + wait - stage.ns).abs() < 0.06, "{read:?}");
        assert_eq!(wait > 0.0, stage.waits(), "{read:?}");
        assert_eq!(read["when"].as_str(), Some(if stage.waits() { "complete" } else { "submit" }));
        assert!(read["basis"].as_str().unwrap().starts_with("measured: "), "{read:?}");
    }

    // Requests of 16 KiB: ext4 takes 900 ns more for the 12 KiB, the system call nothing.
    let large = with(measured(6), Layer::Ext4Direct, |_, sample| sample.client += 900.0);
    let large = path("ext4-direct").budget(&large, Op::Write).unwrap();
    let text = budget.toml("here", &options, Some((&large, 16384)));
    let table: Table = text.parse().unwrap();
    let stages = table["stage"].as_array().unwrap();
    let ext4 = stages.iter().find(|stage| stage["name"].as_str() == Some("ext4")).unwrap();
    let own = budget.stages.iter().find(|stage| stage.name == "ext4").unwrap().ns;
    assert!(
        (ns(&ext4["per_4k"]) - 300.0).abs() < 0.1 && (ns(&ext4["cpu"]) - (own - 300.0)).abs() < 0.1,
        "{ext4:?}"
    );
    assert!(stages[0].get("per_4k").is_none(), "{:?}", stages[0]);
}
