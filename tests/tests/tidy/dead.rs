//! Public items of libraries that are not named outside their crate.
//!
//! An item at the top level of a file, or a function or constant of an `impl`, is dead if it is `pub` and its name is
//! found nowhere but in its own crate. A type is also in use where a public signature or field of its crate shows it:
//! who calls that has a value of the type without naming it.

use crate::sources::{code_only, declared, module_of, root, rust_files, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Exceptions: (crate, item, reason).
const ALLOWED: &[(&str, &str, &str)] = &[
    ("nvheap-derive", "derive_persist", "a derive is named by its trait"),
    ("units", "serialize", "serde's attribute `with` names the module"),
    ("units", "deserialize", "serde's attribute `with` names the module"),
];

/// Not checked: `cli`, `rvm-c` and `window-preload` have no users that name their items; `lab` is to be cleared.
const UNCHECKED: [&str; 3] = ["cli", "rvm-c", "window-preload"];

fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').collect()
}

/// A public item.
struct Item {
    name: String,
    is_type: bool,
    /// The type whose `impl` has it.
    of: Option<String>,
}

/// The items of a file that are `pub`, without those of traits and modules.
fn public_items(code: &str) -> Vec<Item> {
    let (mut found, mut of) = (Vec::new(), None);
    for line in code.lines() {
        if !line.starts_with(' ') && line.starts_with("impl") {
            of = implemented(line);
        } else if line == "}" {
            of = None;
        }
        let Some((visibility, name)) = declared(line) else { continue };
        let depth = line.len() - line.trim_start().len();
        let is_module = line.trim_start().starts_with("pub mod ");
        if visibility == "pub" && !is_module && (depth == 0 || depth == 4 && of.is_some()) {
            let is_type = ["struct ", "enum ", "trait ", "type "].iter().any(|word| line.contains(word));
            let of = of.clone().filter(|_| depth > 0);
            found.push(Item { name: name.to_string(), is_type, of });
        }
    }
    found
}

/// The type of an `impl` that is not of a trait.
fn implemented(line: &str) -> Option<String> {
    let mut rest = line.strip_prefix("impl")?;
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        });
        rest = &rest[end? + 1..];
    }
    let end = rest.trim_start().find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(rest.trim_start()[..end.unwrap_or(rest.trim_start().len())].to_string())
}

/// What others can name of a library: items in modules that are public all the way, and what is re-exported.
fn reachable(texts: &BTreeMap<Vec<String>, String>) -> BTreeSet<String> {
    let mut reachable = BTreeSet::new();
    for (module, text) in texts {
        let is_public = (0..module.len()).all(|depth| {
            let line = format!("pub mod {};", module[depth]);
            texts.get(&module[..depth]).is_some_and(|parent| parent.contains(&line))
        });
        if is_public {
            reachable.extend(
                public_items(text).into_iter().filter(|item| item.of.is_none()).map(|item| item.name),
            );
            let exports = text.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next());
            reachable.extend(exports.flat_map(words).map(String::from));
        }
    }
    reachable
}

/// The words of what a crate shows: public signatures, fields, and everything in traits and enumerations.
fn shown(code: &str) -> BTreeSet<&str> {
    let mut shown = BTreeSet::new();
    let mut from = 0;
    while let Some(at) = code[from..].find("pub ").map(|at| from + at) {
        let rest = &code[at..];
        let whole = ["pub trait ", "pub enum ", "pub struct "].iter().any(|head| rest.starts_with(head));
        let end = match whole {
            true => rest.find("\n}").or_else(|| rest.find(';')),
            false => rest.find(['{', ';', ',']).map(|end| {
                match rest.starts_with("pub fn") || rest.contains("fn ") {
                    true => rest.find([';', '{']).unwrap_or(end),
                    false => end,
                }
            }),
        };
        let end = end.unwrap_or(rest.len());
        // Its own name does not count.
        let name = declared(rest).map_or("", |(_, name)| name);
        shown.extend(words(&rest[..end]).into_iter().filter(|word| *word != name));
        from = at + 4;
    }
    shown
}

#[test]
fn every_public_item_is_used_by_others() {
    let crates: Vec<String> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let read = |path: &Path| code_only(&std::fs::read_to_string(path).unwrap());
    // The modules of each crate's library, and every file of the workspace with the crate whose library it is part of.
    let mut libraries: BTreeMap<&str, BTreeMap<Vec<String>, String>> = BTreeMap::new();
    let mut users: Vec<(&str, String)> = Vec::new();
    for name in &crates {
        let folder = root().join("crates").join(name);
        for path in rust_files(&folder) {
            let text = read(&path);
            if let Ok(relative) = path.strip_prefix(folder.join("src")) {
                let library = libraries.entry(name).or_default();
                library.insert(module_of(relative), without_tests(&text).to_string());
                users.push((name, text));
            } else {
                users.push(("", text));
            }
        }
    }
    for folder in ["tests", "fuzz", "bench"] {
        users.extend(rust_files(&root().join(folder)).iter().map(|path| ("", read(path))));
    }
    let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (of, text) in &users {
        for word in words(text) {
            named.entry(word).or_default().insert(of);
        }
    }
    let (mut dead, mut allowed, mut looked_at) = (Vec::new(), BTreeSet::new(), 0);
    for (name, texts) in libraries.iter().filter(|(name, _)| !UNCHECKED.contains(name)) {
        let shown: BTreeSet<&str> = texts.values().flat_map(|text| shown(text)).collect();
        let reachable = reachable(texts);
        for (module, item) in texts
            .iter()
            .flat_map(|(module, text)| public_items(text).into_iter().map(move |item| (module, item)))
        {
            if !reachable.contains(item.of.as_ref().unwrap_or(&item.name)) {
                continue;
            }
            looked_at += 1;
            let elsewhere = named.get(item.name.as_str()).is_some_and(|of| of.iter().any(|of| of != name));
            if elsewhere || item.is_type && shown.contains(item.name.as_str()) {
                continue;
            }
            match ALLOWED.iter().find(|(of, allowed, _)| of == name && *allowed == item.name) {
                Some(entry) => _ = allowed.insert(entry),
                None => dead.push(format!("{name}: {} in {}", item.name, module.join("/"))),
            }
        }
    }
    assert!(looked_at > 200, "only {looked_at} public items were looked at");
    assert!(dead.is_empty(), "public, and named by nobody else:\n{}", dead.join("\n"));
    let stale: Vec<_> = ALLOWED.iter().filter(|entry| !allowed.contains(entry)).collect();
    assert!(stale.is_empty(), "these are used, or gone: take them out of ALLOWED: {stale:?}");
}
