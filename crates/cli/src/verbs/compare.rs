//! `nvlab compare`: several designs under the same workload.

use super::report::write_html;
use crate::args::Compare;
use crate::failure::Failure;
use crate::output::Output;
use crate::runs::{self, Named};
use nvlab_lab::report::{compare_text, metric};
use nvlab_lab::result::RunResult;

pub fn compare(output: &Output, args: &Compare) -> Result<(), Failure> {
    for name in &args.metrics {
        metric::find(name).map_err(Failure::Input)?;
    }
    let designs = args.designs.iter().map(|text| Named::load(text, &args.simulation.set));
    let designs = designs.collect::<Result<Vec<_>, _>>()?;
    let shown = args.designs.iter().map(|text| crate::output::quoted(text)).collect::<Vec<_>>().join(" ");
    let source = runs::workload(output, &args.simulation, "compare", &shown)?;
    let tasks = runs::tasks(output, &designs, &source, &args.simulation, args.repeat)?;
    let done = runs::run_all(output, &tasks, args.simulation.force)?;
    let results: Vec<RunResult> = done.iter().map(|run| run.result.clone()).collect();
    let groups: Vec<Vec<RunResult>> = results.chunks(args.repeat as usize).map(<[_]>::to_vec).collect();
    output.print(compare_text(&groups, &args.metrics, output.format).map_err(Failure::Input)?);
    runs::say_where(output, &done);
    match &args.simulation.html {
        Some(file) => write_html(output, file, &results),
        None => Ok(()),
    }
}
