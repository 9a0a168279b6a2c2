//! The answer as a page: the front as a picture, and the table of what was run.

use super::{Asked, Candidate, Choice};
use nvlab_report::page::{Axis, Dot, Page, Scatter, Table, escape};
use nvlab_run::metric::{Better, Metric};

/// The page.
pub fn page(asked: &Asked, choice: &Choice) -> String {
    let mut page = Page::new(&format!("A choice among designs of {}", asked.design));
    let needs: Vec<&str> = asked.needs.iter().map(|need| need.text()).collect();
    page.lead(&format!(
        "<p class=\"about\">{}, seed {}; needs: {}; {} designs in the space, {} runs.</p>\n",
        escape(&asked.workload),
        asked.seed,
        escape(&if needs.is_empty() { "none".to_string() } else { needs.join(", ") }),
        choice.designs,
        choice.runs
    ));
    page.section(
        "front",
        "What can be had",
        "Designs that meet all needs, and those that were run and do not.",
        &scatter(asked, choice),
    );
    page.section("best", "The best", "", &table(asked, choice.best.iter().map(|&at| &choice.candidates[at])));
    page.section("all", "All that was run", "", &table(asked, choice.candidates.iter()));
    page.html()
}

/// The second thing that designs are compared by: another goal, or what the first need is about.
fn scatter(asked: &Asked, choice: &Choice) -> String {
    let x = &asked.goals[0];
    let (y, of): (&Metric, fn(&Candidate) -> f64) = match (asked.goals.get(1), asked.needs.first()) {
        (Some(goal), _) => (goal, |candidate| candidate.goals[1]),
        (None, Some(need)) => (need.metric(), |candidate| candidate.needs[0]),
        (None, None) => {
            return "<p class=\"about\">One goal and no need: there is nothing to weigh.</p>\n".to_string();
        }
    };
    let axis = |metric: &Metric| {
        let unit = metric.unit;
        Axis::linear(&metric.title).units(move |value| unit.shown(value))
    };
    let finite = choice.candidates.iter().filter(|candidate| of(candidate).is_finite());
    let dots = finite.map(|candidate| {
        Dot::new(&candidate.sets.join(", "), candidate.goals[0], of(candidate)).front(candidate.is_front)
    });
    let less = |metric: &Metric| metric.better == Better::Less;
    let title = format!("{} and {}", x.title, y.title);
    Scatter::new(&title, axis(x), axis(y), dots.collect()).less_is_better(less(x), less(y)).html_and_table()
}

fn table<'a>(asked: &Asked, candidates: impl Iterator<Item = &'a Candidate>) -> String {
    let needs = asked.needs.iter().map(|need| need.text());
    let heads: Vec<&str> = std::iter::once("design")
        .chain(asked.goals.iter().map(|goal| goal.title.as_str()))
        .chain(needs)
        .collect();
    let mut table = Table::new("", 1, &heads);
    for candidate in candidates {
        let goals = asked.goals.iter().zip(&candidate.goals);
        let goals = goals.map(|(metric, value)| escape(&metric.unit.shown(*value).to_string()));
        let needs = asked.needs.iter().zip(candidate.needs.iter().zip(&candidate.meets)).map(
            |(need, (value, met))| {
                let shown = need.metric().unit.shown(*value).to_string();
                escape(&if *met { shown } else { format!("{shown} (not met)") })
            },
        );
        let row: Vec<String> =
            std::iter::once(escape(&candidate.sets.join(", "))).chain(goals).chain(needs).collect();
        table.row(&row);
    }
    table.html()
}
