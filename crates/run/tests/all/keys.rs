//! No key of a design is accepted and then ignored: another value results in another result key, and changes a figure
//! of some run. The few keys that change no figure are listed here with their purpose.
//!
//! The keys come from the table itself, so that a new one is tried as soon as it exists. Each is changed in every
//! scenario that has it, to several values, until a figure changes.

use crate::scenarios::{SCENARIOS, Scenario};
use nvlab_design::Resolved;
use nvlab_design::keys::{self, Key};
use nvlab_design::toml_reader::datum::{Datum, Shape};
use nvlab_run::result::RunResult;
use nvlab_units::Span;
use nvlab_units::quantity::{exact_bytes, exact_span};
use std::collections::BTreeMap;

/// Keys that name a design and do not change what it does: they are not part of result keys.
const LABELS: [&str; 6] =
    ["schema", "design.name", "design.about", "design.cite", "design.extends", "media.*.part"];

/// Keys that change no figure of a run, and what they are for.
const NO_FIGURE: &[(&str, &str)] = &[
    ("ftl.zone.open_max", "what a host may do; workloads are checked against it"),
    ("ftl.zone.active_max", "what a host may do; workloads are checked against it"),
    ("media.*.cell", "bounds the pages of a word line that are programmed in one shot"),
    ("media.*.oob", "bounds the codewords of a page"),
    ("ftl.transaction_pages", "room in the memory; no workload begins a transaction of the hardware"),
    ("media.*.hold", "outages; no run has one"),
    ("media.*.atomic", "which units a power cut tears"),
    ("media.*.page_buffer", "bounds the sector of a flash disk"),
    ("ftl.verify_reads", "takes no time; without bytes there is nothing to verify"),
];
/// Keys of one kind of their table that change no figure there: eNVy is asked for one word at a time, a page map only takes
/// the time to write a unit; partitions are never so uneven in a short run as the dead band is wide.
const NO_FIGURE_OF: &[(&str, &str)] = &[
    ("media.*.banks", "ram"),
    ("media.*.stripe", "ram"),
    ("media.*.read_next", "ram"),
    // Only a log has no link, and it has one request under way.
    ("path.queue", "direct"),
    // Says whether the table fits its memory.
    ("ftl.map.entry", "envy"),
    ("ftl.clean.dead_band", "hybrid"),
    ("ftl.clean.dead_band", "gathering"),
    // Which of the erased blocks a zone takes: they are all as fast, and none wears out in a short run.
    ("ftl.wear.kind", "zoned"),
];

/// Keys that select what the device is made of: another value needs other keys beside it. The scenarios cover such values.
const STRUCTURE: &[&str] = &[
    "ftl.kind",
    "ftl.medium",
    "media.*.kind",
    "ftl.map.in",
    "ftl.buffer.in",
    "ftl.cache.kind",
    "ftl.map.kind",
    "ftl.cache.in",
    "ftl.data_area",
    "ftl.route.kind",
    "ftl.route.in",
    // There is only one value.
    "ftl.clean.reserve",
    "ftl.log.on",
    "ftl.log.large_on",
    "ftl.log.data",
    // Needs a client that deletes files.
    "ftl.route.trim",
];

/// Numbers of a result: everything but its names and its wall time.
fn figures(result: &RunResult) -> RunResult {
    let mut figures = RunResult { key: String::new(), wall_s: 0.0, ..result.clone() };
    figures.design.resolved_toml.clear();
    figures
}

/// The kind that decides which keys a table has: its own, else that of the table around it.
fn kinds(resolved: &[Resolved], path: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut table = keys::parent(path);
    while !table.is_empty() {
        let own = format!("{table}.kind");
        if let Some(Resolved { value: Datum::Text(kind), .. }) =
            resolved.iter().find(|value| value.path == own)
        {
            found.push(kind.clone());
        }
        table = keys::parent(table);
    }
    found
}

/// Values a key may take in place of `now`, as `--set` reads them.
fn others(key: &Key, now: Option<&Datum>, media: &[String]) -> Vec<String> {
    let mut values: Vec<String> = match (key.shape, now) {
        (Shape::Size { .. } | Shape::SizeShareOrNone, Some(Datum::Size(bytes))) => {
            [bytes / 2, bytes * 2, bytes / 4, bytes * 4].map(exact_bytes).to_vec()
        }
        (Shape::Time | Shape::TimeOrNone, Some(Datum::Time(span))) => {
            let more = [*span * 3 + Span::from_us(1), *span * 3 + Span::from_ms(20), *span / 4];
            more.map(exact_span).to_vec()
        }
        (Shape::Times, Some(Datum::Times(spans))) => {
            let times: Vec<String> =
                spans.iter().map(|span| format!("\"{}\"", exact_span(*span * 3))).collect();
            vec![format!("[{}]", times.join(", "))]
        }
        (Shape::Share { .. }, Some(Datum::Share(share))) => {
            [share / 2.0, share + 0.05, share + 0.4, share / 10.0].map(|share| share.to_string()).to_vec()
        }
        (Shape::Count { .. }, Some(Datum::Count(count))) => {
            [count / 2, count + 1, count * 2, count * 8, 1].map(|count| count.to_string()).to_vec()
        }
        (Shape::Flag, Some(Datum::Flag(flag))) => vec![(!flag).to_string()],
        (Shape::OneOf(names), _) => names.iter().map(|(name, _)| name.to_string()).collect(),
        (Shape::Medium, _) => media.to_vec(),
        (Shape::Rate, _) => vec!["3 MB/s".into(), "700 MB/s".into()],
        (Shape::Price, _) => vec!["3 USD/GiB".into()],
        _ => Vec::new(),
    };
    values.push(key.example.trim_matches('"').to_string());
    let now = now.map(|datum| datum.to_string().trim_matches('"').to_string());
    values.retain(|value| now.as_ref() != Some(value));
    values
}

/// The effect of a key in one scenario.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// The scenario has no other value of it.
    Nothing,
    /// It was changed, but no figure was.
    Silent,
    /// A figure changed.
    Figure,
}

/// Changes one key of a scenario to every possible value, until a figure changes.
fn changed(scenario: &Scenario, base: &RunResult, key: &Key, path: &str) -> Found {
    let design = scenario.design(&[]).unwrap();
    let media: Vec<String> = design.media.keys().cloned().collect();
    let now = design.resolved.iter().find(|value| value.path == path).map(|value| &value.value);
    let mut found = Found::Nothing;
    for value in others(key, now, &media) {
        let Ok(other) = scenario.design(&[format!("{path}={value}")]) else { continue };
        let then = other.resolved.iter().find(|value| value.path == path).map(|value| &value.value);
        if then == now {
            continue;
        }
        let named = format!("{}: {path} = {value} instead of {now:?}", scenario.name);
        let same = other.canonical_text() == design.canonical_text();
        // The name of a part stands for what it says.
        let may_be_either = key.path == "media.*.part";
        assert!(may_be_either || same == LABELS.contains(&key.path), "{named}: result key");
        // A change that makes the design invalid, or the run fail, has an effect.
        match scenario.run(other) {
            Ok(result) if figures(&result) == *base => found = Found::Silent,
            _ => return Found::Figure,
        }
    }
    found
}

#[test]
fn every_key_changes_the_result() {
    // A key may have a meaning of its own for each kind of its table.
    let mut found: BTreeMap<(&str, String), Found> = BTreeMap::new();
    for key in keys::all() {
        found.insert((key.path, String::new()), Found::Nothing);
    }
    for scenario in SCENARIOS {
        let design = scenario.design(&[]).unwrap();
        let base = figures(
            &scenario.run(design.clone()).unwrap_or_else(|error| panic!("{}: {error}", scenario.name)),
        );
        for key in keys::all() {
            let media: Vec<&String> = design.media.keys().collect();
            let paths: Vec<String> = match key.path.strip_prefix("media.*") {
                Some(rest) => media.iter().map(|name| format!("media.{name}{rest}")).collect(),
                None => vec![key.path.to_string()],
            };
            for path in paths {
                let kinds = kinds(&design.resolved, &path);
                let applies = |kind: &&String| key.kinds.is_empty() || key.kinds.contains(&kind.as_str());
                let Some(kind) =
                    kinds.iter().find(applies).cloned().or(key.kinds.is_empty().then(String::new))
                else {
                    continue;
                };
                let already = found.get(&(key.path, kind.clone())).copied();
                if already == Some(Found::Figure) {
                    continue;
                }
                match changed(scenario, &base, key, &path) {
                    Found::Nothing => {}
                    more => {
                        found.insert((key.path, String::new()), more);
                        found.insert((key.path, kind), more);
                    }
                }
            }
        }
    }
    let excused = |path: &str| {
        STRUCTURE.contains(&path)
            || LABELS.contains(&path)
            || NO_FIGURE.iter().any(|(known, _)| *known == path)
    };
    let dead: Vec<String> = found
        .iter()
        .filter(|((path, _), found)| **found != Found::Figure && !excused(path))
        .filter(|((path, kind), _)| !NO_FIGURE_OF.contains(&(*path, kind.as_str())))
        .filter(|((_, kind), found)| !kind.is_empty() || **found == Found::Nothing)
        .map(|((path, kind), found)| {
            let what =
                if *found == Found::Silent { "changes no figure" } else { "cannot be changed anywhere" };
            format!("{path} of kind '{kind}' {what}")
        })
        .collect();
    assert!(dead.is_empty(), "keys without effect:\n{}", dead.join("\n"));
    for (path, why) in NO_FIGURE {
        let alive = found.iter().any(|((known, _), found)| known == path && *found == Found::Figure);
        assert!(!alive, "{path} changes a figure; it is said to be only: {why}");
    }
}
