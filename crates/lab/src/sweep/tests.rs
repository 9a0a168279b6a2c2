//! Files and axes of sweeps, rules for points, shards, fronts, and that a table has the same bytes however it was produced.

use super::front::{Objectives, groups};
use super::table::SweepTable;
use super::*;
use nvlab_run::metric;
use nvlab_run::sample;

const FILE: &str = r#"
schema = 1
[sweep]
name = "spare"
design = "ssd-tlc"
workload = ["zipf qd=32", "uniform qd=8"]
seeds = 2
until = "2 x capacity"
[[axis]]
key = "ftl.clean.kind"
values = ["greedy", "fifo"]
[[axis]]
key = "ftl.spare"
range = "7 % .. 28 % : 7 %"
[[axis]]
keys = ["ftl.buffer.size", "ftl.unit"]
values = [["4 MiB", "4 KiB"], ["8 MiB", "8 KiB"]]
[[skip]]
where = "ftl.clean.kind == 'fifo' and ftl.spare > 20 % or ftl.unit == '8 KiB' and workload == 'zipf qd=32'"
"#;

fn sweep(text: &str) -> Sweep {
    Sweep::read("a.toml", "a", None, text).unwrap_or_else(|error| panic!("{}", error.message))
}

#[test]
fn a_file_spans_points() {
    let sweep = sweep(FILE);
    assert_eq!(sweep.space.count(), 2 * 2 * 4 * 2 * 2);
    let points = sweep.points().unwrap();
    // Of 16 points on each workload and seed, 4 are FIFO with 21 % or 28 %; on one workload half of all are skipped.
    let (fifo, unit) = (2 * 2, 8);
    assert_eq!(points.len(), 2 * ((16 - fifo) + (16 - unit - fifo / 2)));
    let first = &points[0];
    assert_eq!((first.design.as_str(), first.workload.as_str(), first.seed), ("ssd-tlc", "zipf qd=32", 1));
    assert_eq!(
        first.sets,
        ["ftl.clean.kind=greedy", "ftl.spare=7 %", "ftl.buffer.size=4 MiB", "ftl.unit=4 KiB"]
    );
    let keys = ["design", "workload", "ftl.clean.kind", "ftl.spare", "ftl.buffer.size", "ftl.unit", "seed"];
    assert_eq!(sweep.space.keys(), keys);
    assert_eq!(sweep.space.value_at(first, "ftl.unit").as_deref(), Some("4 KiB"));
    for point in &points {
        let value = |key| sweep.space.value_at(point, key).unwrap();
        assert!(value("ftl.clean.kind") != "fifo" || ["7 %", "14 %"].contains(&value("ftl.spare").as_str()));
        assert!(value("ftl.unit") != "8 KiB" || value("workload") != "zipf qd=32");
    }
}

#[test]
fn ranges_and_params() {
    let of = |param: &str| {
        let run = RunSpec { workload: "uniform".into(), ..sweep(FILE).space.run };
        let run = RunSpec { design: "ssd-tlc".into(), seed: "1".into(), ..run };
        Sweep::of_params(run, &[param.to_string()]).map(|sweep| sweep.space.axes[0].values.clone())
    };
    assert_eq!(of("a=0.1..0.5:0.1").unwrap(), ["0.1", "0.2", "0.3", "0.4", "0.5"]);
    assert_eq!(of("a=1 MiB..64 MiB*4").unwrap(), ["1 MiB", "4 MiB", "16 MiB", "64 MiB"]);
    assert_eq!(of("a=7%, 28%").unwrap(), ["7%", "28%"]);
    for (param, words) in [
        ("a", "write KEY=VALUES"),
        ("a=1 MiB..2 GiB:1 MiB", "the same unit"),
        ("a=5..1:1", "never ends"),
        ("a=1..5:0", "never ends"),
        ("a=0..5*2", "never ends"),
        ("a=1..5", "is not a range"),
        ("a=1,1", "the value `1` twice"),
    ] {
        let error = of(param).unwrap_err().to_string();
        assert!(error.contains(words), "{param}: {error}");
    }
}

use super::space::RunSpec;

#[test]
fn a_wrong_file_is_refused_at_its_line() {
    let cases = [
        ("seeds = 2", "seeds = \"many\"", "seeds"),
        ("name = \"spare\"", "name = \"a/b\"", "file names"),
        ("until = \"2 x capacity\"", "until = \"later\"", "until"),
        ("key = \"ftl.spare\"", "key = \"ftl.clean.kind\"", "varied by 2 axes"),
        ("7 % .. 28 % : 7 %", "7 % .. 28", "is not a range"),
        ("[\"8 MiB\", \"8 KiB\"]", "[\"8 MiB\"]", "lists of 2 values"),
        ("ftl.spare > 20 %", "ftl.space > 20 %", "no axis varies `ftl.space`"),
        ("ftl.spare > 20 %", "ftl.clean.kind > 2", "compares numbers"),
        ("seeds = 2", "seed = 2", "seed"),
    ];
    for (from, to, words) in cases {
        let text = FILE.replacen(from, to, 1);
        assert_ne!(text, FILE, "{from}");
        let error = Sweep::read("a.toml", "a", None, &text).unwrap_err();
        let all = format!("{} {} {:?}", error.message, error.label, error.help);
        assert!(all.contains(words), "{to}: {all}");
        assert!(error.at.is_some(), "{to}: {all}");
    }
}

#[test]
fn shards_share_all_points() {
    let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].map(|text| text.parse().unwrap()).to_vec();
    for point in 0..100 {
        assert_eq!(shards.iter().filter(|shard| shard.takes(point)).count(), 1);
    }
    for text in ["0/3", "4/3", "1", "a/b", "1/0"] {
        assert!(text.parse::<Shard>().is_err(), "{text}");
    }
}

/// Outcomes of the points: made-up results, every fifth point without one.
fn outcomes(sweep: &Sweep) -> Vec<Outcome> {
    let points = sweep.points().unwrap();
    let result = |(at, point): (usize, &Point)| match at % 5 {
        4 => Err("no".to_string()),
        _ => Ok(Figures::of(&sample::run(&point.design, point.seed), false)),
    };
    points.iter().enumerate().map(|it| Outcome { point: it.1.clone(), result: result(it) }).collect()
}

#[test]
fn a_table_has_a_row_for_each_point() {
    let sweep = sweep(FILE);
    let outcomes = outcomes(&sweep);
    let shown = Shown::of(&sweep, &outcomes, &[], &[]);
    let table = SweepTable::new(&sweep, &outcomes, &shown);
    let csv = table.csv();
    let mut lines = csv.lines();
    assert!(
        lines.next().unwrap().starts_with(
            "design,workload,ftl.clean.kind,ftl.spare,ftl.buffer.size_bytes,ftl.unit_bytes,seed,"
        )
    );
    assert_eq!(lines.clone().count(), outcomes.len());
    assert_eq!(lines.filter(|line| line.ends_with(",no")).count(), outcomes.len() / 5);
    let json: serde_json::Value = serde_json::from_str(&table.json()).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!((rows.len(), rows[0]["waf"].as_f64()), (outcomes.len(), Some(2.97)));
    assert_eq!((&rows[0]["ftl.spare"], &rows[0]["seed"]), (&0.07.into(), &1.into()));
    assert!(rows[4]["waf"].is_null() && rows[4]["error"] == "no");
    assert_eq!(table.parquet().unwrap(), SweepTable::new(&sweep, &outcomes, &shown).parquet().unwrap());
}

#[test]
fn a_finished_sweep_makes_the_same_page() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = sweep(FILE);
    let mut outcomes = outcomes(&sweep);
    let named = |name| metric::find(name).unwrap();
    for (metrics, front) in [(vec![], vec![]), (vec![named("waf")], vec![named("price.gib"), named("waf")])] {
        let shown = Shown::of(&sweep, &outcomes, &metrics, &front);
        let file = folder.path().join("sweep-spare.parquet");
        let table = SweepTable::new(&sweep, &outcomes, &shown);
        std::fs::write(&file, table.parquet().unwrap()).unwrap();
        let found = finished::table_at(folder.path()).unwrap().unwrap();
        let (read, finished) = Finished::load(&found).unwrap();
        assert_eq!(read, table.table());
        assert!(finished.page() == page::page(&sweep, &outcomes, &shown));
        let points = |outcomes: &[Outcome]| outcomes.iter().map(|one| one.point.clone()).collect::<Vec<_>>();
        assert_eq!(points(&finished.outcomes), points(&outcomes), "a skipped point is none");
        // Other objectives than it was made with.
        let other = finished.showing(&[], &["iops".into(), "waf".into()]).unwrap();
        assert!(other.page().contains("Pareto front: IOPS, WA</h2>"));
    }
    // A part of it: the table of a shard.
    let at = (0..outcomes.len()).filter(|at| at % 3 == 1).collect::<Vec<_>>();
    outcomes = at.into_iter().map(|at| outcomes[at].clone()).collect();
    let shown = Shown::of(&sweep, &outcomes, &[], &[]);
    let finished = Finished::of(&SweepTable::new(&sweep, &outcomes, &shown).table()).unwrap();
    assert!(finished.page() == page::page(&sweep, &outcomes, &shown));
}

#[test]
fn what_is_no_finished_sweep_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    assert!(finished::table_at(path).unwrap().is_none());
    let says = |path: &std::path::Path, words: &str| {
        let error = finished::table_at(path).and_then(|found| Finished::load(&found.unwrap())).err().unwrap();
        assert!(error.contains(words) && error.contains(&path.display().to_string()), "{error}");
    };
    std::fs::write(path.join("sweep-a.shard-1-of-2.parquet"), "").unwrap();
    says(path, "only the tables of shards");
    std::fs::write(path.join("sweep-a.parquet"), "nothing").unwrap();
    says(&path.join("sweep-a.parquet"), "Parquet");
    std::fs::write(path.join("sweep-b.parquet"), "").unwrap();
    says(path, "has 2 sweeps; name one: sweep-a.parquet, sweep-b.parquet");
    let run = sample::run("ssd-tlc", 1);
    let other = nvlab_run::columns_out::series(&run).parquet().unwrap();
    std::fs::write(path.join("series.parquet"), other).unwrap();
    says(&path.join("series.parquet"), "it is not the table of a sweep");
}

#[test]
fn lifetimes_without_cleaning_are_told_where_they_are_shown() {
    use nvlab_run::result::MediumResult;
    let sweep = sweep(FILE);
    let mut outcomes = outcomes(&sweep);
    let of = |erases, cycles| {
        let medium = MediumResult { blocks: 100, cycles, erases, ..MediumResult::default() };
        let run = nvlab_run::result::RunResult { media: vec![medium], ..sample::run("ssd-tlc", 1) };
        Ok(Figures::of(&run, false))
    };
    outcomes.iter_mut().for_each(|one| one.result = of(300, 3.0));
    let shown = Shown::of(&sweep, &outcomes, &[], &[]);
    assert_eq!(shown.caveat(&outcomes), None);
    outcomes[0].result = of(100, 3.0);
    outcomes[5].result = of(0, 0.1);
    let text = shown.caveat(&outcomes).unwrap();
    assert!(text.contains(&format!("2 of {} runs", outcomes.len())), "{text}");
    assert!(page::page(&sweep, &outcomes, &shown).contains("the lifetimes of 2 of"));
    let found = outcomes[0].result.as_mut().unwrap();
    found.prepared = found.prepared.replace("steady at WA", "not steady: WA still changed from 2 to");
    let notes = shown.notes(&outcomes);
    assert!(notes[0].starts_with("prepared, first point: filled once in order, then "), "{notes:?}");
    assert!(notes[1].starts_with("1 of ") && notes.len() == 3, "{notes:?}");
    let speed = ["iops", "waf"].map(|name| metric::find(name).unwrap());
    let shown = Shown::of(&sweep, &outcomes, &speed[..1], &speed);
    assert_eq!(shown.caveat(&outcomes), None, "no lifetime is shown");
}

#[test]
fn the_front_is_what_no_other_beats() {
    use super::front::beats;
    use nvlab_run::stats::Estimate;
    let beat = |a: [f64; 2], b: [f64; 2], interval| {
        let costs = |means: [f64; 2]| means.map(|mean| Estimate { mean, interval, count: 3 });
        beats(&costs(a), &costs(b))
    };
    assert!(
        beat([1.0, 2.0], [1.0, 3.0], 0.0)
            && !beat([1.0, 2.0], [1.0, 2.0], 0.0)
            && !beat([1.0, 4.0], [2.0, 3.0], 0.0)
    );
    assert!(beat([1.0, 2.0], [1.0, 3.0], 0.4) && !beat([1.0, 2.0], [1.0, 3.0], 0.6), "it may be chance");
    let sweep = sweep(FILE);
    let mut outcomes = outcomes(&sweep);
    // One point is cheaper, lives longer and is faster than all others on its workload.
    let best = outcomes.iter().position(|outcome| outcome.result.is_ok()).unwrap();
    let values = outcomes[best].point.values.clone();
    let same = |point: &Point| point.values[..point.values.len() - 1] == values[..values.len() - 1];
    for outcome in outcomes.iter_mut().filter(|outcome| same(&outcome.point)) {
        let mut run = sample::run("ssd-tlc", outcome.point.seed);
        run.price.usd_per_gib = Some(1e-3);
        run.lifetime.years = Some(1e3);
        run.lifetime.host_bytes = Some(1e20);
        run.write.per_s = 1e9;
        (run.write.latency.p99_ns, run.read.latency.p99_ns) = (1, 1);
        outcome.result = Ok(Figures::of(&run, false));
    }
    let groups = groups(&sweep, &outcomes, &[]);
    let front: Vec<_> =
        groups.iter().filter(|group| group.front && group.value(WORKLOAD) == Some("zipf qd=32")).collect();
    assert_eq!(front.len(), 1);
    assert_eq!(front[0].value("ftl.spare"), Some("7 %"));
    let price = metric::find("price.gib").unwrap();
    assert_eq!(front[0].mean(&price), Some(1e-3));
    let waf = metric::find("waf").unwrap();
    let names = |asked: &[metric::Metric]| {
        Objectives::of(&groups, asked).0.iter().map(|m| m.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["price.gib", "lifetime.bytes", "read.p99"], "most of its requests are reads");
    let asked = [price, waf.clone()];
    assert_eq!(names(&asked), ["price.gib", "waf"]);
    let page = page::page(&sweep, &outcomes, &Shown { metrics: vec![waf], front: asked.to_vec() });
    let figures = page.matches("<figure>").count();
    assert_eq!(page.matches("<summary>Table</summary>").count(), figures, "a table behind every chart");
    assert!(
        page.contains("Pareto front: USD/GiB, WA</h2>")
            && page.contains("tabindex=\"0\" role=\"img\"><title>")
    );
    assert!(page.contains("★") && page.contains("<svg") && page.contains("ftl.spare"));
}

#[test]
fn quantiles_are_values_of_volumes() {
    use super::fleet::quantile;
    let values = [1.0, 2.0, 3.0, 4.0, 100.0];
    let at = [0.0, 0.05, 0.5, 0.95, 1.0].map(|share| quantile(&values, share).unwrap());
    assert_eq!(at, [1.0, 1.0, 3.0, 100.0, 100.0]);
    assert_eq!(quantile(&[], 0.5), None);
}
