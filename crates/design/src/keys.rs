//! Every key of a design in one table. Each is defined beside the code that reads it: those of a controller in its
//! file of `kinds`, those that several share in `bricks`, those of media here. Reading, `design show`, the schema,
//! `explain` and the "did you mean" all use this table.

mod media;
mod memory;

use super::bricks::{array, buffer, cleaning, map, memories, path, service, slc, space, wear};
use super::key::Keys;
use super::{kinds, resolve, route};
use std::sync::LazyLock;

pub use super::key::{Key, Preset, leaf, matches, parent};

/// Keys that several kinds share, and those of the environment of a controller: table by table in any order.
const SHARED: [&[Key]; 11] = [
    array::KEYS,
    memories::KEYS,
    map::KEYS,
    space::KEYS,
    service::KEYS,
    buffer::KEYS,
    cleaning::KEYS,
    wear::KEYS,
    slc::KEYS,
    route::KEYS,
    path::KEYS,
];

/// The order of keys in the text of a resolved design, which is part of the key of results and must therefore not change. A
/// key that is not listed follows the others of its table.
const ORDER: &[(&str, &str)] = &[
    ("array", "channels ways gang planes transfer"),
    (
        "ftl",
        "kind medium unit concurrent transaction_pages spare op utilization utilization_of capacity trim",
    ),
    ("ftl", "verify_reads allocation streams hot_within free_blocks_min overhead data_area merge_blocks"),
    ("ftl.log", "blocks share in mode ways sequential second_chance"),
    ("ftl.map", "in entry cache checkpoint"),
    ("ftl.buffer", "kind in size flush_at"),
    ("ftl.clean", "kind partition reserve smoothing step step_max dead_band exchange sorted d window"),
    ("ftl.wear", "kind threshold"),
    ("power", "on_cut"),
    ("ftl.cache", "kind in size_min size_max spared fold_after when_full"),
    ("ftl.map", "lookup kind cache host_buffer host_read"),
    ("ftl.route", "kind in size update trim overhead first"),
    ("path", "kind rate width queue"),
    ("path.overhead", "host device"),
    ("path", "rate_write"),
    ("path", "stages"),
];

/// The position of a key of a controller: its place in [`ORDER`], or after the last key of its table there.
fn place(key: &Key) -> (usize, bool) {
    let (table, name) = (parent(key.path), leaf(key.path));
    let listed = ORDER.iter().flat_map(|(table, names)| names.split(' ').map(move |name| (*table, name)));
    match listed.clone().position(|at| at == (table, name)) {
        Some(at) => (at, false),
        None => {
            (listed.enumerate().filter(|(_, at)| at.0 == table).last().map_or(usize::MAX, |at| at.0), true)
        }
    }
}

static TABLE: LazyLock<Vec<&'static Key>> = LazyLock::new(|| {
    let mut controllers: Vec<&Key> = kinds::KEYS.into_iter().chain(SHARED).flatten().collect();
    controllers.sort_by_cached_key(|key| place(key));
    let before = resolve::KEYS.iter().chain(media::KEYS).chain(memory::KEYS);
    before.chain(controllers).collect()
});

/// The whole table.
pub fn table() -> Keys {
    Keys(&TABLE)
}

/// Every key, in the order in which a design is written.
pub fn all() -> impl Iterator<Item = &'static Key> + Clone {
    table().all()
}
