//! The host's software as stages: built-in stacks, files, and mistakes in them as people see them.

use super::{Design, errors_of, load, small};
use crate::stacks::{BUILT_IN, Software, find};
use nvlab_access::stack::{Completion, Stack};
use nvlab_units::Span;

fn built_in(name: &str) -> Software {
    let source = find(name, None).unwrap_or_else(|(problem, _)| panic!("{problem}"));
    Software::read(&source).unwrap_or_else(|error| panic!("{error}"))
}

/// Latency of one request of 4 KiB that meets no other, without the device.
fn latency(stack: &Stack) -> Span {
    let spans = stack.stages.iter().map(|stage| stage.cost(4096) + stage.wait);
    spans.fold(Span::ZERO, |sum, span| sum + span)
}

#[test]
fn every_stack_is_called_as_its_file_and_has_a_basis_for_each_stage() {
    for (name, _) in BUILT_IN {
        let software = built_in(name);
        assert_eq!(software.name, *name);
        assert!(!software.about.is_empty() && !software.cite.is_empty(), "{name}");
        assert!(latency(&software.stack) > Span::ZERO, "{name}");
    }
}

/// MICRO 2010, abstract: 60 % less; thesis: 62 % at 4 KB; slide 10: two thirds. The steps, and no lock is left.
#[test]
fn moneta_takes_less_with_every_step() {
    let steps = ["moneta-baseline", "moneta-no-scheduler", "moneta-atomic", "moneta-spin"].map(built_in);
    let sums = steps.each_ref().map(|software| latency(&software.stack));
    assert!(sums.is_sorted_by(|before, after| before > after), "{sums:?}");
    let saved = 1.0 - sums[3].seconds() / sums[0].seconds();
    assert!((0.60..=0.67).contains(&saved), "{saved}");
    let locks = steps.each_ref().map(|software| software.stack.locks.len());
    assert_eq!(locks, [1, 1, 0, 0]);
    assert_eq!(steps[3].stack.completion, Completion::Spin);
}

/// The sources state requests a second on one core.
#[test]
fn cited_rates_of_one_core_are_kept() {
    for (name, per_second) in [("io-uring", 1.2e6), ("io-uring-polled", 1.7e6), ("user-space-queue", 10.39e6)]
    {
        let cpu: f64 = built_in(name).stack.stages.iter().map(|stage| stage.cost(4096).seconds()).sum();
        assert!((cpu * per_second - 1.0).abs() < 0.01, "{name}: {cpu}");
    }
}

#[test]
fn a_resolved_design_with_stages_loads_again() {
    let folder = std::env::temp_dir().join(format!("nvlab-stages-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("mine")).unwrap();
    std::fs::write(folder.join("mine/stack.toml"), FILE).unwrap();
    let design = folder.join("design.toml");
    let text = "[design]\nextends = \"builtin:ssd-tlc\"\n[path]\nstages = \"mine/stack.toml\"\n";
    std::fs::write(&design, text).unwrap();
    let design = Design::load(design.to_str().unwrap(), &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(design.path.software.as_ref().unwrap().stack.stages.len(), 2);
    assert_eq!(design.path.overhead_host, Span::ZERO, "the 6 us of ssd-tlc are replaced");
    let again = Design::parse("elsewhere.toml", &design.resolved_toml(), &[]);
    let again = again.unwrap_or_else(|errors| panic!("{errors}\n{}", design.resolved_toml()));
    assert_eq!(again.canonical_text(), design.canonical_text());
    // Another content is another design, though its file has the same name.
    std::fs::write(folder.join("mine/stack.toml"), FILE.replace("0.4 us", "0.5 us")).unwrap();
    let changed = Design::parse("elsewhere.toml", &design.resolved_toml(), &[]).unwrap();
    assert_ne!(changed.canonical_text(), design.canonical_text());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_last_word_of_time_and_stages_counts() {
    let (plain, staged) = (load("ssd-tlc", &[]), load("ssd-tlc", &["path.stages=moneta-spin"]));
    assert!(plain.path.software.is_none() && plain.path.overhead_host > Span::ZERO);
    assert!(!plain.canonical_text().contains("stages"), "keys of results stay as they were");
    assert!(
        staged.resolved_toml().contains("# submit    issue                     cpu 400 ns  (estimate: one")
    );
    let back = load("ssd-tlc", &["path.stages=moneta-spin", "path.overhead.host=2 us"]);
    assert_eq!((back.path.software, back.path.overhead_host), (None, Span::from_us(2)));
    let both = "[path]\nstages = \"mmap\"\noverhead.host = \"2 us\"\n[ftl.map]";
    let errors = small("[ftl.map]", both).unwrap_err().to_string();
    let expected = r#"error[design]: `path.overhead.host` and `path.stages` both set the time of the host's software
  --> small.toml:16:10
   |
16 | stages = "mmap"
   |          ^^^^^^
   |
help: keep one of them: a time per request, or stages"#;
    assert_eq!(errors, expected, "\n{errors}");
}

#[test]
fn a_stack_that_is_not_there() {
    let errors = errors_of("ssd-tlc", &["path.stages=moneta-spni"]);
    assert!(errors.contains("`path.stages`: there is no stack `moneta-spni`"), "{errors}");
    assert!(errors.contains("did you mean `moneta-spin`?"), "{errors}");
    let errors = errors_of("ssd-tlc", &["path.stages=./missing.toml"]);
    assert!(errors.contains("`path.stages`: cannot read the stack ./missing.toml"), "{errors}");
    let errors = errors_of("rvm-disk", &["path.stages=mmap"]);
    assert!(errors.contains("`path.stages`: stages apply to block requests"), "{errors}");
}

const FILE: &str = r#"schema = 1
[stack]
name       = "mine"
cores      = 2
completion = "spin"
[[stage]]
name  = "call"
when  = "submit"
cpu   = "0.4 us"
lock  = "queue"
basis = "measured: here"
[[stage]]
name   = "copy"
when   = "complete"
per_4k = "0.1 us"
spread = "30 ns"
basis  = "measured: here"
"#;

/// The one line of the error, with file, line and key.
fn mistake(from: &str, to: &str) -> String {
    assert!(FILE.contains(from), "{from}");
    let source = crate::toml_reader::Source::file("mine.toml", FILE.replacen(from, to, 1));
    match Software::read(&source.into()) {
        Ok(_) => panic!("{to} should be refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn mistakes_in_a_stack_name_file_line_and_key() {
    let known = "name, when, cpu, per_4k, wait, spread, lock, only, above_driver, basis";
    for (from, to, expected) in [
        ("schema = 1\n", "", "mine.toml:1: mine.toml: a stack needs `schema = 1`"),
        (
            "schema = 1",
            "schema = 2",
            "mine.toml:1: `schema`: `2` is out of range; a whole number from 1 to 1",
        ),
        (
            "cpu   = \"0.4 us\"",
            "cpu = 4",
            "mine.toml:9: `cpu`: `4` is not a time: it has no unit; units: ps, ns, us, ms, s",
        ),
        (
            "cores      = 2",
            "cores = 0",
            "mine.toml:4: `cores`: `0` is out of range; a whole number from 1 to 4096",
        ),
        ("\"spin\"", "\"poll\"", "mine.toml:5: `completion`: `poll`"),
        ("when  = \"submit\"\n", "", "mine.toml:6: [[stage]] needs `when`: submit or complete"),
        ("name  = \"call\"\n", "", "mine.toml:6: [[stage]] needs `name`"),
        ("basis = \"measured: here\"\n", "", "mine.toml:6: [[stage]] needs `basis`"),
        (
            "lock ",
            "lokc ",
            &format!("mine.toml:10: [[stage]] has no key `lokc`; did you mean `lock`? (known: {known})"),
        ),
        (
            "completion = \"spin\"",
            "completion = \"interrupt\"\nspin_below = \"4 KiB\"",
            "mine.toml:6: `spin_below` does not apply without completion = \"spin\"",
        ),
        (
            "lock  = \"queue\"",
            "only = \"interrupt\"",
            "mine.toml:10: `only` is a completion this stack does not use: the stage would never run",
        ),
    ] {
        let found = mistake(from, to);
        assert!(found.starts_with(expected), "{found}\ninstead of {expected}");
    }
}
