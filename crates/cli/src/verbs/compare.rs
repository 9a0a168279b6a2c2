//! `nvlab compare`: several designs under the same workload.
//!
//! A design that cannot run the workload, or fails during it, is named with the reason; the others are compared.

use super::report::write_html;
use crate::args::Compare;
use crate::failure::{Failure, save};
use crate::output::Output;
use crate::runs::{self, Asked, Inputs};
use nvlab_report::{NameStyle, compare_parquet, compare_text};
use nvlab_run::engine::Done;
use nvlab_run::plan::Task;
use nvlab_run::result::RunResult;

pub fn compare(output: &Output, args: &Compare) -> Result<(), Failure> {
    let asked = Asked {
        verb: "compare",
        metrics: &args.metrics,
        conditions: &args.fail_if,
        designs: &args.designs,
        simulation: &args.simulation,
    };
    let engine = runs::engine(output);
    let Inputs { conditions, designs, source } = asked.read(output, &engine)?;
    let tasks = runs::tasks(output, &designs, &source, &args.simulation, args.repeat)?;
    let fit: Vec<&Task> = tasks.iter().flatten().flatten().collect();
    let mut ran = runs::run_all(output, &engine, &fit, args.simulation.force)?.into_iter();
    let (mut groups, mut left_out): (Vec<Vec<Done>>, Vec<(&str, Failure)>) = Default::default();
    for (named, tasks) in designs.iter().zip(tasks) {
        let runs = match tasks {
            Ok(tasks) => {
                let ran: Vec<_> = ran.by_ref().take(tasks.len()).collect();
                ran.into_iter().collect::<Result<_, _>>().map_err(Failure::from)
            }
            Err(error) => Err(Failure::Workload(error)),
        };
        match runs {
            Ok(runs) => groups.push(runs),
            Err(why) => left_out.push((&named.name, why)),
        }
    }
    if groups.is_empty() {
        return Err(left_out.remove(0).1);
    }
    let results: Vec<Vec<RunResult>> =
        groups.iter().map(|runs| runs.iter().map(|run| run.result.clone()).collect()).collect();
    let names = if args.short_names { NameStyle::Short } else { NameStyle::Whole };
    output.print(compare_text(&results, &args.metrics, output.format, names).map_err(Failure::Input)?);
    runs::say_where(output, &groups.concat());
    if let Some(file) = &args.parquet {
        let table = compare_parquet(&results, &args.metrics, names).map_err(Failure::Input)?;
        save(file, table)?;
        output.note(format_args!("table: {}", file.display()));
    }
    if let Some(file) = &args.simulation.html {
        write_html(output, file, &results.concat())?;
    }
    for (name, why) in &left_out {
        output.warn(format_args!("{name} is left out: {why}"));
    }
    let mut met = Vec::new();
    for (number, runs) in results.iter().enumerate() {
        for condition in conditions.iter().filter(|condition| number > 0 || !condition.is_relative()) {
            let verdict = condition.check_beside(runs, &results[0]).map_err(Failure::Input)?;
            if verdict.holds {
                met.push(verdict.text);
            } else if verdict.is_chance {
                output.warn(format_args!("not met, but maybe by chance: {}", verdict.text));
            }
        }
    }
    match left_out.len() {
        0 if met.is_empty() => Ok(()),
        0 => Err(Failure::Check(met.join("\n       "))),
        count => Err(Failure::Points(format!("{count} of {} designs are left out", designs.len()))),
    }
}
