//! `nvlab choose`: the best design that meets requirements, what binds it, what each requirement costs.

use super::fit::{Kept, ended_early};
use crate::args::Choose as Args;
use crate::failure::{Failure, Wrong, save};
use crate::output::Output;
use crate::table::{Cell, Column, Table};
use nvlab_fit::choose::free::Free;
use nvlab_fit::choose::{Asked, Candidate, Choice, ChooseError, choose as search, page};
use nvlab_report::{Assertion, Format};
use nvlab_run::metric::{self, Better};
use nvlab_run::plan::split;

pub fn choose(output: &Output, args: &Args) -> Result<(), Failure> {
    let asked = read(args)?;
    let runs = Kept::new(output);
    let choice = search(&asked, &runs).map_err(|error| match error {
        ChooseError::Ended(ended) => ended_early(ended),
        error => Failure::Input(error.to_string()),
    })?;
    let shown: Vec<&Candidate> = choice.best.iter().map(|&at| &choice.candidates[at]).collect();
    match output.format {
        Format::Json => output.print(format!("{:#}", choice.document(&asked))),
        _ => output.table(&table(&asked, if shown.is_empty() { nearest(&choice) } else { shown.clone() })),
    }
    if output.format == Format::Human {
        say(output, &asked, &choice);
    }
    if let Some(file) = &args.html {
        save(file, page::page(&asked, &choice))?;
        output.note(format_args!("page: {}", file.display()));
    }
    match shown.is_empty() {
        true => Err(Failure::Check(format!(
            "none of the {} designs that were run meets all needs",
            choice.candidates.len()
        ))),
        false => Ok(()),
    }
}

fn read(args: &Args) -> Result<Asked, Failure> {
    let (mut wrong, input) = (Wrong::default(), Failure::Input);
    let (name, mut sets) = split(&args.design);
    sets.extend(args.set.iter().cloned());
    let free: Vec<Option<Free>> =
        args.free.iter().map(|text| wrong.take(Free::parse(text).map_err(input))).collect();
    let needs: Vec<Option<Assertion>> =
        args.need.iter().map(|text| wrong.take(Assertion::parse(text).map_err(input))).collect();
    let goals: Vec<Option<metric::Metric>> =
        args.best.iter().map(|name| wrong.take(metric::find(name).map_err(input))).collect();
    let all = (
        free.into_iter().collect::<Option<Vec<_>>>(),
        needs.into_iter().collect::<Option<Vec<_>>>(),
        goals.into_iter().collect::<Option<Vec<_>>>(),
    );
    let (Some(free), Some(needs), Some(goals)) = all else { return Err(wrong.into()) };
    Ok(Asked {
        design: name.to_string(),
        sets,
        free,
        workload: args.workload.join(" + "),
        state: args.precondition,
        until: args.until,
        seed: args.seed,
        needs,
        goals,
        runs: args.runs as usize,
    })
}

/// The designs that fail the fewest needs, when none meets all.
fn nearest(choice: &Choice) -> Vec<&Candidate> {
    let mut all: Vec<&Candidate> = choice.candidates.iter().collect();
    all.sort_by_key(|candidate| candidate.meets.iter().filter(|met| !**met).count());
    all.truncate(5);
    all
}

fn table(asked: &Asked, candidates: Vec<&Candidate>) -> Table {
    let mut columns: Vec<Column> = asked
        .free
        .iter()
        .map(|free| Column { name: free.key.clone().into(), head: free.key.clone().into(), right: false })
        .collect();
    let metrics = asked.goals.iter().chain(asked.needs.iter().map(Assertion::metric));
    let mut names: Vec<String> = Vec::new();
    for metric in metrics {
        if !names.contains(&metric.name) {
            names.push(metric.name.clone());
            let column =
                Column { name: metric.column().into(), head: metric.title.clone().into(), right: true };
            columns.push(column);
        }
    }
    let row = |candidate: &Candidate| {
        let value = |key: &str| {
            let set =
                candidate.sets.iter().find_map(|set| set.split_once('=').filter(|(name, _)| *name == key));
            Cell::or_dash(set, |(_, value)| Cell::text(value))
        };
        let mut row: Vec<Cell> = asked.free.iter().map(|free| value(&free.key)).collect();
        let goals = asked.goals.iter().zip(&candidate.goals).map(|(metric, value)| (metric, *value, true));
        let needs = asked.needs.iter().zip(candidate.needs.iter().zip(&candidate.meets));
        let needs = needs.map(|(need, (value, met))| (need.metric(), *value, *met));
        let mut done: Vec<&str> = Vec::new();
        for (metric, value, met) in goals.chain(needs) {
            if !done.contains(&metric.name.as_str()) {
                done.push(&metric.name);
                let shown = metric.unit.shown(value).to_string();
                row.push(Cell::new(if met { shown } else { format!("{shown} !") }, value));
            }
        }
        row
    };
    Table { schema: "nvlab.choose/1", columns, rows: candidates.into_iter().map(row).collect() }
}

fn say(output: &Output, asked: &Asked, choice: &Choice) {
    if let Some(&first) = choice.best.first() {
        let sets: Vec<String> =
            asked.sets.iter().chain(&choice.candidates[first].sets).map(|set| set.replace(' ', "")).collect();
        output.print(format_args!("\n{},{}", asked.design, sets.join(",")));
    }
    for binds in &choice.binds {
        output.print(format_args!("binds: {binds}"));
    }
    let (goal, first) = (&asked.goals[0], choice.best.first());
    for cost in &choice.costs {
        let Some(&first) = first else { continue };
        let best = choice.candidates[first].goals[0];
        output.print(match &cost.without {
            None => format!("{}: no better design was found without it", cost.need),
            Some(without) => {
                let change = 100.0 * (best / without.goals[0] - 1.0).abs();
                let word = if goal.better == Better::More { "more" } else { "less" };
                format!(
                    "{}: without it {} would be {}, {change:.1} % {word} ({})",
                    cost.need,
                    goal.title,
                    goal.unit.shown(without.goals[0]),
                    without.sets.join(", ")
                )
            }
        });
    }
    output.note(format_args!(
        "{} runs of {} designs; {} of those that were run meet all needs",
        choice.runs,
        choice.designs,
        choice.candidates.iter().filter(|candidate| candidate.meets.iter().all(|met| *met)).count()
    ));
}
