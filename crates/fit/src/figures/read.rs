//! The file of figures.

use super::amount::{Amount, Unit, amount};
use super::measured::Measured;
use super::what::{Load, Requests, State, What};
use super::{Cells, Class, Drive, Figure, Figures, Known, Link, fio, log, table};
use nvlab_design::toml_reader::datum::{Datum, Shape};
use nvlab_design::toml_reader::{FileError, Source, Table, Value};
use nvlab_units::quantity;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Read<T> = Result<T, FileError>;

/// What a figure may be off if it does not say: data sheets round.
const TOLERANCE: f64 = 0.05;
/// Lengths of a guarantee if none is given.
const YEARS: f64 = 5.0;

pub fn read(file: &str, text: &str, more: &[PathBuf], state: Option<State>) -> Read<Figures> {
    let source = Arc::new(Source::file(file, text));
    let root = Table::root(&source, "a figures file")?;
    if root.number("schema")?.is_some_and(|schema| schema != 1.0) {
        return Err(root.wrong("schema", "is 1: this nvlab knows no other"));
    }
    let drive = drive(&root.needed_table("drive")?)?;
    let known = known(&root)?;
    let figures =
        root.tables("figure")?.iter().map(|table| figure(table, &drive)).collect::<Read<Vec<_>>>()?;
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let measured = root.tables("measured")?;
    let mut all =
        measured.iter().map(|table| self::measured(table, &drive, folder)).collect::<Read<Vec<_>>>()?;
    root.end()?;
    if !more.is_empty() && drive.capacities.len() > 1 {
        let problem = "[drive] has several capacities: name each file in [[measured]], with the capacity that was measured";
        return Err(root.error(problem));
    }
    let given =
        |file: &PathBuf| Measured { file: file.clone(), size: 0, state, depth: None, tolerance: TOLERANCE };
    all.extend(more.iter().map(given));
    if figures.is_empty() && all.is_empty() {
        return Err(root.error("a figures file needs [[figure]] or [[measured]], at least one"));
    }
    let mut figures = Figures { drive, known, figures, others: Vec::new(), notes: Vec::new() };
    all.iter().try_for_each(|measured| add(&mut figures, measured))?;
    if figures.figures.is_empty() {
        let why: Vec<String> =
            figures.others.iter().map(|job| format!("{}: {}", job.name, job.why)).collect();
        return Err(root.error(format!("nothing of it can be fitted: {}", why.join("; "))));
    }
    Ok(figures)
}

/// Adds what a file of measurements says of a drive. What kind of file it is, its text tells.
fn add(figures: &mut Figures, of: &Measured) -> Read<()> {
    let file = of.file.display();
    let text =
        std::fs::read_to_string(&of.file).map_err(|error| FileError::new(format!("{file}: {error}")))?;
    match () {
        () if text.contains('{') => fio::add(figures, of, &text),
        () if log::is_log(&text) => log::add(figures, of, &text),
        () => table::add(figures, of, &text),
    }
}

/// A file of measurements, beside this one.
fn measured(table: &Table, drive: &Drive, folder: &Path) -> Read<Measured> {
    let (size, file) = (size(table, drive)?, folder.join(table.needed("file")?));
    let state = table.text("state")?.map(|text| state(table, &text)).transpose()?;
    let (depth, tolerance) = (depth(table)?, tolerance(table)?);
    table.end()?;
    Ok(Measured { file, size, state, depth, tolerance })
}

fn state(table: &Table, text: &str) -> Read<State> {
    text.parse().map_err(|allowed: String| table.wrong("state", format!("is {allowed}")))
}

fn depth(table: &Table) -> Read<Option<u32>> {
    Ok(match table.datum("qd", Shape::Count { min: 1, max: 65_536 })? {
        Some(Datum::Count(depth)) => Some(depth as u32),
        _ => None,
    })
}

fn tolerance(table: &Table) -> Read<f64> {
    Ok(match table.datum("tolerance", Shape::Share { max: 1.0 })? {
        Some(Datum::Share(share)) => share.max(0.001),
        _ => TOLERANCE,
    })
}

fn drive(table: &Table) -> Read<Drive> {
    let capacities = capacities(table)?;
    let dies = dies(table, capacities.len())?;
    let interface = table.needed("interface")?;
    let link = link(&interface).ok_or_else(|| {
        table.wrong(
            "interface",
            "is \"SATA\", or \"PCIe 3.0 x4\" with generation (2 to 6) and lanes (1 to 16)",
        )
    })?;
    let class = match table.needed("class")?.as_str() {
        "client" => Class::Client,
        "data-centre" => Class::DataCentre,
        _ => return Err(table.wrong("class", "is client or data-centre")),
    };
    let cells = match table.needed("cells")?.to_lowercase().as_str() {
        "tlc" => Cells::Tlc,
        "qlc" => Cells::Qlc,
        _ => return Err(table.wrong("cells", "is TLC or QLC")),
    };
    let layers = match table.datum("layers", Shape::Count { min: 24, max: 1000 })? {
        Some(Datum::Count(layers)) => Some(layers as u32),
        _ => None,
    };
    let (name, source) = (table.needed("name")?, table.text("source")?.unwrap_or_default());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(table.wrong("name", "is made of letters, digits, `-`, `_` and `.`"));
    }
    table.end()?;
    Ok(Drive { name, capacities, dies, link, class, cells, layers, source })
}

fn capacities(table: &Table) -> Read<Vec<u64>> {
    let wrong =
        || table.wrong("capacity", "is a size as it is sold, \"1 TB\", or a list of those of siblings");
    let Some(node) = table.get("capacity") else { return Err(table.error("[drive] needs `capacity`")) };
    let texts: Vec<&str> = match &node.value {
        Value::Text(text) => vec![text],
        value => value.items().unwrap_or_default().iter().filter_map(|item| item.value.text()).collect(),
    };
    let read = texts.iter().map(|text| quantity::bytes(text).ok().filter(|bytes| *bytes >= 1 << 30));
    let capacities = read.collect::<Option<Vec<u64>>>().filter(|all| !all.is_empty()).ok_or_else(wrong)?;
    let is_twice = |at: usize| capacities[..at].contains(&capacities[at]);
    match (0..capacities.len()).any(is_twice) {
        true => Err(table.wrong("capacity", "has a size twice")),
        false => Ok(capacities),
    }
}

fn dies(table: &Table, count: usize) -> Read<Vec<Option<u32>>> {
    let Some(node) = table.get("dies") else { return Ok(vec![None; count]) };
    let number = |value: &Value| match value {
        Value::Number(number) => number.parse::<u32>().ok().filter(|dies| *dies <= 4096),
        _ => None,
    };
    let all: Option<Vec<u32>> = match &node.value {
        Value::List(items) => items.iter().map(|item| number(&item.value)).collect(),
        value => number(value).map(|one| vec![one]),
    };
    let all = all.filter(|all| all.len() == count);
    let all =
        all.ok_or_else(|| table.wrong("dies", "is a number of dies for each capacity (0: not known)"))?;
    Ok(all.into_iter().map(|dies| Some(dies).filter(|dies| *dies > 0)).collect())
}

/// `SATA`, `PCIe 3.0 x4`.
fn link(text: &str) -> Option<Link> {
    let text = text.to_lowercase();
    if text.starts_with("sata") {
        return Some(Link::Sata);
    }
    let rest = text.strip_prefix("pcie")?.trim();
    let (generation, lanes) = rest.split_once('x')?;
    let generation = generation.trim().trim_end_matches(".0").parse().ok()?;
    let lanes = lanes.trim().parse().ok()?;
    ((2..=6).contains(&generation) && (1..=16).contains(&lanes)).then_some(Link::Pcie { generation, lanes })
}

fn known(root: &Table) -> Read<Vec<Known>> {
    let pairs = root.pairs("known")?.unwrap_or_default();
    let one = |(name, text): (String, String)| {
        let (low, high) = text.split_once("..").unwrap_or((&text, &text));
        let fits = |low: Amount, high: Amount| low.unit == high.unit && low.value <= high.value;
        match (amount(low), amount(high)) {
            (Some(low), Some(high)) if fits(low, high) => Ok(Known { name, low, high }),
            _ => Err(root.wrong(
                "known",
                format!("`{name}`: `{text}` is neither a value nor two of them, \"45 us .. 60 us\""),
            )),
        }
    };
    pairs.into_iter().map(one).collect()
}

fn figure(table: &Table, drive: &Drive) -> Read<Figure> {
    let size = size(table, drive)?;
    let (name, text) = (table.needed("what")?, table.needed("value")?);
    let unreadable =
        "is a value with its unit: \"600k IOPS\", \"3.5 GB/s\", \"85 us\", \"600 TB\", \"0.9 DWPD\"";
    let value = amount(&text).filter(|amount| amount.value > 0.0);
    let value = value.ok_or_else(|| table.wrong("value", unreadable))?;
    let what = match name.as_str() {
        "endurance" => endurance(table, value.unit)?,
        "cache" if value.unit == Unit::Bytes => What::Cache,
        "cache" => return Err(table.wrong("value", "of a cache is a size")),
        _ => requests(table, drive, &name, value.unit)?,
    };
    let tolerance = tolerance(table)?;
    let source = table.text("source")?.unwrap_or_else(|| drive.source.clone());
    let at = table.get("value").expect("it has been read").at.clone();
    table.end()?;
    Ok(Figure { size, what, value: value.value, latencies: None, tolerance, source, at })
}

fn size(table: &Table, drive: &Drive) -> Read<usize> {
    let Some(text) = table.text("capacity")? else {
        return match drive.capacities.len() {
            1 => Ok(0),
            _ => Err(table.error("`capacity` is needed here: the drive has several")),
        };
    };
    let found = quantity::bytes(&text).ok().and_then(|bytes| drive.size_of(bytes));
    found.ok_or_else(|| table.wrong("capacity", "is none of those of [drive]"))
}

fn endurance(table: &Table, unit: Unit) -> Read<What> {
    let names = || Load::ALL.map(|(name, _)| name).join(", ");
    let load = match table.text("load")? {
        None => Load::Jesd219,
        Some(text) => Load::ALL
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, load)| *load)
            .ok_or_else(|| table.wrong("load", format!("is one of {}", names())))?,
    };
    let years = table.number("years")?;
    match unit {
        Unit::Bytes => Ok(What::Endurance(load, None)),
        Unit::Dwpd => Ok(What::Endurance(load, Some(years.unwrap_or(YEARS)))),
        _ => Err(table.wrong(
            "value",
            "of endurance is bytes written, \"600 TB\", or drive writes a day, \"0.9 DWPD\"",
        )),
    }
}

fn requests(table: &Table, drive: &Drive, name: &str, unit: Unit) -> Read<What> {
    let (is_sequential, is_write) = match name {
        "sequential read" => (true, false),
        "sequential write" => (true, true),
        "random read" => (false, false),
        "random write" => (false, true),
        _ => {
            let known = "sequential read, sequential write, random read, random write, endurance, cache";
            return Err(table.wrong("what", format!("is one of {known}")));
        }
    };
    let block_bytes = match table.datum("bs", Shape::Size { min: 512, max: 1 << 27 })? {
        Some(Datum::Size(bytes)) => bytes,
        _ if is_sequential => 128 << 10,
        _ => 4 << 10,
    };
    let usual = match (unit, drive.link, drive.class, is_sequential) {
        (Unit::Seconds, ..) => 1,
        (_, Link::Sata, ..) => 32,
        (.., Class::Client, true) => 32,
        (.., Class::Client, false) => 128,
        (.., Class::DataCentre, true) => 128,
        (.., Class::DataCentre, false) => 256,
    };
    let depth = depth(table)?.unwrap_or(usual);
    let state = match (table.text("state")?, is_write, drive.class) {
        (Some(text), ..) => state(table, &text)?,
        (None, true, Class::Client) => State::Cache,
        (None, true, Class::DataCentre) if !is_sequential && unit != Unit::Seconds => State::Steady,
        _ => State::Full,
    };
    let requests = Requests { is_sequential, is_write, mixed: None, block_bytes, depth, state };
    match unit {
        Unit::PerSecond | Unit::BytesPerSecond => Ok(What::Rate(requests, unit)),
        Unit::Seconds => Ok(What::Latency(requests)),
        _ => Err(table.wrong(
            "value",
            "is requests or bytes a second, or a latency: \"600k IOPS\", \"3.5 GB/s\", \"85 us\"",
        )),
    }
}
