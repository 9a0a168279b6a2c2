//! The computer and date of a measurement.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where and when something was measured.
#[derive(Clone, Debug)]
pub struct Machine {
    pub processor: String,
    pub kernel: String,
    pub cores: usize,
    /// Year, month and day, UTC.
    pub date: String,
}

impl Machine {
    pub fn here() -> Machine {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let info = text("/proc/cpuinfo");
        let line = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Machine {
            processor: line.map_or("an unknown processor".into(), |(_, name)| name.trim().to_string()),
            kernel: text("/proc/sys/kernel/osrelease").trim().to_string(),
            cores: std::thread::available_parallelism().map_or(1, |count| count.get()),
            date: date(seconds / 86_400),
        }
    }

    /// The source of a number, in words.
    pub fn cite(&self) -> String {
        format!(
            "measured on {}, {} processors, Linux {}, {}",
            self.processor, self.cores, self.kernel, self.date
        )
    }
}

/// The date so many days after 1970-01-01: years of the Gregorian calendar counted from March, so that a leap day is the last.
fn date(days: u64) -> String {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_are_dates() {
        let dates = [0, 59, 789, 11_016, 11_017, 20_663].map(date);
        assert_eq!(
            dates,
            ["1970-01-01", "1970-03-01", "1972-02-29", "2000-02-29", "2000-03-01", "2026-07-29"]
        );
    }
}
