//! Tests of experiments: every built-in one reads at both sizes, mistakes are refused with their line, verdicts and
//! pages come from what was measured.

use super::judge::passed_claims;
use super::*;
use nvlab_run::result::RunResult;
use nvlab_run::sample;

const TEXT: &str = r#"
title = "A test"
question = "Does it work?"
source = "nowhere"
[run]
design = "ssd-tlc"
set = ["ftl.clean.kind={cleaner}"]
workload = "hotcold hot={locality}"
until = "2 x capacity"
[[axis]]
name = "locality"
values = ["50/50", "10/90"]
[[axis]]
name = "cleaner"
values = ["greedy", "fifo"]
set.fifo = ["ftl.spare=20 %"]
[smoke]
workload = "uniform"
values = { locality = ["10/90"] }
[[row]]
claim = "a value"
where = "here"
at = { locality = "50/50", cleaner = "greedy" }
measure = "waf"
expected = 2.0
band = "10 %"
basis = "derived"
form = "1 / .5"
[[row]]
claim = "a line"
where = "there"
check = "below"
at = { cleaner = "greedy" }
to = { cleaner = "fifo" }
measure = "waf"
basis = "stated"
[[row]]
claim = "a number that goes in"
where = "here"
at = { locality = "50/50", cleaner = "greedy" }
measure = "capacity"
input = true
expected = 122406567936
within = [122e9, 123e9]
basis = "stated"
note = "114 GiB of the design, in round numbers"
[[row]]
claim = "a number that was set from it"
where = "here"
at = { locality = "50/50", cleaner = "greedy" }
measure = "waf"
expected = 2.0
band = "10 %"
sets = "tlc-2022 program"
basis = "stated"
[[plot]]
x = "locality"
series = "cleaner"
measure = "waf"
[[plot.curve]]
name = "greedy, theory"
points = [["50/50", 2.0], ["10/90", 3.0]]
"#;

fn read(text: &str) -> Result<Experiment, FileError> {
    Experiment::read("test", "test.toml", text, false)
}

/// The line and text of the error after `from` is replaced.
fn refused(from: &str, to: &str) -> String {
    assert!(TEXT.contains(from), "{from}");
    read(&TEXT.replacen(from, to, 1)).expect_err(to).to_string()
}

#[test]
fn built_in_experiments_read_at_both_sizes() {
    let mut seeds: Vec<&str> = BUILT_IN.iter().map(|(seed, ..)| *seed).collect();
    seeds.dedup();
    let sizes = seeds.iter().flat_map(|seed| [(*seed, false), (*seed, true)]);
    for (seed, smoke) in sizes {
        let experiments = find(seed, &[], smoke).unwrap();
        assert_eq!(experiments.len(), BUILT_IN.iter().filter(|(of, ..)| *of == seed).count());
        for experiment in &experiments {
            assert!(smoke || !experiment.rows.is_empty(), "{} claims nothing", experiment.name);
            for point in experiment.space.points().unwrap() {
                let left: String = point.sets.concat() + &point.workload;
                assert!(!left.contains('{'), "{}: a name that is no axis: {left}", experiment.name);
                // Blocks of fewer pages lose a larger part of them to padding, and write amplification with it.
                let cuts_blocks = point.sets.iter().any(|set| set.contains(".pages="));
                assert!(smoke || seed != "drives" || !cuts_blocks, "{}: {:?}", experiment.name, point.sets);
                nvlab_workload::WorkloadSpec::parse(&point.workload).unwrap();
                nvlab_design::Design::load(&point.design, &point.sets).unwrap();
            }
        }
    }
    // Every file of the folders is built in.
    for seed in seeds {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(seed);
        let files = std::fs::read_dir(folder).unwrap();
        let files = files.filter_map(|entry| entry.unwrap().file_name().into_string().ok());
        for file in files.filter(|file| file.ends_with(".toml")) {
            let known = BUILT_IN.iter().any(|(of, name, _)| *of == seed && format!("{name}.toml") == file);
            assert!(known, "{seed}/{file} is not built in");
        }
    }
}

#[test]
fn points_are_every_combination() {
    let experiment = read(TEXT).unwrap();
    let points = experiment.space.points().unwrap();
    let texts: Vec<String> =
        points.iter().map(|point| format!("{} {}", point.workload, point.sets.join(" "))).collect();
    assert_eq!(
        texts,
        [
            "hotcold hot=50/50 ftl.clean.kind=greedy",
            "hotcold hot=50/50 ftl.clean.kind=fifo ftl.spare=20 %",
            "hotcold hot=10/90 ftl.clean.kind=greedy",
            "hotcold hot=10/90 ftl.clean.kind=fifo ftl.spare=20 %",
        ]
    );
    let small = Experiment::read("test", "test.toml", TEXT, true).unwrap();
    assert_eq!(small.space.points().unwrap().len(), 2);
    assert_eq!(small.space.points().unwrap()[0].workload, "uniform");
    assert_eq!(small.rows.len(), 1, "the claim at 50/50 has no point in a small run");
}

#[test]
fn mistakes_are_refused_with_their_line() {
    for (from, to, expected) in [
        (
            "[smoke]",
            "[smoke]\nuntill = \"1 s\"",
            "test.toml:18: [smoke] has no key `untill`; did you mean `until`?",
        ),
        ("question =", "qestion =", "test.toml:1: an experiment needs `question`"),
        ("at = { locality", "at = { place", "test.toml:23: `at` names `place`, which is not an axis"),
        (
            "\"50/50\", cleaner",
            "\"60/40\", cleaner",
            "`60/40` is not a value of `locality` (values: 50/50, 10/90)",
        ),
        (
            "measure = \"waf\"\nexpected",
            "measure = \"wav\"\nexpected",
            "there is no metric `wav`; did you mean `waf`?",
        ),
        ("basis = \"derived\"", "basis = \"guess\"", "`basis` must be stated, cited or derived"),
        ("form = \"1 / .5\"\n", "", "is derived: it needs the `form`"),
        ("input = true\n", "input = true\nregression = true\n", "and `regression`: a row has one class"),
        ("sets = \"tlc-2022 program\"", "form = \"2\"", "`form` belongs to a derived row"),
        ("band = \"10 %\"\nsets", "sets", "`sets` needs a band: it states how well it could be set"),
        ("band = \"10 %\"\nbasis", "basis", "`expected` needs a band to judge it by"),
        ("expected = 2.0\n", "", "`band` needs `expected`; use `within`"),
        (
            "note = \"114 GiB of the design, in round numbers\"\n",
            "",
            "`within` needs a `note`: the reason of the band",
        ),
        ("expected = 122406567936\nwithin = [122e9, 123e9]\n", "", "`input` needs a band: an input is known"),
        (
            "check = \"below\"",
            "check = \"above\"",
            "`check` must be one of value, ratio, sum-ratio, harmonic-mean, excess, saving",
        ),
        (
            "at = { cleaner = \"greedy\" }",
            "at = { }",
            "`at` fixes 0 axes; this check needs 1 of: locality, cleaner",
        ),
        ("set.fifo", "set.fito", "`set` changes the design for `fito`, which is not one of its values"),
        ("until = \"2 x capacity\"", "until = \"soon\"", "test.toml:9: `until` is invalid"),
        ("series = \"cleaner\"\n", "", "[[plot]] covers 1 of 2 axes"),
    ] {
        let message = refused(from, to);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn verdicts_and_pages_follow_what_was_measured() {
    let experiment = read(TEXT).unwrap();
    let runs: Vec<RunResult> = [2.1, 2.5, 3.0, 3.5]
        .map(|waf| {
            let mut run = sample::run("ssd-tlc", 1);
            run.write_amplification.total = waf;
            run
        })
        .into();
    let measured = |runs: &'static [RunResult], missing: Option<usize>| {
        runs.iter().enumerate().map(|(index, run)| (missing != Some(index)).then_some(run)).collect()
    };
    let runs: &'static [RunResult] = runs.leak();
    let whole = Measured { experiment: &experiment, results: measured(runs, None) };
    let judged = judge(&whole);
    assert_eq!((judged[0].verdict, judged[0].measured), (Verdict::Pass, Some(2.1)));
    assert_eq!(judged[1].verdict, Verdict::Reported);
    assert!((judged[1].measured.unwrap() - 3.0 / 3.5).abs() < 1e-12);
    let names: Vec<&str> = judged[2..].iter().map(Judged::name).collect();
    assert_eq!(names, ["input", "calibrated"], "no findings, so they do not pass");
    assert_eq!(
        summary(judged.iter()),
        "1 pass (1 derived); 0 differ; no findings: 1 calibrated, 1 input; 1 reported, 0 missing",
        "what is derived is no claim of the source"
    );
    assert_eq!(passed_claims(judged.iter()), [""; 0]);
    let page = page::page("Test", "nvlab", std::slice::from_ref(&whole));
    assert!(page.contains("No claim of the source passed.") && page.contains("1 pass (1 derived)"));
    assert!(page.contains("greedy, theory") && page.contains("verdict pass"));
    // Of both lines, and of the last row's figure: in the legend and at their points.
    let dots = |class: &str| page.matches(&format!("class=\"{class}")).count();
    assert!(page.contains("greedy, stated: 2.00 at 50/50"));
    assert_eq!((dots("dot"), dots("dot stated")), (4 + 2 + 2, 2));
    assert!(!page.contains("<script") && !page.contains("style="), "nothing that the policy would stop");
    let without = Measured { experiment: &experiment, results: measured(runs, Some(0)) };
    let verdicts: Vec<Verdict> = judge(&without).iter().map(|judged| judged.verdict).collect();
    assert_eq!(verdicts, [Verdict::Missing; 4]);
    let mut drifting = runs[0].clone();
    drifting.precondition.converged = false;
    let mut results = measured(runs, None);
    results[0] = Some(&drifting);
    let drifting = Measured { experiment: &experiment, results };
    let shown: Vec<String> = judge(&drifting).iter().map(|judged| judged.shown()).collect();
    assert_eq!(shown, ["pass, not steady", "reported, not steady", "input", "calibrated, not steady"]);
    assert!(!judge(&drifting)[0].passes(), "a longer run may say something else");
    assert!(judge(&whole)[0].passes());
    let mut worse = experiment.clone();
    worse.rows[0].band = Some([1.0, 2.05]);
    worse.rows[2].band = Some([0.0, 1.0]);
    let worse = Measured { experiment: &worse, results: measured(runs, None) };
    let judged = judge(&worse);
    let verdicts: Vec<Verdict> = judged.iter().map(|judged| judged.verdict).collect();
    let told = summary(judged.iter());
    assert!(told.starts_with("0 pass; 2 differ (1 derived, 1 input); no findings: 1 calibrated;"), "{told}");
    assert_eq!(verdicts, [Verdict::Differs, Verdict::Reported, Verdict::Differs, Verdict::NoFinding]);
    let mut sums = experiment.clone();
    sums.rows[1].check = row::Check::SumRatio;
    sums.rows[1].band = Some([0.8, 0.9]);
    let sums = Measured { experiment: &sums, results: measured(runs, None) };
    let judged = judge(&sums);
    assert_eq!(judged[1].measured, Some((2.1 + 3.0) / (2.5 + 3.5)));
    assert_eq!(passed_claims(judged.iter()), ["a line"]);
}

#[test]
fn a_note_that_says_another_number_is_stale() {
    let run = |waf: f64| {
        let mut run = sample::run("ssd-tlc", 1);
        run.write_amplification.total = waf;
        run
    };
    let is_stale = |note: &str, waf: f64, smoke: bool| {
        let text = TEXT.replacen("form = \"1 / .5\"", &format!("form = \"1 / .5\"\nnote = \"{note}\""), 1);
        let mut experiment = Experiment::read("test", "test.toml", &text, smoke).unwrap();
        experiment.rows.truncate(1);
        let run = run(waf);
        judge(&Measured { experiment: &experiment, results: vec![Some(&run); 4] })
            .iter()
            .any(Judged::is_note_stale)
    };
    for (note, waf, stale) in [
        ("measured 2.08, as it is", 2.0849, false),
        ("2 % either way; measured 2.08.", 2.0851, true),
        ("measured 34,155", 34_155.4, false),
        ("measured 34,155, not 34,578", 34_578.0, true),
        ("measured when it is steady; 7 of them", 2.0, false),
        ("it was measured 3 times", 2.0, true),
    ] {
        assert_eq!(is_stale(note, waf, false), stale, "{note}");
    }
    assert!(!is_stale("measured 2.08", 9.0, true), "a small run measures something else");
}

#[test]
fn means_are_of_all_runs_that_fit() {
    let experiment = read(TEXT).unwrap();
    let runs = [2.1, 2.5, 3.0, 3.5].map(|waf| {
        let mut run = sample::run("ssd-tlc", 1);
        run.write_amplification.total = waf;
        run
    });
    let measured = || runs.iter().map(Some).collect();
    let mut means = experiment.clone();
    means.rows[1].check = row::Check::HarmonicMean;
    let means = Measured { experiment: &means, results: measured() };
    let mean = judge(&means)[1].measured.unwrap();
    assert!((mean - 2.0 / (2.5 / 2.1 + 3.5 / 3.0)).abs() < 1e-12, "{mean}");
    let mut means = experiment.clone();
    means.rows[1].check = row::Check::Mean;
    let means = Measured { experiment: &means, results: measured() };
    assert_eq!(judge(&means)[1].measured, Some((2.1 + 3.0) / 2.0));
}

#[test]
fn values_stand_for_numbers() {
    use crate::sweep::space::number_of;
    for (text, number) in
        [("80 %", 80.0), ("10/90", 10.0), ("10k", 1e4), ("16", 16.0), ("4 KiB", 4096.0), ("0.5", 0.5)]
    {
        assert_eq!(number_of(text), Some(number), "{text}");
    }
    assert_eq!(number_of("greedy"), None);
}

#[test]
fn what_is_not_there_is_named() {
    let message = |seed: &str, only: &[&str]| {
        let only: Vec<String> = only.iter().map(|name| name.to_string()).collect();
        find(seed, &only, false).unwrap_err().to_string()
    };
    assert_eq!(
        message("999", &[]),
        "there is nothing to reproduce for `999`; choose one of 000, 001, 002, 003, 004, drives, zns"
    );
    assert!(
        message("000", &["fig99"])
            .starts_with("000 has no experiment `fig99`; its experiments: fig06, fig08")
    );
}
