//! Formats numbers for users: three significant digits and a unit (`12.4 us`, `3.10 GiB`, `2.97`), counts in full
//! with groups of three (`1 000 000`).

use crate::result::ProgramResult;

/// A number and its unit, apart so that tables can align them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The digits.
    pub number: String,
    /// The unit, possibly empty.
    pub unit: &'static str,
    /// Decimals of `number`, and the unit in base units: to format an interval in the same way.
    decimals: usize,
    factor: Factor,
}

/// The bits of the factor, so that [`Shown`] can be `Eq`.
type Factor = u64;

impl Shown {
    fn new(value: f64, factor: f64, unit: &'static str) -> Shown {
        let number = three(value / factor);
        let decimals = number.split_once('.').map_or(0, |(_, part)| part.len());
        Shown { number, unit, decimals, factor: factor.to_bits() }
    }

    /// The unit, in base units.
    pub fn factor(&self) -> f64 {
        f64::from_bits(self.factor)
    }

    /// Formats another value (an interval) with the unit and the decimals of this one, with one more digit where it
    /// would otherwise be rounded to 0.
    pub fn same_way(&self, value: f64) -> String {
        let scaled = value / self.factor();
        let text = format!("{scaled:.*}", self.decimals);
        let vanished = value != 0.0 && text.bytes().all(|b| b == b'0' || b == b'.');
        if vanished { format!("{scaled:.*}", self.decimals + 1) } else { text }
    }
}

impl std::fmt::Display for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.number)?;
        if self.unit.is_empty() { Ok(()) } else { write!(f, " {}", self.unit) }
    }
}

/// Three significant digits; whole numbers above 1000 in groups.
pub fn three(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    if value.abs() < 1e-3 {
        return format!("{value:.2e}");
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (2 - magnitude).max(0) as usize;
    let mut text = format!("{value:.decimals$}");
    // 9.996 has become 10.00.
    let carried = text.parse::<f64>().is_ok_and(|v| v.abs() >= 10f64.powi(magnitude + 1));
    if carried && decimals > 0 {
        text.pop();
        text.truncate(text.trim_end_matches('.').len());
    }
    if value.abs() >= 999.5 { grouped_digits(&text) } else { text }
}

fn grouped_digits(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let mut grouped = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

/// A count in full: `1 000 000`.
pub fn count(value: u64) -> String {
    grouped_digits(&value.to_string())
}

/// A count and its noun, in the plural if needed: `1 block`, `2 blocks`.
pub fn things(value: u64, thing: &str) -> String {
    format!("{} {thing}{}", count(value), if value == 1 { "" } else { "s" })
}

/// The value in the largest unit in which it is at least 1 after rounding. Each unit is (from this value on, factor, name).
fn scaled(value: f64, units: &[(f64, f64, &'static str)]) -> Shown {
    let fits = |from: f64| value.abs() >= from * 0.9995;
    let (_, factor, unit) = units.iter().rev().find(|(from, ..)| fits(*from)).unwrap_or(&units[0]);
    Shown::new(value, *factor, unit)
}

/// A plain number: `2.97`.
pub fn ratio(value: f64) -> Shown {
    Shown::new(value, 1.0, "")
}

/// A time in nanoseconds: `12.4 us`. Whole nanoseconds are shown whole.
pub fn time_ns(ns: f64) -> Shown {
    if ns.fract() == 0.0 && ns.abs() < 1000.0 {
        return Shown { number: format!("{ns}"), unit: "ns", decimals: 0, factor: 1f64.to_bits() };
    }
    const S: f64 = 1e9;
    scaled(
        ns,
        &[
            (1.0, 1.0, "ns"),
            (1e3, 1e3, "us"),
            (1e6, 1e6, "ms"),
            (S, S, "s"),
            (600.0 * S, 60.0 * S, "min"),
            (7200.0 * S, 3600.0 * S, "h"),
            (172_800.0 * S, 86_400.0 * S, "d"),
        ],
    )
}

/// A time in seconds: `3.10 s`, `21.4 ms`.
pub fn time_s(seconds: f64) -> Shown {
    time_ns(seconds * 1e9)
}

/// A size in binary units: `3.10 GiB`.
pub fn bytes(value: f64) -> Shown {
    if value.abs() < 1024.0 && value.fract() == 0.0 {
        return Shown { number: format!("{value}"), unit: "B", decimals: 0, factor: 1f64.to_bits() };
    }
    const K: f64 = 1024.0;
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut table = [(1.0, 1.0, ""); 7];
    for (power, (row, unit)) in table.iter_mut().zip(units).enumerate() {
        let factor = K.powi(power as i32);
        *row = (factor, factor, unit);
    }
    scaled(value, &table)
}

/// A size in decimal units, as datasheets state endurance: `240 TB`.
pub fn bytes_decimal(value: f64) -> Shown {
    let units = [(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"), (1e15, "PB"), (1e18, "EB")];
    scaled(value, &units.map(|(factor, unit)| (factor, factor, unit)))
}

/// A transfer rate in decimal units: `812 MB/s`.
pub fn bandwidth(value: f64) -> Shown {
    let units = [(1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s"), (1e12, "TB/s")];
    scaled(value, &units.map(|(factor, unit)| (factor, factor, unit)))
}

/// A rate of events: `29.9 k/s`.
pub fn per_second(value: f64) -> Shown {
    let units = [(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s"), (1e9, "G/s")];
    scaled(value, &units.map(|(factor, unit)| (factor, factor, unit)))
}

/// A count in three digits: `1.24 M`.
pub(crate) fn short_count(value: f64) -> Shown {
    if value.fract() == 0.0 && value.abs() < 1000.0 {
        return Shown { number: format!("{value}"), unit: "", decimals: 0, factor: 1f64.to_bits() };
    }
    let units = [(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")];
    scaled(value, &units.map(|(factor, unit)| (factor, factor, unit)))
}

/// Write amplification has two decimals, so that its parts can be added in the head.
pub fn two(value: f64) -> String {
    if value > 0.0 && value < 0.005 { "<0.01".to_string() } else { format!("{value:.2}") }
}

/// A share of 1 in percent: `41.2 %`.
pub fn share(value: f64) -> Shown {
    Shown::new(value, 0.01, "%")
}

/// A length of life: `8.40 years`, `201 days`, `3.20 hours`.
pub fn years(value: f64) -> Shown {
    const DAY: f64 = 1.0 / 365.25;
    scaled(value, &[(0.0, DAY / 24.0, "hours"), (2.0 * DAY, DAY, "days"), (1.0, 1.0, "years")])
}

/// US dollars: `62.3 USD`.
pub fn usd(value: f64) -> Shown {
    Shown::new(value, 1.0, "USD")
}

/// The run time of a recorded program, and what it consists of.
pub fn program(run_s: f64, program: &ProgramResult) -> String {
    let [run, waiting, computing, recorded, waited] =
        [run_s, program.waiting_s, program.computing_s, program.recorded_s, program.recorded_waiting_s]
            .map(time_s);
    format!(
        "{run}: waiting {waiting}, computing {computing} (recorded: {recorded}, of which waiting {waited})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        let cases = [
            (0.0, "0"),
            (2.9666, "2.97"),
            (9.996, "10.0"),
            (99.96, "100"),
            (999.6, "1 000"),
            (69_120.4, "69 120"),
            (0.051_23, "0.0512"),
            (0.099_96, "0.100"),
            (-12.34, "-12.3"),
            (1.234e-9, "1.23e-9"),
        ];
        for (value, text) in cases {
            assert_eq!(three(value), text, "{value}");
        }
        assert_eq!(
            (count(0), count(1_000), count(12_345_678)),
            ("0".into(), "1 000".into(), "12 345 678".into())
        );
        assert_eq!((things(1, "block"), things(2, "block")), ("1 block".into(), "2 blocks".into()));
    }

    #[test]
    fn units_follow_the_size() {
        let shown = [
            time_ns(183.0),
            time_ns(183.4),
            time_ns(12_400.0),
            time_ns(999_700.0),
            time_s(60.0),
            time_s(900.0),
            bytes(512.0),
            bytes(3.1 * (1u64 << 30) as f64),
            bandwidth(812_345_678.0),
            per_second(29_870.0),
            share(0.412),
            years(8.4),
            years(0.55),
            years(0.001),
            years(12_345.6),
            usd(0.512),
            short_count(61_440.0),
            bytes_decimal(2.4e14),
        ];
        let texts: Vec<String> = shown.iter().map(Shown::to_string).collect();
        assert_eq!(
            texts.join(", "),
            "183 ns, 183 ns, 12.4 us, 1.00 ms, 60.0 s, 15.0 min, 512 B, 3.10 GiB, 812 MB/s, 29.9 k/s, 41.2 %, 8.40 years, \
             201 days, 8.77 hours, 12 346 years, 0.512 USD, 61.4 k, 240 TB"
        );
    }

    #[test]
    fn intervals_are_written_like_their_value() {
        assert_eq!(per_second(29_870.0).same_way(123.0), "0.1");
        assert_eq!(time_ns(212_345.0).same_way(9_400.0), "9");
        assert_eq!(ratio(2.97).same_way(0.001), "0.001");
        assert_eq!(ratio(2.97).same_way(0.0), "0.00");
    }
}
