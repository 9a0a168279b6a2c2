//! Several designs under the same workload, side by side. One row per design, the first is the baseline; with
//! several seeds each value is a mean with its 95 % interval.
//!
//! 1. A value is marked "same" if its interval and the baseline's share a point, or if both are equal.
//! 2. The closing sentences name the best design and how far the others are from it.
//! 3. For users, the common part of all names is stated once, and equal notes on several designs are merged; programs
//!    get full names.

mod machine;
mod words;

pub use machine::csv_row;

use super::names::{NameStyle, Names, short_names, together};
use super::reasons::reasons;
use super::warnings::warnings;
use super::{Format, human};
use comfy_table::{LineStyle, Table, TableStyle};
use nvlab_run::metric::{self, Metric, Unit};
use nvlab_run::result::{EXACT, RunResult, plus_minus};
use nvlab_run::stats::Estimate;

/// Wider tables are folded: the remaining columns follow in a table below.
const WIDTH_MAX: usize = 108;
/// Characters between two columns.
const GAP: u16 = 3;

/// A comparison with all its values.
struct Comparison {
    columns: Vec<Metric>,
    rows: Vec<Row>,
    /// The common part of the names of all designs, if it is left out of them.
    shared: String,
    workload: String,
    /// How the devices were prepared.
    prepared: Vec<String>,
    /// Warnings that a reader needs before using a row; `doubts` are those about its values.
    notes: Vec<String>,
    doubts: Vec<String>,
}

/// One design.
struct Row {
    name: String,
    seeds: Vec<u64>,
    keys: Vec<String>,
    /// How its devices were prepared.
    prepared: String,
    cells: Vec<Option<Cell>>,
}

/// One value of one design.
struct Cell {
    values: Vec<f64>,
    estimate: Estimate,
    /// True if it does not differ significantly from the baseline; false in the baseline itself.
    same: bool,
    /// The ratio to the baseline.
    ratio: Option<Estimate>,
    /// Why the value must be used with care.
    doubts: Vec<String>,
}

/// Compares designs: each entry of `groups` holds the runs of one design, one for each seed; the first entry is
/// the baseline. Without `metrics`, the columns are chosen to fit the workload. Fails if there is nothing to compare or
/// a metric does not exist.
pub fn compare_text<S: AsRef<str>>(
    groups: &[Vec<RunResult>],
    metrics: &[S],
    format: Format,
    names: NameStyle,
) -> Result<String, String> {
    let is_short = names == NameStyle::Short || matches!(format, Format::Human | Format::Markdown);
    let comparison = comparison(groups, metrics, is_short)?;
    Ok(match format {
        Format::Human => comparison.human(),
        Format::Markdown => comparison.markdown(),
        Format::Csv => comparison.csv(),
        Format::Json => comparison.json(),
        Format::JsonLines => comparison.json_lines(),
    })
}

/// The same table as Parquet: a row for each design, every column nullable, in base units with the unit in the name.
pub fn compare_parquet<S: AsRef<str>>(
    groups: &[Vec<RunResult>],
    metrics: &[S],
    names: NameStyle,
) -> Result<Vec<u8>, String> {
    comparison(groups, metrics, names == NameStyle::Short)?.parquet().map_err(|error| error.to_string())
}

/// The closing sentences of a comparison, for people; none if there is nothing to compare.
pub(super) fn sentences(groups: &[Vec<RunResult>]) -> Vec<String> {
    comparison::<&str>(groups, &[], true).map_or(Vec::new(), |comparison| comparison.sentences())
}

/// With names for users, or full ones.
fn comparison<S: AsRef<str>>(
    groups: &[Vec<RunResult>],
    metrics: &[S],
    is_short: bool,
) -> Result<Comparison, String> {
    if groups.is_empty() || groups.iter().any(Vec::is_empty) {
        return Err("there is nothing to compare: every design needs at least one run".to_string());
    }
    let columns = match metrics {
        [] => default_columns(groups),
        names => names.iter().map(|name| metric::find(name.as_ref())).collect::<Result<_, _>>()?,
    };
    Ok(Comparison::new(groups, columns, is_short))
}

/// Columns left out of a comparison of recorded programs.
const OF_DEVICE: [&str; 6] =
    ["iops", "write.bandwidth", "read.bandwidth", "write.p99_9", "read.p99", "price"];

/// The metrics of lifetime. In a closed loop the slower device lives longer, so there bytes are compared, not years.
pub(super) fn life<'a>(mut runs: impl Iterator<Item = &'a RunResult>) -> &'static [&'static str] {
    if runs.any(|run| run.closed_loop) { &["lifetime.bytes", "lifetime.dwpd"] } else { &["lifetime"] }
}

/// The columns that fit the workload: bytes per second for large requests, requests per second for small ones. Columns
/// without any value are left out.
fn default_columns(groups: &[Vec<RunResult>]) -> Vec<Metric> {
    let runs = || groups.iter().flatten();
    let (bytes, count) = runs().fold((0, 0), |(bytes, count), run| {
        (bytes + run.read.bytes + run.write.bytes, count + run.read.count + run.write.count)
    });
    let large = bytes / count.max(1) >= 64 << 10;
    let throughput = match (large, runs().any(|run| run.write.count > 0)) {
        (true, true) => "write.bandwidth",
        (true, false) => "read.bandwidth",
        (false, _) => "iops",
    };
    // A recorded program has one run time; the rate of requests follows from it.
    let names = [
        "program.time",
        "program.waiting",
        "program.computing",
        "program.recorded",
        throughput,
        "write.mean",
        "write.p99",
        "write.p99_9",
        "read.p99",
        "cpu.request",
        "cpu.cores",
        "lock.share",
        "waf",
        "erases",
        "price",
    ];
    let of_program = runs().any(|run| run.program.is_some());
    let names = names.into_iter().filter(|name| !of_program || !OF_DEVICE.contains(name));
    let names = names.flat_map(|name| match name {
        "erases" => [&[name], life(runs())].concat(),
        name => vec![name],
    });
    let columns = names.map(|name| metric::find(name).expect("the table of metrics has them"));
    columns.filter(|column| runs().any(|run| column.of(run).is_some())).collect()
}

impl Comparison {
    fn new(groups: &[Vec<RunResult>], columns: Vec<Metric>, is_short: bool) -> Comparison {
        let whole: Vec<&str> = groups.iter().map(|runs| runs[0].design.name.as_str()).collect();
        let Names { shared, short } = match is_short {
            true => short_names(&whole),
            false => {
                let short = whole.iter().map(|name| name.to_string()).collect();
                Names { shared: String::new(), short }
            }
        };
        let mut rows: Vec<Row> = Vec::new();
        for (runs, name) in groups.iter().zip(short) {
            let cells = columns.iter().enumerate().map(|(index, column)| {
                let baseline = rows.first().map(|row| row.cells[index].as_ref());
                cell(column, runs, baseline)
            });
            let cells = cells.collect();
            let seeds = runs.iter().map(|run| run.seed).collect();
            let keys = runs.iter().map(|run| run.key.clone()).collect();
            let prepared = human::precondition(&runs[0]).0;
            rows.push(Row { name, seeds, keys, prepared, cells });
        }
        tell_apart(&mut rows);
        let (notes, doubts) = notes(groups, &rows, &columns);
        let is_one = rows.iter().all(|row| row.prepared == rows[0].prepared);
        let prepared = match is_one {
            true => vec![format!("prepared: {}", rows[0].prepared)],
            false => rows.iter().map(|row| format!("{} prepared: {}", row.name, row.prepared)).collect(),
        };
        let workload = groups[0][0].workload.clone();
        Comparison { columns, rows, shared, workload, prepared, notes, doubts }
    }

    /// `zipf theta=0.99, 5 seeds, 95 % interval`.
    fn title(&self) -> String {
        let seeds = &self.rows[0].seeds;
        match seeds.as_slice() {
            [seed] if self.has_intervals() => format!("{}, seed {seed}, 95 % interval", self.workload),
            [seed] => format!("{}, seed {seed}", self.workload),
            seeds => format!("{}, {} seeds, 95 % interval", self.workload, seeds.len()),
        }
    }

    /// True if a value is random.
    fn has_intervals(&self) -> bool {
        self.rows.iter().flat_map(|row| row.cells.iter().flatten()).any(|cell| cell.estimate.interval > 0.0)
    }

    fn human(&self) -> String {
        let mut text = format!("{}\n", self.title());
        if !self.shared.is_empty() {
            text += &format!("designs: {}\n", self.shared);
        }
        for line in &self.prepared {
            text += &format!("{line}\n");
        }
        for columns in self.folded() {
            text.push('\n');
            for line in self.table(&columns).lines() {
                text += format!("  {line}").trim_end();
                text.push('\n');
            }
        }
        for sentence in self.sentences() {
            text += &format!("\n{sentence}\n");
        }
        if !self.notes.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            text += &format!("! {note}\n");
        }
        text
    }

    /// Splits the columns into tables that are not too wide, with at least one column each.
    fn folded(&self) -> Vec<Vec<usize>> {
        let names = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        let mut tables: Vec<Vec<usize>> = vec![Vec::new()];
        let mut width = names;
        for index in 0..self.columns.len() {
            let cells = self.column(index)[0].chars().count();
            let own = GAP as usize + cells.max(self.columns[index].title.chars().count());
            if width + own > WIDTH_MAX && tables.last().is_some_and(|table| !table.is_empty()) {
                tables.push(Vec::new());
                width = names;
            }
            width += own;
            tables.last_mut().expect("there is always a table").push(index);
        }
        tables
    }

    fn table(&self, columns: &[usize]) -> Table {
        let mut table = Table::new();
        table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
        let heads = columns.iter().map(|&index| self.columns[index].title.clone());
        table.set_header(std::iter::once("design".to_string()).chain(heads));
        let columns: Vec<Vec<String>> = columns.iter().map(|&index| self.column(index)).collect();
        for (index, row) in self.rows.iter().enumerate() {
            let cells = columns.iter().map(|cells| cells[index].clone());
            table.add_row(std::iter::once(row.name.clone()).chain(cells));
        }
        table.column_iter_mut().for_each(|column| {
            // The table itself adds one more between two columns.
            column.set_padding((0, GAP - 1));
        });
        table
    }

    /// The cells of a column, of one width: numbers, intervals, units and marks each aligned.
    fn column(&self, index: usize) -> Vec<String> {
        let unit = self.columns[index].unit;
        let parts: Vec<[String; 4]> = self.rows.iter().map(|row| row.cells[index].parts(unit)).collect();
        let width = |part: usize| parts.iter().map(|parts| parts[part].chars().count()).max().unwrap_or(0);
        let [number, interval, unit, mark] = [0, 1, 2, 3].map(width);
        let text = |parts: &[String; 4]| {
            let [n, i, u, m] = parts;
            let gap = |width: usize| if width > 0 { " " } else { "" };
            format!(
                "{n:>number$}{}{i:<interval$}{}{u:<unit$}{}{m:<mark$}",
                gap(interval),
                gap(unit),
                gap(mark)
            )
        };
        parts.iter().map(text).collect()
    }
}

/// The parts of a cell for people: number, interval, unit, mark.
trait Parts {
    fn parts(&self, unit: Unit) -> [String; 4];
}

impl Parts for Option<Cell> {
    fn parts(&self, unit: Unit) -> [String; 4] {
        let Some(cell) = self else { return ["–", "", "", ""].map(String::from) };
        let shown = unit.shown(cell.estimate.mean);
        let interval = cell.estimate.plus_minus(&shown);
        let marks = [(cell.same, "same"), (!cell.doubts.is_empty(), "!")];
        let marks: Vec<&str> = marks.into_iter().filter(|(is, _)| *is).map(|(_, mark)| mark).collect();
        [shown.number, interval, shown.unit.to_string(), marks.join(" ")]
    }
}

/// Warnings that a reader needs before using a row, and those of them that are about its values. A warning about
/// several designs is stated once.
fn notes(groups: &[Vec<RunResult>], rows: &[Row], columns: &[Metric]) -> (Vec<String>, Vec<String>) {
    let mut workloads: Vec<&str> = groups.iter().flatten().map(|run| run.workload.as_str()).collect();
    workloads.dedup();
    let mut of_all = Vec::new();
    if workloads.len() > 1 {
        of_all.push("the workloads differ: the rows may not be comparable".to_string());
    }
    let (mut notes, mut doubts) = (Vec::<(String, String)>::new(), Vec::new());
    for (runs, row) in groups.iter().zip(rows) {
        for run in runs {
            let lines = [human::precondition(run), human::requests(run)];
            let wrong = lines.into_iter().filter(|(_, wrong)| *wrong);
            of_all.extend(wrong.map(|(text, _)| format!("{}, seed {}: {text}", row.name, run.seed)));
        }
    }
    for (runs, row) in groups.iter().zip(rows) {
        let named = |text: String| (row.name.clone(), text);
        notes.extend(warnings(&runs[0]).into_iter().map(named));
        let caveat = runs.iter().find_map(|run| run.lifetime.caveat.clone());
        let caveat = caveat.filter(|_| columns.iter().any(Metric::is_life));
        let of_row: Vec<_> = caveat.into_iter().chain(too_short(row, columns)).map(named).collect();
        doubts.extend(of_row.iter().cloned());
        notes.extend(of_row);
        notes.extend(reasons(&runs[0]).into_iter().map(named));
    }
    of_all.extend(together(&notes, rows.len()));
    (of_all, together(&doubts, rows.len()))
}

fn cell(column: &Metric, runs: &[RunResult], baseline: Option<Option<&Cell>>) -> Option<Cell> {
    let values: Vec<f64> = runs.iter().filter_map(|run| column.of(run)).collect();
    let estimate = Estimate::of_runs(column, runs)?;
    let baseline = baseline.flatten().map(|cell| cell.estimate);
    // No warning without a value.
    let said = |baseline: &Estimate| estimate.interval.is_finite() && baseline.interval.is_finite();
    let same = baseline.filter(said).is_some_and(|baseline| estimate.overlaps(&baseline));
    let ratio = baseline.and_then(|baseline| estimate.over(&baseline));
    let caveat = runs.iter().find_map(|run| run.lifetime.caveat.clone()).filter(|_| column.is_life());
    let short = (estimate.within() > EXACT).then(|| format!("{}: too short", shown_within(&estimate)));
    Some(Cell { values, estimate, same, ratio, doubts: caveat.into_iter().chain(short).collect() })
}

fn shown_within(estimate: &Estimate) -> String {
    if estimate.interval.is_finite() { plus_minus(estimate.within()) } else { "± ?".to_string() }
}

/// The figures for which the runs of a design are too short, in one line.
fn too_short(row: &Row, columns: &[Metric]) -> Option<String> {
    let short = row.cells.iter().zip(columns).filter_map(|(cell, column)| {
        let estimate = cell.as_ref()?.estimate;
        (estimate.within() > EXACT).then(|| format!("{} {}", column.title, shown_within(&estimate)))
    });
    let short: Vec<String> = short.collect();
    (!short.is_empty())
        .then(|| format!("too short for {}; --until 2% runs until they are known to 2 %", short.join(", ")))
}

/// Numbers rows of the same name.
fn tell_apart(rows: &mut [Row]) {
    for index in 1..rows.len() {
        let name = rows[index].name.clone();
        let before = rows[..index].iter().filter(|row| row.name == name).count();
        if before > 0 {
            rows[index].name = format!("{name} ({})", before + 1);
        }
    }
}

#[cfg(test)]
mod tests;
