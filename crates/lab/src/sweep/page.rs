//! A sweep as a page: its table, curves along its axes, and its objectives against each other.

use super::fleet::{self, by_volume, quantile};
use super::front::{Group, Objectives, beats, cost, groups};
use super::space::{Axis as VariedAxis, number_of};
use super::{Outcome, Shown, Sweep, WORKLOAD};
use nvlab_report::page::{Axis, Curves, Dot, Page, Scatter, Series, Table, escape};
use nvlab_run::metric::{Better, Metric};
use nvlab_run::stats::Estimate;

/// A plot with more lines than this is unreadable: another axis divides it into several plots.
const LINES_MAX: usize = 7;
/// Points of the line of a distribution.
const STEPS: u32 = 50;

/// The page.
pub fn page(sweep: &Sweep, outcomes: &[Outcome], shown: &Shown) -> String {
    let groups = groups(sweep, outcomes, &shown.front);
    let objectives = Objectives(shown.front.clone());
    let metrics = &shown.metrics[..];
    let mut page = Page::new(&format!("Sweep {}", sweep.name));
    let notes = shown.notes(outcomes).into_iter();
    let notes: String =
        notes.map(|text| format!("<p class=\"about\">Note: {}.</p>\n", escape(&text))).collect();
    page.lead(&(lead(sweep, outcomes) + &notes));
    let about = format!(
        "Each row is the mean over its seeds. A star marks the Pareto front: no other point under the same workload is at least as \
         good in {} and better in one of them by more than chance.",
        escape(&titles(&objectives))
    );
    if sweep.is_fleet() {
        let about =
            "Each metric is ranked separately: the median volume of one metric need not be that of another.";
        page.section("volumes", "Volumes", about, &volumes(sweep, &groups, metrics));
        page.section("distributions", "Distributions", "", &distributions(sweep, &groups, metrics));
    } else {
        page.section("points", "Points", &about, &table(sweep, &groups, metrics));
        page.section("curves", "Curves", "", &curves(sweep, &groups, metrics));
        page.section(
            "front",
            &format!("Pareto front: {}", titles(&objectives)),
            "Lines connect the points that no other point beats in both.",
            &scatters(sweep, &groups, &objectives),
        );
    }
    let failed: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.result.is_err()).collect();
    if !failed.is_empty() {
        let mut table = Table::new("", 2, &["point", "reason"]);
        for outcome in failed {
            let why = outcome.result.as_ref().err().map_or("", String::as_str);
            table.row(&[escape(&outcome.point.values.join(", ")), escape(why)]);
        }
        page.section("failed", "Without a result", "", &table.html());
    }
    page.html()
}

fn titles(objectives: &Objectives) -> String {
    objectives.0.iter().map(|metric| metric.title.as_str()).collect::<Vec<_>>().join(", ")
}

fn lead(sweep: &Sweep, outcomes: &[Outcome]) -> String {
    let axes = sweep.space.axes.iter().filter(|axis| axis.values.len() > 1);
    let axes: Vec<String> =
        axes.map(|axis| format!("{} ({})", escape(&axis.name), axis.values.len())).collect();
    let run = outcomes.iter().find_map(|outcome| outcome.result.as_ref().ok());
    let version = run.map_or(String::new(), |run| {
        format!("nvlab {}, results version {}; ", escape(&run.nvlab), run.results_version)
    });
    format!("<p class=\"about\">{version}{} points: {}</p>\n", outcomes.len(), axes.join(" x "))
}

fn table(sweep: &Sweep, groups: &[Group<'_>], metrics: &[Metric]) -> String {
    let axes = sweep.varied();
    let names = axes.iter().map(|axis| axis.name.as_str()).chain(["front"]);
    let heads: Vec<&str> = names.chain(metrics.iter().map(|metric| metric.title.as_str())).collect();
    let mut table = Table::new("", axes.len() + 1, &heads);
    for group in groups {
        let values = axes.iter().map(|axis| escape(group.value(&axis.name).unwrap_or_default()));
        let front = if group.front { "★" } else { "" }.to_string();
        let shown = |metric: &Metric| group.shown(metric).map_or("–".to_string(), |text| escape(&text));
        table.row(&values.chain([front]).chain(metrics.iter().map(shown)).collect::<Vec<_>>());
    }
    table.html()
}

/// For each metric a few quantiles over the volumes, for each combination of the other axes.
fn volumes(sweep: &Sweep, groups: &[Group<'_>], metrics: &[Metric]) -> String {
    let axes = fleet::others(sweep);
    let names = axes.iter().map(|axis| axis.name.as_str()).chain(["volumes"]);
    let heads: Vec<&str> = names.chain(metrics.iter().map(|metric| metric.title.as_str())).collect();
    let mut table = Table::new("", axes.len() + 1, &heads);
    for row in fleet::summary(sweep, groups, metrics) {
        let shown = |(value, metric): (Option<f64>, &Metric)| {
            value.map_or("–".to_string(), |value| escape(&metric.unit.shown(value).to_string()))
        };
        let values = row.at.iter().chain([&row.share]).map(|text| escape(text));
        table.row(&values.chain(row.values.into_iter().zip(metrics).map(shown)).collect::<Vec<_>>());
    }
    table.html()
}

/// The distribution of each metric over the volumes, with a line for each combination of the other axes.
fn distributions(sweep: &Sweep, groups: &[Group<'_>], metrics: &[Metric]) -> String {
    let mut html = String::from("<div class=\"plots\">\n");
    for metric in metrics {
        let spreads = by_volume(sweep, groups, metric);
        let is_wide = spans_much(spreads.iter().flat_map(|spread| &spread.values).copied());
        let drawn = spreads.iter().filter(|spread| !spread.values.is_empty()).map(|spread| {
            let points = (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS));
            let points = points.filter_map(|share| Some((quantile(&spread.values, share)?, 100.0 * share)));
            Series::new(&spread.at.join(", "), points.collect()).unmarked()
        });
        let series: Vec<Series> = drawn.collect();
        if series.is_empty() {
            continue;
        }
        let unit = metric.unit;
        let across = if is_wide { Axis::log(&metric.title) } else { Axis::linear(&metric.title) };
        let across = across.units(move |value| unit.shown(value));
        let title = format!("{}: share of the volumes", metric.title);
        html += &Curves::new(&title, across, Axis::linear("%"), series).html_and_table();
    }
    html + "</div>\n"
}

/// A plot of each metric along the axis with the most numbers, with a line for each combination of the other values: one
/// plot for each workload, and for each value of further axes if there would be too many lines.
fn curves(sweep: &Sweep, groups: &[Group<'_>], metrics: &[Metric]) -> String {
    let axes = sweep.varied();
    let numeric = |axis: &&VariedAxis| axis.values.iter().all(|value| number_of(value).is_some());
    let others = || axes.iter().copied().filter(|axis| axis.name != WORKLOAD);
    let x = others().filter(numeric).max_by_key(|axis| axis.values.len()).or_else(|| others().next());
    let Some(x) = x else { return "<p class=\"about\">No axis to plot over.</p>\n".to_string() };
    let mut lines: Vec<&VariedAxis> = others().filter(|axis| axis.name != x.name).collect();
    let mut plots: Vec<&VariedAxis> = axes.iter().copied().filter(|axis| axis.name == WORKLOAD).collect();
    while lines.iter().map(|axis| axis.values.len()).product::<usize>() > LINES_MAX {
        plots.push(lines.remove(0));
    }
    let mut html = String::from("<div class=\"plots\">\n");
    for at in combinations(&plots) {
        for metric in metrics {
            let of = |group: &&Group<'_>| at.iter().all(|(name, value)| group.value(name) == Some(value));
            let here: Vec<&Group<'_>> = groups.iter().filter(of).collect();
            let series: Vec<Series> = combinations(&lines)
                .iter()
                .filter_map(|line| series(&here, line, x, numeric(&x), metric))
                .collect();
            if series.is_empty() {
                continue;
            }
            let across = if numeric(&x) {
                let ticks = x.values.iter().filter_map(|value| Some((number_of(value)?, value.clone())));
                let axis = if spans_much(x.values.iter().filter_map(|value| number_of(value))) {
                    Axis::log(&x.name)
                } else {
                    Axis::linear(&x.name)
                };
                axis.ticks(ticks.collect::<Vec<_>>())
            } else {
                Axis::names(&x.name, &x.values)
            };
            let unit = metric.unit;
            let up = Axis::linear(&metric.title).units(move |value| unit.shown(value));
            let place = at.iter().map(|(_, value)| *value).collect::<Vec<_>>().join(", ");
            let title = [metric.title.as_str(), &place].into_iter().filter(|text| !text.is_empty());
            html += &Curves::new(&title.collect::<Vec<_>>().join(": "), across, up, series).html_and_table();
        }
    }
    html + "</div>\n"
}

/// True if values span more than a factor of 30: a logarithmic axis shows them better.
fn spans_much(values: impl Iterator<Item = f64>) -> bool {
    let (least, most) = values.fold((f64::MAX, 0.0f64), |(a, b), n| (a.min(n), b.max(n)));
    least > 0.0 && most / least > 30.0
}

type Place<'a> = Vec<(&'a str, &'a str)>;

/// Every combination of the values of axes; one empty combination if there are no axes.
fn combinations<'a>(axes: &[&'a VariedAxis]) -> Vec<Place<'a>> {
    axes.iter().fold(vec![Vec::new()], |places: Vec<Place<'a>>, axis| {
        let with = |place: &Place<'a>, value: &'a String| {
            let mut place = place.clone();
            place.push((&axis.name, value));
            place
        };
        places.iter().flat_map(|place| axis.values.iter().map(move |value| with(place, value))).collect()
    })
}

fn series(
    groups: &[&Group<'_>],
    line: &Place<'_>,
    x: &VariedAxis,
    numeric: bool,
    metric: &Metric,
) -> Option<Series> {
    let name = line.iter().map(|(_, value)| *value).collect::<Vec<_>>().join(", ");
    let of = |group: &&&Group<'_>| line.iter().all(|(name, value)| group.value(name) == Some(value));
    let point = |group: &&Group<'_>| {
        let value = group.value(&x.name)?;
        let place = match numeric {
            true => number_of(value)?,
            false => x.values.iter().position(|known| known == value)? as f64,
        };
        Some((place, group.mean(metric)?))
    };
    let mut points: Vec<(f64, f64)> = groups.iter().filter(of).filter_map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    (!points.is_empty()).then(|| Series::new(&name, points))
}

fn scatters(sweep: &Sweep, groups: &[Group<'_>], objectives: &Objectives) -> String {
    let workloads = sweep.space.axis(WORKLOAD).map_or(Vec::new(), |axis| axis.values.clone());
    let workloads: Vec<Option<&str>> = match workloads.as_slice() {
        [] => vec![None],
        texts => texts.iter().map(|text| Some(text.as_str())).collect(),
    };
    let pairs: Vec<(&Metric, &Metric)> = match objectives.0.as_slice() {
        [one, other] => vec![(one, other)],
        metrics => {
            let after = |at: usize| metrics[at + 1..].iter().map(move |other| (&metrics[at], other));
            (0..metrics.len()).flat_map(after).collect()
        }
    };
    let mut html = String::from("<div class=\"plots\">\n");
    for workload in &workloads {
        let here: Vec<&Group<'_>> =
            groups.iter().filter(|group| group.value(WORKLOAD) == *workload).collect();
        for &(x, y) in &pairs {
            let title = format!("{} and {}", x.title, y.title);
            let title = match workload.filter(|_| workloads.len() > 1) {
                Some(workload) => format!("{title}: {workload}"),
                None => title,
            };
            html += &scatter(sweep, &here, &title, x, y);
        }
    }
    html + "</div>\n"
}

fn scatter(sweep: &Sweep, groups: &[&Group<'_>], title: &str, x: &Metric, y: &Metric) -> String {
    let costs: Vec<(&&Group<'_>, [Estimate; 2])> =
        groups.iter().filter_map(|group| Some((group, [cost(group, x)?, cost(group, y)?]))).collect();
    let less = [x, y].map(|metric| metric.better == Better::Less);
    let dots = costs.iter().map(|(group, own)| {
        let [across, up] = [0, 1].map(|i| if less[i] { own[i].mean } else { -own[i].mean });
        let front = !costs.iter().any(|(_, other)| beats(other, own));
        Dot::new(&group.label(sweep), across, up).front(front)
    });
    let axis = |metric: &Metric| {
        let unit = metric.unit;
        Axis::linear(&metric.title).units(move |value| unit.shown(value))
    };
    Scatter::new(title, axis(x), axis(y), dots.collect()).less_is_better(less[0], less[1]).html_and_table()
}
