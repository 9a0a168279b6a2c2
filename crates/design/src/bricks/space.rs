//! How much of the array the host can address: `spare`, `op`, `utilization` or `capacity`.

use super::memories::EVERY_KIND;
use crate::context::Context;
use crate::key::Preset::Nothing;
use crate::key::{Key, key};
use crate::toml_reader::datum::{Datum, Shape};
use nvlab_units::quantity::display_bytes;

/// The keys.
pub const KEYS: &[Key] = &[
    key(
        "ftl.spare",
        EVERY_KIND,
        Shape::Share { max: 0.99 },
        Nothing("7 % (page) or 20 % (envy), unless `op`, `utilization` or `capacity` is given"),
        "\"12 %\"",
    )
    .about(
        "Spare space: the share of the raw capacity that the host cannot address. `logical \
         units = floor(raw units x (1 - spare))`. Factory bad blocks come out of it. With more spare space, cleaned \
         blocks hold less live data and write amplification is lower.",
    ),
    key("ftl.op", EVERY_KIND, Shape::Share { max: 1.0 }, Nothing("from spare"), "\"28 %\"").about(
        "Over-provisioning as stated for drives: (raw - user) / user. An alternative to `spare`: `op = \"25 %\"` is \
         `spare = \"20 %\"`; spare = op / (1 + op).",
    ),
    key("ftl.utilization", EVERY_KIND, Shape::Share { max: 0.99 }, Nothing("1 - spare"), "\"80 %\"").about(
        "Share of the raw capacity that the host can address: an alternative to `spare`. (eNVy section 4.1: live data \
         limited to 80 % of the array.)",
    ),
    key(
        "ftl.capacity",
        EVERY_KIND,
        Shape::Size { min: 4096, max: u64::MAX },
        Nothing("from spare"),
        "\"120 GB\"",
    )
    .about("Capacity that the host can address, in bytes: an alternative to `spare`."),
];

/// What the host can address.
#[derive(Clone, Copy)]
pub enum Share {
    /// This share of the raw capacity.
    Of(f64),
    /// So many bytes.
    Bytes(u64),
}

/// The keys that state it.
pub const SPARE_KEYS: [&str; 4] = ["ftl.spare", "ftl.op", "ftl.utilization", "ftl.capacity"];

/// The design's value; otherwise `default` is spare.
pub fn spare(context: &mut Context, kind: &str, default: f64) -> Option<Share> {
    let set: Vec<&str> = SPARE_KEYS.into_iter().filter(|key| context.has(key)).collect();
    let values: Vec<Option<Datum>> = set.iter().map(|key| context.get(key, Some(kind))).collect();
    if let [first, second, ..] = set.as_slice() {
        let problem = format!("`{first}` and `{second}` set the same value");
        context.wrong(second, problem, "keep one of `spare`, `op`, `utilization` and `capacity`");
        return None;
    }
    match (set.first(), values.into_iter().next().flatten()) {
        (None, _) => {
            context.derive("ftl.spare", Datum::Share(default), "the default");
            Some(Share::Of(1.0 - default))
        }
        (Some(_), Some(Datum::Size(bytes))) => Some(Share::Bytes(bytes)),
        (Some(&"ftl.utilization"), Some(Datum::Share(share))) => Some(Share::Of(share)),
        (Some(&"ftl.op"), Some(Datum::Share(op))) => Some(Share::Of(1.0 / (1.0 + op))),
        (Some(_), Some(Datum::Share(share))) => Some(Share::Of(1.0 - share)),
        _ => None,
    }
}

/// The key that states the spare space, to point at in messages.
pub fn spare_key(context: &Context) -> &'static str {
    SPARE_KEYS.into_iter().find(|key| context.has(key)).unwrap_or(SPARE_KEYS[0])
}

/// The units of `unit_bytes` the host can address, of `raw` units that can hold data.
pub fn logical_units(context: &mut Context, raw: u64, unit_bytes: u32, share: Share) -> Option<u32> {
    let units = match share {
        // The millionth of a unit lets 80 % of 1000 be 800 although 0.8 is not exact.
        Share::Of(share) => (raw as f64 * share + 1e-6).floor() as u64,
        Share::Bytes(bytes) => bytes / unit_bytes as u64,
    };
    let key = spare_key(context);
    if units == 0 || units >= raw {
        let problem = format!(
            "`{key}` leaves {} for the host of {} raw",
            display_bytes(units.saturating_mul(unit_bytes as u64)),
            display_bytes(raw * unit_bytes as u64)
        );
        context.wrong(key, problem, "more than nothing and less than the raw capacity");
        return None;
    }
    u32::try_from(units).ok()
}
