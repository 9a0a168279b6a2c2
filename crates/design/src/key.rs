//! A key of a design, and a table of them.

use crate::toml_reader::datum::Shape;

/// The value of a key that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// It must be set, by the design or its part.
    Required,
    /// This value, written as in a design file without quotes.
    Is(&'static str),
    /// Nothing; the text says what that means.
    Nothing(&'static str),
}

/// One key of a design.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its dotted path; `*` stands for the name of a medium.
    pub path: &'static str,
    /// The kinds of its table, or of the table around it, that have it; empty: all of them.
    pub kinds: &'static [&'static str],
    /// The type and range of its values.
    pub shape: Shape,
    /// Its value when not set.
    pub preset: Preset,
    /// Its meaning: one sentence or a few.
    pub about: &'static str,
    /// A value, as in a design file.
    pub example: &'static str,
}

/// A key of some kinds (none: of all), which takes `shape` and is `preset` when not set; `example` is such a value.
/// [`Key::about`] sets its meaning.
pub const fn key(
    path: &'static str,
    kinds: &'static [&'static str],
    shape: Shape,
    preset: Preset,
    example: &'static str,
) -> Key {
    Key { path, kinds, shape, preset, about: "", example }
}

impl Key {
    /// Sets its meaning.
    pub const fn about(self, about: &'static str) -> Key {
        Key { about, ..self }
    }
}

/// Every key of a design, in the order in which a design is written.
#[derive(Clone, Copy, Debug)]
pub struct Keys(pub &'static [&'static Key]);

impl Keys {
    /// Each of them.
    pub fn all(self) -> impl Iterator<Item = &'static Key> + Clone {
        self.0.iter().copied()
    }

    /// The key at a path. Where the kinds of a table give a name different meanings, the one of `kind`.
    pub fn find(self, path: &str, kind: Option<&str>) -> Option<&'static Key> {
        let of_kind = |key: &Key| kind.is_none_or(|kind| key.kinds.is_empty() || key.kinds.contains(&kind));
        self.all().find(|key| matches(key.path, path) && of_kind(key))
    }

    /// The keys of a table.
    pub fn of_table(self, table: &str) -> impl Iterator<Item = &'static Key> {
        self.all().filter(move |key| matches(parent(key.path), table))
    }

    /// True if a key is in this table or in a table nested in it.
    pub fn is_table(self, table: &str) -> bool {
        self.all().any(|key| {
            let mut path = parent(key.path);
            loop {
                if path.is_empty() || matches(path, table) {
                    return !path.is_empty();
                }
                path = parent(path);
            }
        })
    }
}

/// True if `path` is the key or table `pattern`, where `*` stands for any one name.
pub fn matches(pattern: &str, path: &str) -> bool {
    let (mut a, mut b) = (pattern.split('.'), path.split('.'));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(x), Some(y)) if x == "*" || x == y => {}
            _ => return false,
        }
    }
}

/// The table of a path, empty for the top.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(table, _)| table)
}

/// The last name of a path.
pub fn leaf(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, leaf)| leaf)
}

/// Keys of which a design sets one; setting one in a later layer replaces the others of an earlier one.
pub const ALTERNATIVES: &[&[&str]] = &[
    &["ftl.spare", "ftl.op", "ftl.utilization", "ftl.capacity"],
    &["ftl.log.blocks", "ftl.log.share"],
    &["media.*.pages", "media.*.block"],
    &["path.overhead.host", "path.stages"],
];

/// The other keys of which only one may be set together with `path`.
pub fn rivals(path: &str) -> Vec<String> {
    let group = ALTERNATIVES.iter().find(|group| group.iter().any(|pattern| matches(pattern, path)));
    let table = parent(path);
    let rivals = group.into_iter().flat_map(|group| group.iter()).filter(|pattern| !matches(pattern, path));
    let rival = |pattern: &&str| match pattern.contains('*') {
        true => format!("{table}.{}", leaf(pattern)),
        false => pattern.to_string(),
    };
    rivals.map(rival).collect()
}
