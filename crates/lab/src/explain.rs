//! `nvlab explain TOPIC`: design keys from the key table, and short articles on metrics, workloads, formats and
//! exit codes.

mod searches;
mod topic;
mod topics;
mod workloads;
mod zones;

use nvlab_design::keys::{self, Key, Preset};
use nvlab_design::toml_reader::datum::Shape;
use nvlab_run::metric::{self, Better};
use nvlab_units::suggest::nearest;
use std::fmt::Write as _;
use topic::Topic;
use topics::TOPICS;

/// The text of `nvlab explain`: without a topic the list of topics and keys; else a design key (`ftl.clean.kind`), a
/// table of keys, a value of a key, an article (`waf`, `workloads`), the list of `metrics`, or one metric. The error
/// names similar topics.
pub fn text(topic: Option<&str>) -> Result<String, String> {
    match topic {
        None => Ok(contents() + "\nMetrics: nvlab explain metrics\n"),
        Some("metrics" | "metric") => Ok(metrics()),
        Some(topic) => explain(topic).or_else(|| about_metric(topic)).ok_or_else(|| suggestion(topic)),
    }
}

fn metrics() -> String {
    let mut text = String::from("Metrics: columns of compare (-m) and names in --assert\n\n");
    for metric in metric::metrics() {
        let _ = writeln!(text, "  {:22} {}", metric.name, metric.about);
    }
    text
}

fn about_metric(name: &str) -> Option<String> {
    let metric = metric::find(name).ok()?;
    let better = match metric.better {
        Better::Less => "\n  lower is better",
        Better::More => "\n  higher is better",
        Better::Neither => "",
    };
    Some(format!("{}\n\n  {}{better}\n", metric.name, metric.about))
}

/// The text on a topic: a design key (`ftl.clean.kind`), a table of them (`ftl.clean`), a value of one (`fifo`), or an
/// article (`waf`, `workloads`, `zipf`, `formats`, `exit-codes`). `None`: there is no such topic.
fn explain(topic: &str) -> Option<String> {
    let topic = topic.trim();
    if let Some(found) = find_topic(topic) {
        return Some(format!("{}\n\n{}\n", found.title, found.text));
    }
    let matching: Vec<&Key> = keys::all().filter(|key| keys::matches(key.path, topic)).collect();
    if !matching.is_empty() {
        return Some(matching.into_iter().map(key_text).collect::<Vec<_>>().join("\n"));
    }
    if keys::table().is_table(topic) {
        return Some(table_text(topic));
    }
    // The last components of a key path are enough.
    let ending = format!(".{topic}");
    let mut found: Vec<&Key> = keys::all().filter(|key| key.path.ends_with(&ending)).collect();
    if found.is_empty() {
        // A value of a key, such as `fifo` of `ftl.clean.kind`.
        let takes = |key: &&Key| matches!(key.shape, Shape::OneOf(names) if names.iter().any(|(name, _)| *name == topic));
        found = keys::all().filter(takes).collect();
    }
    match found.as_slice() {
        [] => None,
        found => Some(found.iter().map(|key| key_text(key)).collect::<Vec<_>>().join("\n")),
    }
}

fn find_topic(name: &str) -> Option<&'static Topic> {
    let name = name.to_lowercase().replace([' ', '_'], "-");
    TOPICS.iter().find(|topic| topic.names.contains(&name.as_str()))
}

/// The error for an unknown topic.
fn suggestion(topic: &str) -> String {
    let names = TOPICS.iter().flat_map(|topic| topic.names.iter().copied());
    match nearest(topic, names.chain(keys::all().map(|key| key.path))) {
        Some(near) => format!("there is no topic `{topic}`; did you mean `{near}`?"),
        None => format!("there is no topic `{topic}`; `nvlab explain` lists all topics"),
    }
}

/// All topics and design keys: `nvlab explain` without a topic.
fn contents() -> String {
    let mut text = String::from("Topics\n");
    for topic in TOPICS {
        let _ = writeln!(text, "  {:20} {}", topic.names[0], topic.title);
    }
    text += "\nDesign keys\n";
    let mut seen = Vec::new();
    for key in keys::all().filter(|key| !key.path.is_empty()) {
        if !seen.contains(&key.path) {
            seen.push(key.path);
            let _ = writeln!(text, "  {:28} {}", key.path, first_sentence(key.about));
        }
    }
    text
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text.trim_end_matches('.'), |(first, _)| first)
}

fn key_text(key: &Key) -> String {
    let mut text = format!("{}\n", key.path);
    if !key.kinds.is_empty() {
        let _ = writeln!(text, "  for kind {}", key.kinds.join(", "));
    }
    let _ = writeln!(text, "\n{}\n", wrapped(key.about, 2));
    let _ = writeln!(text, "  takes    {}", key.shape.allowed());
    if let Shape::OneOf(names) = key.shape {
        let width = names.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, about) in names {
            let _ = writeln!(text, "             {name:width$}  {about}");
        }
    }
    let _ = match key.preset {
        Preset::Required => writeln!(text, "  default  none: required, in the design or its part"),
        Preset::Is(value) => writeln!(text, "  default  {value}"),
        Preset::Nothing(meaning) => writeln!(text, "  default  not set: {meaning}"),
    };
    let _ = writeln!(text, "  example  {} = {}", keys::leaf(key.path), key.example);
    text
}

fn table_text(table: &str) -> String {
    let mut text = format!("[{table}]\n\n");
    let mut last = "";
    for key in keys::all().filter(|key| inside(table, key.path)) {
        let shown = key.path;
        if shown != last {
            let _ = writeln!(text, "  {shown:28} {}", first_sentence(key.about));
        }
        last = shown;
    }
    text
}

/// True if the key is in the table or in a table nested in it.
fn inside(table: &str, path: &str) -> bool {
    let mut outer = keys::parent(path);
    while !outer.is_empty() {
        if keys::matches(outer, table) {
            return true;
        }
        outer = keys::parent(outer);
    }
    false
}

/// Lines of at most 90 characters.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.len() + word.len() > 88 {
            lines.push(word.to_string());
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.iter().map(|line| format!("{:indent$}{line}", "")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_workload::WorkloadSpec;

    #[test]
    fn every_key_and_topic_is_explained() {
        for key in keys::all() {
            let text = explain(&key.path.replace('*', "flash")).unwrap_or_else(|| panic!("{}", key.path));
            assert!(text.contains(key.about.split_whitespace().next().unwrap_or("")), "{text}");
        }
        for topic in TOPICS {
            for name in topic.names {
                assert!(explain(name).is_some_and(|text| text.contains(topic.text)), "{name}");
            }
            assert!(
                topic.text.lines().all(|line| line.chars().count() <= 100),
                "{}: long lines",
                topic.title
            );
        }
        let contents = contents();
        assert!(contents.contains("  waf ") && contents.contains("  ftl.clean.kind "));
    }

    #[test]
    fn every_kind_of_workload_is_explained() {
        let error = WorkloadSpec::parse("no-such-kind").unwrap_err().to_string();
        let (_, kinds) = error.split_once("(kinds: ").unwrap();
        let (kinds, _) = kinds.split_once(';').unwrap();
        assert!(kinds.contains("zipf, "), "{kinds}");
        for kind in kinds.split(", ") {
            let text = explain(kind).unwrap_or_else(|| panic!("{kind}"));
            assert!(text.contains(&format!("{kind} ")), "{kind} is not described");
        }
    }

    #[test]
    fn keys_tables_values_and_misspelled_topics() {
        assert_eq!(
            explain("ftl.wear.threshold").unwrap(),
            "ftl.wear.threshold\n  for kind static\n\n  When the erase counts of a die differ by more than this, the \
             data of its least worn full\n  block is moved to a worn one. (eNVy section 4.3: 100.)\n\n  takes    a whole number from 1 to \
             4000000000\n  default  100\n  example  threshold = 100\n\nftl.wear.threshold\n  for kind swap-extremes\n\n  \
             When the erase counts of segments differ by more than this, the extremes are swapped.\n  (eNVy section \
             4.3: 100.)\n\n  takes    a whole number from 1 to 4000000000\n  default  100\n  example  threshold = 100\n"
        );
        assert!(explain("ftl.clean").unwrap().starts_with("[ftl.clean]\n\n  ftl.clean.kind "));
        assert!(explain("media.tlc.read").unwrap().contains("for kind nand, nor"));
        assert!(explain("fifo").unwrap().contains("\nftl.clean.kind\n"));
        assert!(explain("wear.threshold").unwrap().starts_with("ftl.wear.threshold"));
        for (name, title) in [("fsync", "Flushes: "), ("op", "Spare: "), ("overprovisioning", "Spare: ")] {
            assert!(explain(name).unwrap().starts_with(title), "{name}");
        }
        assert_eq!(explain("colour"), None);
        assert_eq!(suggestion("exit-coeds"), "there is no topic `exit-coeds`; did you mean `exit-codes`?");
    }
}
