//! Intervals.

/// The 5th and the 95th of a hundred.
pub fn nine_of_ten(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    if values.is_empty() { (f64::NAN, f64::NAN) } else { (at(0.05), at(0.95)) }
}
