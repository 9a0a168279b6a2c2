//! The groups of a sweep: points that differ only in their seed form one. Their objectives, and
//! the Pareto front of them.

use super::{Figures, Outcome, SEED, Sweep, VOLUME, WORKLOAD};
use nvlab_run::metric::{self, Better, Metric};
use nvlab_run::stats::Estimate;
use std::collections::HashMap;

/// Points that differ only in their seed.
pub struct Group<'a> {
    /// The value on each axis except that of the seed: name of the axis and value.
    pub values: Vec<(&'a str, &'a str)>,
    /// The runs that have a result.
    pub runs: Vec<&'a Figures>,
    /// No other group under the same workload, or on the same volume, is as good in all objectives and significantly
    /// better in one.
    pub front: bool,
}

impl Group<'_> {
    /// The mean of a metric over the runs; `None` if a run has no value.
    pub fn mean(&self, metric: &Metric) -> Option<f64> {
        Some(self.estimate(metric)?.mean)
    }

    /// The mean of a metric with its 95 % interval: the wider of the interval over its runs and that within each run.
    pub(super) fn estimate(&self, metric: &Metric) -> Option<Estimate> {
        let known = self.runs.iter().map(|run| run.known(metric)).collect::<Option<Vec<(f64, f64)>>>()?;
        let (values, own): (Vec<f64>, Vec<f64>) = known.into_iter().unzip();
        Estimate::of_known(&values, &own)
    }

    /// The same for users, as `2.97 ± 0.02`.
    pub fn shown(&self, metric: &Metric) -> Option<String> {
        self.estimate(metric).map(|estimate| estimate.shown(metric.unit))
    }

    /// The value on an axis.
    pub fn value(&self, axis: &str) -> Option<&str> {
        self.values.iter().find(|(name, _)| *name == axis).map(|(_, value)| *value)
    }

    /// The values on axes that have several, without the workload: what distinguishes it in a plot.
    pub(super) fn label(&self, sweep: &Sweep) -> String {
        let varied = |name: &str| sweep.space.axis(name).is_some_and(|axis| axis.values.len() > 1);
        let shown = self.values.iter().filter(|(name, _)| *name != WORKLOAD && varied(name));
        shown.map(|(_, value)| *value).collect::<Vec<_>>().join(", ")
    }
}

/// The metrics by which points are compared, two or three.
pub struct Objectives(pub Vec<Metric>);

impl Objectives {
    /// Those that were asked for; if none were, those that suit the runs: USD for each GiB the host can address; years, or
    /// the host bytes that may be written where the device set the pace, since the slower one then lives longer; and the 99th
    /// percentile of the latency of the most frequent kind of request.
    pub fn of(groups: &[Group<'_>], asked: &[Metric]) -> Objectives {
        if !asked.is_empty() {
            return Objectives(asked.to_vec());
        }
        let named = |name| metric::find(name).expect("the metric is in the table of metrics");
        let runs = || groups.iter().flat_map(|group| &group.runs);
        let closed = runs().all(|run| run.closed_loop);
        let count = |name| runs().filter_map(|run| run.get(&named(name))).sum::<f64>();
        let (writes, reads) = (count("write.count"), count("read.count"));
        let life = if closed { "lifetime.bytes" } else { "lifetime" };
        let speed = if writes >= reads { "write.p99" } else { "read.p99" };
        Objectives(["price.gib", life, speed].map(named).to_vec())
    }
}

/// Groups the points of a sweep and finds the front; `asked` are the objectives, if not the usual ones.
pub fn groups<'a>(sweep: &'a Sweep, outcomes: &'a [Outcome], asked: &[Metric]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut places = HashMap::new();
    for outcome in outcomes {
        let pairs = sweep.space.axes.iter().zip(&outcome.point.values);
        let values: Vec<(&str, &str)> = pairs
            .filter(|(axis, _)| axis.name != SEED)
            .map(|(axis, value)| (axis.name.as_str(), value.as_str()))
            .collect();
        let place = *places.entry(values.clone()).or_insert_with(|| {
            groups.push(Group { values, runs: Vec::new(), front: false });
            groups.len() - 1
        });
        groups[place].runs.extend(outcome.result.as_ref().ok());
    }
    let objectives = Objectives::of(&groups, asked);
    let costs: Vec<Option<Vec<Estimate>>> = groups.iter().map(|group| costs(group, &objectives)).collect();
    let asked_of = |group: &Group<'a>| [WORKLOAD, VOLUME].map(|axis| group.value(axis).map(str::to_string));
    let mut rivals: HashMap<_, Vec<usize>> = HashMap::new();
    for (at, group) in groups.iter().enumerate() {
        rivals.entry(asked_of(group)).or_default().push(at);
    }
    for rivals in rivals.values() {
        for &at in rivals {
            groups[at].front = costs[at].as_ref().is_some_and(|mine| {
                !rivals.iter().filter_map(|&other| costs[other].as_ref()).any(|theirs| beats(theirs, mine))
            });
        }
    }
    groups
}

/// The objectives as costs: less is better.
fn costs(group: &Group<'_>, objectives: &Objectives) -> Option<Vec<Estimate>> {
    objectives.0.iter().map(|metric| cost(group, metric)).collect()
}

/// A metric as a cost.
pub(super) fn cost(group: &Group<'_>, metric: &Metric) -> Option<Estimate> {
    let estimate = group.estimate(metric)?;
    let sign = if metric.better == Better::More { -1.0 } else { 1.0 };
    Some(Estimate { mean: sign * estimate.mean, ..estimate })
}

/// True if `a` is nowhere worse than `b` and somewhere significantly better.
pub(super) fn beats(a: &[Estimate], b: &[Estimate]) -> bool {
    let is_better = |(a, b): (&Estimate, &Estimate)| a.mean < b.mean && !a.overlaps(b);
    a.iter().zip(b).all(|(a, b)| a.mean <= b.mean) && a.iter().zip(b).any(is_better)
}
