//! Layers of a design: `--set` overrides the file, the file what it extends, and that the parts.

use super::key;
use super::source::{Layer, Leaf};
use std::collections::BTreeMap;

/// Overlays `lower` with `upper`.
///
/// 1. A key of the upper layer replaces the same key, everything inside it, and its rivals
///    ([`key::ALTERNATIVES`]).
/// 2. Another `kind` or `part` drops the lower keys of its table: they belonged to the previous one.
pub fn lay(lower: &mut Layer, upper: Layer) {
    for (path, leaf) in &upper.leaves {
        let changed = lower.leaves.get(path).is_none_or(|old| old.value != leaf.value);
        if ["kind", "part"].contains(&key::leaf(path)) && changed {
            drop_table(&mut lower.leaves, key::parent(path));
        }
    }
    for (path, leaf) in upper.leaves {
        put(&mut lower.leaves, path, leaf);
    }
    lower.tables.extend(upper.tables);
}

/// Changes one value of the top layer.
pub fn put(leaves: &mut BTreeMap<String, Leaf>, path: String, leaf: Leaf) {
    drop_table(leaves, &path);
    for rival in key::rivals(&path) {
        // Two rivals in one file are the user's mistake and are reported; one from a lower layer is replaced.
        let same_source = |old: &Leaf| std::sync::Arc::ptr_eq(&old.at.source, &leaf.at.source);
        if leaves.get(&rival).is_some_and(|old| !same_source(old)) {
            leaves.remove(&rival);
        }
    }
    leaves.insert(path, leaf);
}

/// Removes everything inside a table.
fn drop_table(leaves: &mut BTreeMap<String, Leaf>, table: &str) {
    let prefix = format!("{table}.");
    leaves.retain(|path, _| !path.starts_with(&prefix));
}
