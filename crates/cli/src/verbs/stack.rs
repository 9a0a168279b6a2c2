//! `nvlab stack`: the cost of the software above an instant device on this computer.

mod machine;
mod show;

use crate::args::Stack;
use crate::failure::{Failure, save};
use crate::output::Output;
use crate::progress::Progress;
use crate::runs;
use machine::Machine;
use nvlab_run::plan::Named;
use nvlab_serve::stack::{Budget, Layer, Measured, Path, StackOptions, measure};
use nvlab_serve::{Drive, DriveOptions, TimeMode};
use nvlab_workload::Op;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The RAM disk behind the layers that serve one. It answers at once.
const RAM_DISK: &str = "nvramdisk";
/// Bytes of a request and of the files: a request must leave room for different offsets.
const SIZES: std::ops::RangeInclusive<u64> = 4096..=256 << 10;

pub fn stack(output: &Output, args: &Stack) -> Result<(), Failure> {
    let options = options(args)?;
    let designs = Named::load(RAM_DISK, &[])?;
    let fast = DriveOptions { time: TimeMode::Fast, seed: 1, ..DriveOptions::default() };
    let drive = Arc::new(Drive::open(&designs.name, &designs.design, &fast)?);
    let measured = measure_all(output, &options, &drive)?;
    let machine = Machine::here();
    let budgets = budgets_of(&measured, args)?;
    output.print(show::shown(output, &measured, &budgets, &machine));
    if let Some(file) = &args.html {
        let page = show::page(&measured, &budgets, &machine);
        save(file, page)?;
        output.note(format_args!("a page: {}", file.display()));
    }
    if let Some(file) = &args.svg {
        let plot = show::path_bars(&budgets).file();
        save(file, plot)?;
        output.note(format_args!("a plot: {}", file.display()));
    }
    let Some(path) = args.path else { return Ok(()) };
    let budget = budgets.iter().find(|budget| budget.path == path).expect("the path that was asked for");
    if let Some(fault) = budget.fault() {
        return Err(Failure::Check(format!("{}: {fault}", path.key())));
    }
    if let Some(file) = &args.stages {
        // Once more with larger requests: what each 4 KiB takes.
        let more = StackOptions { bytes: 4 * options.bytes, ..options.clone() };
        let larger = budgets_of(&measure_all(output, &more, &drive)?, args)?;
        let larger = larger.first().map(|larger| (larger, more.bytes));
        let cite = format!("{}; {}", machine.cite(), show::processors(&measured));
        save(file, budget.toml(&cite, &options, larger))?;
        output.note(format_args!("stages: {}", file.display()));
    }
    Ok(())
}

/// Measures, with a bar on a terminal, until Ctrl-C.
fn measure_all(output: &Output, options: &StackOptions, drive: &Arc<Drive>) -> Result<Measured, Failure> {
    let bars = Progress::new(output.progress, "layers".len(), false);
    let mut bar = bars.begin("layers");
    let goes_on = |share: f64| {
        bar.at("measuring", share);
        !runs::interrupted().load(Ordering::Relaxed)
    };
    let measured = measure(options, drive, goes_on)?;
    measured.ok_or_else(|| Failure::Interrupted("interrupted: nothing is stored".into()))
}

fn options(args: &Stack) -> Result<StackOptions, Failure> {
    if !SIZES.contains(&args.size) || !args.size.is_multiple_of(4096) {
        return Err(Failure::Input("--size: write a multiple of 4 KiB, at most 256 KiB".into()));
    }
    let usual = StackOptions { bytes: args.size as u32, ..StackOptions::default() };
    let usual = match args.quick {
        true => StackOptions { rounds: 8, slice: Duration::from_micros(500), file_bytes: 16 << 20, ..usual },
        false => usual,
    };
    Ok(StackOptions { rounds: args.rounds.unwrap_or(usual.rounds), ..usual })
}

/// The path that was asked for, or all that could be measured. What makes data durable has writes only.
fn budgets_of(measured: &Measured, args: &Stack) -> Result<Vec<Budget>, Failure> {
    let of = |path: Path| -> Result<Budget, Layer> {
        let op = if path.writes_only() { Op::Write } else { args.op };
        path.budget(measured, op)
    };
    let Some(path) = args.path else { return Ok(Path::all().filter_map(|path| of(path).ok()).collect()) };
    let missing = |layer: Layer| {
        let why = measured.missing.iter().find(|(missing, _)| *missing == layer);
        let why = why.map_or("only measured for writes", |(_, why)| why);
        Failure::Machine(format!("{}: the layer {layer} was not measured: {why}", path.key()))
    };
    Ok(vec![of(path).map_err(missing)?])
}
