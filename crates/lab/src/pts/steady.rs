//! The steady state of SNIA's specification: in the last five rounds the tracked value stays within 20 % of its average, and
//! the line through them (least squares) changes by no more than 10 % of it from the first to the last.

use serde::Serialize;

/// Rounds of the measurement window.
pub(super) const WINDOW: usize = 5;
/// Rounds after which a test ends, steady or not.
pub(super) const ROUNDS_MAX: usize = 25;
const RANGE_MAX: f64 = 0.2;
const SLOPE_MAX: f64 = 0.1;

/// The last five rounds against the rule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Window {
    /// Mean of the tracked value.
    pub average: f64,
    /// Largest less smallest value, over the average.
    pub range_share: f64,
    /// What the line through the values changes from the first to the last, over the average.
    pub slope_share: f64,
    /// Both are small enough.
    pub is_steady: bool,
}

/// The window that ends with the last of `values`; `None` while there are too few.
pub fn window(values: &[f64]) -> Option<Window> {
    let last: &[f64] = &values[values.len().checked_sub(WINDOW)?..];
    let count = WINDOW as f64;
    let average = last.iter().sum::<f64>() / count;
    if average <= 0.0 {
        return Some(Window { average, range_share: 0.0, slope_share: 0.0, is_steady: false });
    }
    let most = last.iter().copied().fold(f64::MIN, f64::max);
    let least = last.iter().copied().fold(f64::MAX, f64::min);
    let middle = (count - 1.0) / 2.0;
    let offsets = || (0..WINDOW).map(|round| round as f64 - middle);
    let slope = offsets().zip(last).map(|(x, y)| x * y).sum::<f64>() / offsets().map(|x| x * x).sum::<f64>();
    let range_share = (most - least) / average;
    let slope_share = (slope * (count - 1.0)).abs() / average;
    let is_steady = range_share <= RANGE_MAX && slope_share <= SLOPE_MAX;
    Some(Window { average, range_share, slope_share, is_steady })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_met_and_missed_on_both_sides() {
        assert_eq!(window(&[1.0; 4]), None);
        assert!(
            window(&[5.0, 100.0, 100.0, 100.0, 100.0, 100.0]).unwrap().is_steady,
            "only the last five count"
        );
        // Range: 19.8 % and 20.2 % of the average, without a slope.
        let wave = |high: f64| window(&[100.0, 100.0, 100.0 + high, 100.0, 100.0]).unwrap();
        assert!(wave(20.6).is_steady && !wave(21.1).is_steady, "{:?}", (wave(20.6), wave(21.1)));
        // Slope: a line that rises by 9.9 % and by 10.1 % of its average.
        let line =
            |rise: f64| window(&[0.0, 0.25, 0.5, 0.75, 1.0].map(|x| 100.0 + rise * (x - 0.5))).unwrap();
        assert!(line(9.9).is_steady && !line(10.1).is_steady);
        assert!((line(8.0).slope_share - 0.08).abs() < 1e-12);
        assert!(!window(&[0.0; 5]).unwrap().is_steady);
    }
}
