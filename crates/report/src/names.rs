//! Names of designs side by side: the part common to all is stated once, then only the differences.
//!
//! A design is named by its name and its changes, `ssd-tlc ftl.clean.kind=fifo ftl.spare=20 %`. In five of them the
//! common words would fill the line five times over.

use std::collections::BTreeSet;

/// The names of designs in tables for programs; those for users have short names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameStyle {
    /// `ssd-tlc ftl.clean.kind=fifo`.
    Whole,
    /// Only the differences: `fifo`.
    Short,
}

/// Names without their common part.
#[derive(Debug, PartialEq, Eq)]
pub struct Names {
    /// The common part, and the key in which they differ if it is a single one; empty if the names are unchanged.
    pub shared: String,
    /// The names, in their order.
    pub short: Vec<String>,
}

/// A name: the design's own, and its changes.
struct Parts<'a> {
    base: &'a str,
    changes: Vec<(&'a str, &'a str)>,
}

impl<'a> Parts<'a> {
    fn of(name: &'a str) -> Parts<'a> {
        // A change begins at a word with an equals sign after a key.
        let begins = |at: &usize| {
            let word = name[*at..].split(' ').next().unwrap_or_default();
            let key = word.split_once('=').map_or("", |(key, _)| key);
            !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-*".contains(&byte))
        };
        let mut starts: Vec<usize> = name.match_indices(' ').map(|(at, _)| at + 1).filter(begins).collect();
        let base = name[..starts.first().map_or(name.len(), |at| at - 1)].trim_end();
        starts.push(name.len() + 1);
        let changes = starts.windows(2).filter_map(|two| name[two[0]..two[1] - 1].split_once('='));
        Parts { base, changes: changes.collect() }
    }
}

/// The short names of designs that stand side by side.
pub fn short_names(names: &[&str]) -> Names {
    let as_they_are =
        || Names { shared: String::new(), short: names.iter().map(|name| name.to_string()).collect() };
    let parts: Vec<Parts<'_>> = names.iter().map(|name| Parts::of(name)).collect();
    let distinct = |names: &mut dyn Iterator<Item = &str>| names.collect::<BTreeSet<_>>().len();
    let Some((first, others)) = parts.split_first().filter(|_| distinct(&mut names.iter().copied()) > 1)
    else {
        return as_they_are();
    };
    let has_one_base = others.iter().all(|of| of.base == first.base);
    let is_shared = |change: &(&str, &str)| others.iter().all(|of| of.changes.contains(change));
    let shared: Vec<(&str, &str)> = first.changes.iter().copied().filter(is_shared).collect();
    let left = |of: &Parts<'_>| -> Vec<(String, String)> {
        let own = of.changes.iter().filter(|change| !shared.contains(change));
        own.map(|(key, value)| (key.to_string(), value.to_string())).collect()
    };
    let keys: BTreeSet<String> = parts.iter().flat_map(left).map(|(key, _)| key).collect();
    if !has_one_base && shared.is_empty() {
        return as_they_are();
    }
    let leaf = |key: &str| key.rsplit('.').next().unwrap_or_default().to_string();
    let name = |of: &Parts<'_>| {
        let change = |(key, value): (String, String)| match keys.len() {
            1 if has_one_base => value,
            _ if keys.iter().filter(|other| leaf(other) == leaf(&key)).count() == 1 => {
                format!("{}={value}", leaf(&key))
            }
            _ => format!("{key}={value}"),
        };
        let changes: Vec<String> = left(of).into_iter().map(change).collect();
        match (has_one_base, changes.is_empty()) {
            // As it is, without a change.
            (true, true) => of.base.to_string(),
            (true, false) => changes.join(" "),
            (false, _) => [vec![of.base.to_string()], changes].concat().join(" "),
        }
    };
    let short: Vec<String> = parts.iter().map(name).collect();
    if distinct(&mut short.iter().map(String::as_str)) != distinct(&mut names.iter().copied()) {
        return as_they_are();
    }
    let base = has_one_base.then(|| first.base.to_string());
    let shared = base.into_iter().chain(shared.iter().map(|(key, value)| format!("{key}={value}")));
    let mut shared = shared.collect::<Vec<_>>().join(" ");
    if let (true, [key]) = (has_one_base, &keys.iter().collect::<Vec<_>>()[..]) {
        shared += &format!(", by {key}");
    }
    Names { shared, short }
}

/// Sentences about designs, each with the design's name before it; equal sentences about several designs are merged.
pub fn together(said: &[(String, String)], designs: usize) -> Vec<String> {
    /// With more designs than this they are counted, not named.
    const NAMED_MAX: usize = 3;
    let mut texts: Vec<&str> = Vec::new();
    for (_, text) in said {
        if !texts.contains(&text.as_str()) {
            texts.push(text);
        }
    }
    let sentence = |text: &&str| {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in said.iter().filter(|(_, other)| other == text) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        match names.len() {
            2 if designs == 2 => format!("both designs: {text}"),
            count if count > 1 && count == designs => format!("all {count} designs: {text}"),
            count if count > NAMED_MAX => format!("{count} designs: {text}"),
            _ => format!("{}: {text}", names.join(", ")),
        }
    };
    texts.iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(names: &[&str]) -> (String, Vec<String>) {
        let Names { shared, short } = short_names(names);
        (shared, short)
    }

    #[test]
    fn what_all_share_is_said_once() {
        let of = |shared: &str, short: &[&str]| {
            (shared.to_string(), short.iter().map(|name| name.to_string()).collect())
        };
        assert_eq!(
            short(&["ssd-tlc ftl.clean.kind=greedy", "ssd-tlc ftl.clean.kind=windowed-greedy", "ssd-tlc"]),
            of("ssd-tlc, by ftl.clean.kind", &["greedy", "windowed-greedy", "ssd-tlc"])
        );
        assert_eq!(
            short(&[
                "a ftl.spare=20 % ftl.clean.kind=fifo",
                "a ftl.spare=20 % ftl.clean.kind=fifo ftl.streams=2"
            ]),
            of("a ftl.spare=20 % ftl.clean.kind=fifo, by ftl.streams", &["a", "2"])
        );
        assert_eq!(
            short(&["a ftl.clean.kind=fifo", "a ftl.wear.kind=none ftl.spare=7 %"]),
            of("a", &["ftl.clean.kind=fifo", "ftl.wear.kind=none spare=7 %"])
        );
        assert_eq!(
            short(&["a ftl.spare=7 % ftl.streams=2", "b ftl.spare=7 % ftl.streams=3"]),
            of("ftl.spare=7 %", &["a streams=2", "b streams=3"])
        );
        for kept in
            [&["a", "b"][..], &["a"], &["a ftl.spare=7 %", "a ftl.spare=7 %"], &["a", "b ftl.spare=7 %"]]
        {
            assert_eq!(short(kept), of("", kept));
        }
        // The value is the name of the unchanged design: nothing is told apart.
        assert_eq!(short(&["x", "x ftl.k=x"]), of("", &["x", "x ftl.k=x"]));
    }

    #[test]
    fn equal_sentences_are_one() {
        let said = |names: &[&str], text: &str| -> Vec<(String, String)> {
            names.iter().map(|name| (name.to_string(), text.to_string())).collect()
        };
        let all = [said(&["a", "b"], "x"), said(&["a"], "y"), said(&["a", "b", "c", "d"], "z")].concat();
        assert_eq!(together(&all, 5), ["a, b: x", "a: y", "4 designs: z"]);
        assert_eq!(together(&said(&["a", "b"], "x"), 2), ["both designs: x"]);
        assert_eq!(together(&said(&["a"], "x"), 1), ["a: x"]);
    }
}
