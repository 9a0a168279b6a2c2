//! A design as text: canonical (for keys of results), resolved (for users), its differences, and a template.

use super::context::Resolved;
use super::key;
use super::{Design, Software};
use std::collections::BTreeMap;

/// A value in which two designs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its dotted path.
    pub path: String,
    /// In the first design, if it has such a value.
    pub left: Option<String>,
    /// In the second.
    pub right: Option<String>,
}

/// True for keys that name a design and do not change its behaviour.
fn is_label(path: &str) -> bool {
    path == "schema" || path.starts_with("design.") || path.ends_with(".part")
}

impl Design {
    /// Every value that can change a result, one `key = value` a line, in a fixed order and spelling. Two designs
    /// with the same text behave the same, however they were written; names, descriptions and the names of
    /// parts are not in it.
    pub fn canonical_text(&self) -> String {
        // A stack is its stages: its file may have another content tomorrow.
        let values =
            self.resolved.iter().filter(|value| !is_label(&value.path) && value.path != "path.stages");
        let text: String = values.map(|value| format!("{} = {}\n", value.path, value.value)).collect();
        text + &self.path.software.as_ref().map(Software::canonical_text).unwrap_or_default()
    }

    /// `design show`: a design file with every default filled in and the origin of each value beside it. It can be
    /// loaded again and gives the same design.
    pub fn resolved_toml(&self) -> String {
        let lines: Vec<(&Resolved, String)> =
            self.resolved.iter().map(|value| (value, line(value))).collect();
        let width =
            lines.iter().map(|(_, line)| line.chars().count()).filter(|&n| n <= 48).max().unwrap_or(0);
        let mut text = String::new();
        let mut table = "";
        for (value, line) in &lines {
            let own = key::parent(&value.path);
            if own != table {
                text += &format!("\n[{own}]\n");
                table = own;
            }
            text += &format!("{line:width$}  # {}\n", value.origin.text());
        }
        if let Some(software) = &self.path.software {
            text += &format!("\n{}", software.comments());
        }
        text
    }
}

fn line(value: &Resolved) -> String {
    let key = key::leaf(&value.path);
    // Their contents are written out below them.
    let comment = if value.path == "design.extends" || value.path.ends_with(".part") { "# " } else { "" };
    format!("{comment}{key} = {}", value.value)
}

/// The values in which two designs differ, in the order of their paths.
pub fn diff(left: &Design, right: &Design) -> Vec<Difference> {
    let values = |design: &Design| -> BTreeMap<String, String> {
        let values = design.resolved.iter().filter(|value| !is_label(&value.path));
        values.map(|value| (value.path.clone(), value.value.to_string())).collect()
    };
    let (left, right) = (values(left), values(right));
    let mut paths: Vec<&String> = left.keys().chain(right.keys()).collect();
    paths.sort();
    paths.dedup();
    let differences = paths.into_iter().filter(|path| left.get(*path) != right.get(*path)).map(|path| {
        Difference { path: path.clone(), left: left.get(path).cloned(), right: right.get(path).cloned() }
    });
    differences.collect()
}

/// `design new`: a commented design to start from.
pub fn template(name: &str) -> String {
    include_str!("template.toml").replace("my-design", name)
}
