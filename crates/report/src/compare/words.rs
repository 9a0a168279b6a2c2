//! The closing sentences of a comparison: the best design, and how many times better it is than each other one.

use super::Comparison;
use nvlab_run::metric::{Better, Metric, Unit};
use nvlab_run::number;
use nvlab_run::stats::Estimate;

impl Comparison {
    /// At most two sentences: on throughput and on write amplification, or on the first column that has words.
    pub(super) fn sentences(&self) -> Vec<String> {
        if self.rows.len() < 2 {
            return Vec::new();
        }
        let throughput = |metric: &Metric| matches!(metric.unit, Unit::BytesPerSecond | Unit::PerSecond);
        let position = |wanted: &dyn Fn(&Metric) -> bool| self.columns.iter().position(wanted);
        let mut chosen: Vec<usize> =
            [position(&throughput), position(&|metric| metric.name == "waf")].into_iter().flatten().collect();
        if chosen.is_empty() {
            chosen.extend(position(&|metric| words(metric).is_some()));
        }
        chosen.into_iter().filter_map(|index| self.sentence(index)).collect()
    }

    fn sentence(&self, index: usize) -> Option<String> {
        let metric = &self.columns[index];
        let (verb, comparative) = words(metric)?;
        let rows: Vec<(&str, Estimate)> = self
            .rows
            .iter()
            .filter_map(|row| Some((row.name.as_str(), row.cells[index].as_ref()?.estimate)))
            .collect();
        let less = metric.better == Better::Less;
        // Of equally good ones the first is kept.
        let better = |a: f64, b: f64| if less { a < b } else { a > b };
        let best = (1..rows.len())
            .fold(0, |best, i| if better(rows[i].1.mean, rows[best].1.mean) { i } else { best });
        let (name, best_estimate) = *rows.get(best)?;
        let (mut parts, mut same) = (Vec::new(), Vec::new());
        for (_, (other, estimate)) in rows.iter().enumerate().filter(|(i, _)| *i != best) {
            let ratio = if less { estimate.over(&best_estimate) } else { best_estimate.over(estimate) };
            match ratio {
                Some(ratio) if !estimate.overlaps(&best_estimate) && ratio.mean >= 1.005 => {
                    parts.push(format!("{} {comparative} {other}", times(&ratio)));
                }
                _ => same.push(*other),
            }
        }
        Some(match (parts.as_slice(), same.as_slice()) {
            ([], []) => return None,
            ([], _) => format!("{}: no difference seen", metric.title),
            ([one], []) => format!("{name} {verb} {one}"),
            (parts, []) => format!("{name} {verb}\n    {}", parts.join("\n    ")),
            (parts, same) => {
                let (parts, same) = (parts.join("\n    "), same.join(", "));
                format!("{name} {verb}\n    {parts}\n    no difference seen from {same}")
            }
        })
    }
}

fn times(ratio: &Estimate) -> String {
    let shown = number::ratio(ratio.mean);
    match ratio.interval {
        0.0 => format!("{shown} times"),
        interval => format!("{shown} ± {} times", shown.same_way(interval)),
    }
}

/// Verb and comparative of a metric that has them: `served`, `more requests per second than`.
fn words(metric: &Metric) -> Option<(String, String)> {
    let (verb, comparative) = match (metric.name.as_str(), metric.unit, metric.better) {
        ("waf", ..) => ("needed", "fewer programs than"),
        ("erases", ..) => ("needed", "fewer erases than"),
        (_, Unit::PerSecond, _) => ("served", "more requests per second than"),
        (_, Unit::BytesPerSecond, _) => ("moved", "more bytes per second than"),
        (_, Unit::Years, _) => ("lasts", "longer than"),
        (_, Unit::Usd | Unit::UsdPerGib, _) => ("costs", "less than"),
        (_, Unit::Nanoseconds, _) => return Some((format!("had a {}", metric.title), "shorter than".into())),
        (_, _, Better::Less) => return Some((format!("had {}", metric.title), "less than".into())),
        (_, _, Better::More) => return Some((format!("had {}", metric.title), "more than".into())),
        (_, _, Better::Neither) => return None,
    };
    Some((verb.to_string(), comparative.to_string()))
}
