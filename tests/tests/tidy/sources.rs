//! The source files of the workspace, with comments, string literals and test modules removed.

use std::path::{Path, PathBuf};

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// Every Rust file below a folder, in order; build output is left out.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(folder, &mut found);
    found.sort();
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The module that a file of a crate is, from the crate's root.
pub fn module_of(file: &Path) -> Vec<String> {
    let file = file.with_extension("");
    let mut module: Vec<String> = file.iter().map(|part| part.to_str().unwrap().into()).collect();
    if module.last().is_some_and(|last| last == "mod") || module == ["lib"] || module == ["main"] {
        module.pop();
    }
    module
}

/// A file without the module of its tests.
pub fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

/// Rust code with the contents of comments, string literals and character literals replaced by nothing.
pub fn code_only(text: &str) -> String {
    let (mut code, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("r\"") || rest.starts_with("r#\"") {
            let fence = if rest.starts_with("r#") { "\"#" } else { "\"" };
            let opening = rest.find('"').unwrap() + 1;
            rest[opening..].find(fence).map_or(rest.len(), |end| opening + end + fence.len())
        } else if first == '"' {
            quoted(rest, '"')
        } else if first == '\'' && is_character(rest) {
            quoted(rest, '\'')
        } else {
            0
        };
        if skipped == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            rest = &rest[skipped..];
        }
    }
    code
}

/// Whether a quote begins a character literal, not a lifetime.
fn is_character(text: &str) -> bool {
    let mut characters = text.chars().skip(1);
    characters.next() == Some('\\') || characters.next() == Some('\'')
}

/// Bytes of a literal up to its closing quote.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + quote.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The name of an item that a line of code declares, and its visibility: what stands before the keyword.
pub fn declared(line: &str) -> Option<(&str, &str)> {
    const KEYWORDS: [&str; 8] = ["struct", "enum", "trait", "fn", "const", "static", "type", "mod"];
    const QUALIFIERS: [&str; 5] = ["const", "async", "unsafe", "extern", "default"];
    let mut rest = line.trim_start();
    let mut visibility = "";
    if let Some(after) = rest.strip_prefix("pub") {
        let end = match after.starts_with('(') {
            true => after.find(')')? + 1,
            false => 0,
        };
        visibility = &rest[..3 + end];
        rest = after[end..].trim_start();
    }
    let mut words = rest.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let next = words.peek().copied().unwrap_or_default();
        if KEYWORDS.contains(&word) && !KEYWORDS.contains(&next) && !QUALIFIERS.contains(&next) {
            let end = next.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(next.len());
            return (end > 0).then_some((visibility, &next[..end]));
        }
        if !QUALIFIERS.contains(&word) {
            return None;
        }
    }
    None
}

#[test]
fn literals_and_comments_are_no_code() {
    let text = "let a = \"crate::x \\\" y\"; // crate::z\nlet b = 'c'; fn f<'a>(c: &'a str) {} /* d */ r#\"e\"f\"# g";
    assert_eq!(code_only(text), "let a = ; \nlet b = ; fn f<'a>(c: &'a str) {}   g");
    assert_eq!(declared("    pub(crate) const fn name<T>(x: T)"), Some(("pub(crate)", "name")));
    assert_eq!(declared("pub const MAX: u32 = 3;"), Some(("pub", "MAX")));
    assert_eq!(declared("struct Word(u8);"), Some(("", "Word")));
    assert_eq!(declared("let constant = 3;"), None);
}
