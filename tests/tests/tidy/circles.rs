//! The direction of modules within a crate: no file uses, through others, a file that uses it.
//!
//! A file uses another if one of its paths (`crate::`, `super::`, `self::`, or that begins with a child module) names an
//! item declared there. A path through a module that re-exports leads to the file that declares the item. A module may use
//! what its children declare, and they what it declares: it is split into them. Tests are left out. What is called
//! through a method without its type being named is not seen.

use crate::sources::{code_only, declared, module_of, root, rust_files, without_tests};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Module = Vec<String>;

#[derive(Default)]
struct File {
    /// Items declared at the top level, without modules.
    items: BTreeSet<String>,
    /// What `use` makes available: name and path; the name of a glob is `*`.
    imports: Vec<(String, Vec<String>)>,
    /// Paths used, but for re-exports.
    paths: Vec<Vec<String>>,
}

/// The files of a crate by module.
struct Crate {
    files: BTreeMap<Module, File>,
}

impl Crate {
    fn read(source: &Path) -> Crate {
        let mut texts = BTreeMap::new();
        for path in rust_files(source) {
            if !path.ends_with("tests.rs") {
                let text = code_only(without_tests(&std::fs::read_to_string(&path).unwrap()));
                texts.insert(module_of(path.strip_prefix(source).unwrap()), text);
            }
        }
        let modules: BTreeSet<Module> = texts.keys().cloned().collect();
        let files = texts.iter().map(|(module, text)| (module.clone(), parse(module, text, &modules)));
        Crate { files: files.collect() }
    }

    /// The file that declares what a path from the root names.
    fn resolve(&self, path: &[String], depth: u32) -> Option<Module> {
        let known = (0..=path.len()).rev().find(|&end| self.files.contains_key(&path[..end]))?;
        let (module, rest) = path.split_at(known);
        let Some(name) = rest.first() else { return Some(module.to_vec()) };
        let file = &self.files[module];
        if file.items.contains(name) || depth == 0 {
            return Some(module.to_vec());
        }
        for (imported, target) in &file.imports {
            let target = match imported.as_str() {
                "*" => [target, rest].concat(),
                imported if imported == name => [target, &rest[1..]].concat(),
                _ => continue,
            };
            let found = self.resolve(&target, depth - 1);
            // A glob that does not have it leads to the module itself.
            if let Some(found) = found
                && (imported != "*" || self.declares(&found, name))
            {
                return Some(found);
            }
        }
        Some(module.to_vec())
    }

    fn declares(&self, module: &Module, name: &str) -> bool {
        self.files.get(module).is_some_and(|file| file.items.contains(name))
    }

    fn uses(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let targets = |module: &Module, file: &File| {
            let found = file.paths.iter().filter_map(|path| self.resolve(path, 8));
            found.filter(|target| !target.starts_with(module)).collect()
        };
        self.files.iter().map(|(module, file)| (module, targets(module, file))).collect()
    }

    /// Sets of files that use each other.
    fn circles(&self) -> BTreeSet<BTreeSet<String>> {
        let uses = self.uses();
        let mut reached = BTreeMap::new();
        for &start in uses.keys() {
            let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
            while let Some(module) = open.pop() {
                open.extend(uses.get(module).into_iter().flatten().filter(|&next| seen.insert(next)));
            }
            reached.insert(start, seen);
        }
        let together = |module: &Module| -> BTreeSet<String> {
            let mutual = reached[module].iter().filter(|&&other| reached[other].contains(module));
            mutual.map(|module| if module.is_empty() { "lib".into() } else { module.join("/") }).collect()
        };
        uses.keys().map(|module| together(module)).filter(|circle| circle.len() > 1).collect()
    }
}

fn parse(module: &Module, text: &str, modules: &BTreeSet<Module>) -> File {
    let mut file = File::default();
    let top = text.lines().filter(|line| !line.starts_with(' '));
    let declared = top.filter_map(declared).map(|(_, name)| name.to_string());
    file.items = declared.filter(|name| !modules.contains(&child(module, name))).collect();
    let mut rest = text;
    while let Some((before, statement, after)) = next_use(rest) {
        inline(module, before, modules, &mut file.paths);
        let (visibility, tree) = statement;
        let mut paths = Vec::new();
        flatten(&[], tree, &mut paths);
        for (name, path) in paths {
            let Some(path) = absolute(module, &path, modules) else { continue };
            let reexport = visibility && path.starts_with(module);
            if !reexport {
                file.paths.push(path.clone());
            }
            file.imports.push((name, path));
        }
        rest = after;
    }
    inline(module, rest, modules, &mut file.paths);
    file
}

fn child(module: &Module, name: &str) -> Module {
    [module.as_slice(), &[name.to_string()]].concat()
}

/// The text before the next `use`, whether that is public, its tree, and the text after it.
fn next_use(text: &str) -> Option<(&str, (bool, &str), &str)> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find("use ")?;
        let line = &text[text[..at].rfind('\n').map_or(0, |newline| newline + 1)..at];
        let line = line.trim();
        let is_public = line == "pub" || line.starts_with("pub(") && line.ends_with(')');
        if line.is_empty() && !text[..at].ends_with(|c: char| c.is_alphanumeric()) || is_public {
            let end = at + text[at..].find(';')?;
            return Some((&text[..at], (is_public, text[at + 4..end].trim()), &text[end + 1..]));
        }
        from = at + 4;
    }
}

/// The paths of a `use` tree, each with the name it makes available.
fn flatten(prefix: &[String], tree: &str, found: &mut Vec<(String, Vec<String>)>) {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let head = tree[..open].trim().trim_end_matches("::");
        let prefix = [prefix, &segments(head)].concat();
        let inner = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
        let (mut depth, mut start) = (0, 0);
        for (at, character) in inner.char_indices() {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    flatten(&prefix, &inner[start..at], found);
                    start = at + 1;
                }
                _ => {}
            }
        }
        flatten(&prefix, &inner[start..], found);
    } else if !tree.is_empty() {
        let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias)));
        let mut path = [prefix, &segments(path)].concat();
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        let mut name = alias.map_or_else(|| path.last().unwrap().clone(), |alias| alias.trim().into());
        if path.last().is_some_and(|last| last == "*") {
            path.pop();
            name = "*".into();
        }
        found.push((name, path));
    }
}

fn segments(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(String::from).collect()
}

/// A path of this crate from its root; `None` for one of another crate.
fn absolute(module: &Module, path: &[String], modules: &BTreeSet<Module>) -> Option<Vec<String>> {
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => {
            let supers = path.iter().take_while(|part| *part == "super").count();
            let parent = module.get(..module.len().checked_sub(supers)?)?;
            Some([parent, &path[supers..]].concat())
        }
        first if modules.contains(&child(module, first)) => Some([module, path].concat()),
        _ => None,
    }
}

/// Paths in code that are not in a `use`.
fn inline(module: &Module, text: &str, modules: &BTreeSet<Module>, found: &mut Vec<Vec<String>>) {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    for (at, _) in text.match_indices("::") {
        let start = text[..at].rfind(|c| !is_name(c)).map_or(0, |before| before + 1);
        if start == at || text[..start].ends_with("::") {
            continue;
        }
        let end = text[at..].find(|c| !is_name(c) && c != ':').map_or(text.len(), |end| at + end);
        found.extend(absolute(module, &segments(&text[start..end]), modules));
    }
}

#[test]
fn files_of_a_crate_do_not_use_each_other_in_circles() {
    let mut found: Vec<(String, BTreeSet<String>)> = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let circles = Crate::read(&path.join("src")).circles();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        found.extend(circles.into_iter().map(|circle| (name.clone(), circle)));
    }
    assert!(found.is_empty(), "files that use each other: {found:#?}");
}

/// A crate of a few lines each: a parent that re-exports, a circle through that, and paths that are none.
#[test]
fn a_circle_is_found_and_a_re_export_is_none() {
    let of = |texts: &[(&str, &str)]| {
        let folder = std::env::temp_dir().join(format!("nvlab-tidy-{}-{}", std::process::id(), texts.len()));
        for (name, text) in texts {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let circles = Crate::read(&folder).circles();
        std::fs::remove_dir_all(&folder).unwrap();
        circles
    };
    let lib = ("lib.rs", "mod a;\nmod b;\npub use a::A;\npub use b::{self, B as C};\n");
    let a = ("a.rs", "use crate::C;\npub struct A(C);\n");
    assert_eq!(of(&[lib, a, ("b.rs", "// crate::A\npub struct B;\n")]), BTreeSet::new());
    let circle = BTreeSet::from(["a".to_string(), "b".to_string()]);
    let back = ("b.rs", "pub struct B;\nfn f() -> u32 {\n    super::A::f()\n}\n");
    assert_eq!(of(&[lib, a, back, ("c.rs", "")]), BTreeSet::from([circle]));
    let user = ("lib.rs", "mod a;\nuse a::A;\npub struct C(A);\n");
    assert_eq!(of(&[user, a, ("d.rs", ""), ("e.rs", ""), ("f.rs", "")]), BTreeSet::new(), "parent and child");
}
