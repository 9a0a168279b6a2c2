//! From keys to a typed [`Design`]: its description, its media, its controller and their environment.

use super::bricks::memories::{self, Media};
use super::bricks::{array, path};
use super::context::Context;
use super::key::Preset::{Is, Nothing};
use super::key::{Key, key};
use super::{Design, Medium, kinds, part, route};
use crate::toml_reader::datum::{Datum, Shape};
use nvlab_workload::Serves;

/// Keys about the design itself.
pub const KEYS: &[Key] = &[
    key("schema", &[], Shape::Count { min: 1, max: 1 }, Is("1"), "1")
        .about("Version of the design file format."),
    key("design.name", &[], Shape::Text, Nothing("the name of the file"), "\"ssd-tlc\"")
        .about("Short name; result directories start with it."),
    key(
        "design.about",
        &[],
        Shape::Text,
        Nothing("no description"),
        "\"A small NVMe drive of today\"",
    )
    .about("One-line description; shown in reports."),
    key("design.cite", &[], Shape::Text, Nothing("no source"), "\"Wu, Zwaenepoel: eNVy, ASPLOS 1994\"")
        .about("The publication the design follows; shown in reports."),
    key("design.extends", &[], Shape::Text, Nothing("no base design"), "\"builtin:ssd-tlc\"").about(
        "Base design, a built-in NAME or a file relative to this one: keys not given here have its values. Another `kind` \
         or `part` drops the other keys of its table; of `spare`, `op`, `utilization` and `capacity`, the last one given \
         wins.",
    ),
];

/// Reads everything; `None` if a problem, which is then reported, leaves no design.
pub fn resolve(context: &mut Context, file_stem: &str) -> Option<Design> {
    context.get("schema", None);
    let name = context.text("design.name", "").unwrap_or_else(|| {
        context.derive("design.name", Datum::Text(file_stem.to_string()), "the name of the file");
        file_stem.to_string()
    });
    let about = context.text("design.about", "").unwrap_or_default();
    let cite = context.text("design.cite", "").unwrap_or_default();
    context.text("design.extends", "");
    let mut media = media(context);
    let path = path::read(context);
    let wiring = array::wiring(context);
    let (array, ftl) = kinds::read(context, &media, wiring, path.as_ref())?;
    let route = route::read(context, &media, &ftl)?;
    memories::size_by_use(context, &mut media, |name| ftl.kind().takes(name));
    let path = path?;
    if path.software.is_some() && ftl.kind().serves() == Serves::Commits {
        let problem = "`path.stages`: stages apply to block requests, and a log takes transactions";
        context.wrong("path.stages", problem, "leave it out; `path.overhead.host` applies to each commit");
    }
    Some(Design { name, about, cite, media, array, ftl, route, path, resolved: Vec::new() })
}

fn media(context: &mut Context) -> Media {
    let mut media = Media::new();
    for name in context.media_names() {
        let table = format!("media.{name}");
        let part_name = context.text(&format!("{table}.part"), "");
        if context.gave_up_on(&table) {
            continue;
        }
        if let Some(part) = part::read(context, &table) {
            media.insert(name, Medium { part_name, part });
        }
    }
    media
}
