//! A fleet: a pattern in place of a trace, `fleet/*.csv:alibaba`, stands for many traces, one for each volume. Each
//! is a point.

use super::front::Group;
use super::space::Axis;
use super::{Sweep, VOLUME};
use nvlab_run::metric::Metric;

/// The quantiles over the volumes in a summary.
const SHARES: [(&str, f64); 5] =
    [("lowest", 0.0), ("5 %", 0.05), ("median", 0.5), ("95 %", 0.95), ("highest", 1.0)];

/// The traces that a workload's pattern matches, in the order of their names, as an axis, and the workload with the axis in
/// the place of the pattern; `None` if the workload has no pattern.
pub(super) fn axis(workload: &str) -> Result<Option<(Axis, String)>, String> {
    let (first, rest) = workload.split_once(' ').unwrap_or((workload, ""));
    if !first.contains(['*', '?']) {
        return Ok(None);
    }
    // A format may follow the name of a file.
    let (pattern, format) = match first.rsplit_once(':') {
        Some((pattern, format)) if !format.contains(['/', '*', '?']) => (pattern, format),
        _ => (first, ""),
    };
    let paths = glob::glob(pattern).map_err(|error| format!("`{pattern}`: {error}"))?;
    let mut values = Vec::new();
    for path in paths {
        let path = path.map_err(|error| error.to_string())?;
        match path.to_str() {
            Some(text) if !text.contains(char::is_whitespace) => values.push(text.to_string()),
            _ => {
                return Err(format!(
                    "{}: the file name of a fleet's trace must not contain blanks",
                    path.display()
                ));
            }
        }
    }
    if values.is_empty() {
        return Err(format!("nothing matches `{pattern}`"));
    }
    let colon = if format.is_empty() { "" } else { ":" };
    let text = format!("{{{VOLUME}}}{colon}{format} {rest}");
    Ok(Some((Axis { name: VOLUME.to_string(), values, sets: Vec::new() }, text.trim_end().to_string())))
}

/// The axes that differ between runs of the same volume, without the seed.
pub fn others(sweep: &Sweep) -> Vec<&Axis> {
    sweep.varied().into_iter().filter(|axis| axis.name != VOLUME).collect()
}

/// The values of a metric over the volumes at one combination of the other axes.
pub(super) struct Spread<'a> {
    /// The values on the other axes.
    pub at: Vec<&'a str>,
    /// Those of the metric, ascending.
    pub values: Vec<f64>,
}

/// The values of a metric over the volumes for each combination of the other axes, in their order.
pub(super) fn by_volume<'a>(sweep: &'a Sweep, groups: &[Group<'a>], metric: &Metric) -> Vec<Spread<'a>> {
    let axes = others(sweep);
    let mut spreads: Vec<Spread<'a>> = Vec::new();
    for group in groups {
        let is_other = |name: &str| axes.iter().any(|axis| axis.name == name);
        let others = group.values.iter().filter(|(name, _)| is_other(name));
        let at: Vec<&str> = others.map(|(_, value)| *value).collect();
        let place = spreads.iter().position(|known| known.at == at).unwrap_or_else(|| {
            spreads.push(Spread { at, values: Vec::new() });
            spreads.len() - 1
        });
        spreads[place].values.extend(group.mean(metric));
    }
    spreads.iter_mut().for_each(|spread| spread.values.sort_by(f64::total_cmp));
    spreads
}

/// The quantile of ascending `values`: at most this share of them lies below it.
pub(super) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    values.get((share * (values.len().max(1) - 1) as f64).round() as usize).copied()
}

/// A row of the summary of a fleet.
pub struct Summary<'a> {
    /// The values on the other axes.
    pub at: Vec<&'a str>,
    /// Which quantile: `median`.
    pub share: &'static str,
    /// That of each metric by itself; `None` if no run has a value.
    pub values: Vec<Option<f64>>,
}

/// A few quantiles of metrics over the volumes, for each combination of the other axes.
pub fn summary<'a>(sweep: &'a Sweep, groups: &[Group<'a>], metrics: &[Metric]) -> Vec<Summary<'a>> {
    let spreads: Vec<Vec<Spread<'a>>> =
        metrics.iter().map(|metric| by_volume(sweep, groups, metric)).collect();
    let mut rows = Vec::new();
    for (row, Spread { at, .. }) in spreads.first().into_iter().flatten().enumerate() {
        for (name, share) in SHARES {
            let values = spreads.iter().map(|spreads| quantile(&spreads[row].values, share)).collect();
            rows.push(Summary { at: at.clone(), share: name, values });
        }
    }
    rows
}
