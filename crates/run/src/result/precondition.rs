//! How a device was prepared, as data and in one line.

use super::WriteAmplification;
use nvlab_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// As [`Precondition::kind`] says that a device was filled in random order.
const RANDOM_ORDER: &str = "order=random";

/// How the device was brought to its state. It is kept beside prepared devices in a format without names: no field may be left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Precondition {
    /// All of it in one line ([`Precondition::line`]).
    #[serde(default)]
    pub about: String,
    /// `fresh`, `full`, `scattered`, `log-full` or `steady`, with its options.
    pub kind: String,
    /// Bytes written to get there.
    pub host_bytes: u64,
    /// Of these, bytes written once before all others: in order of their addresses, of `scattered` and with `order=random` in
    /// random order. The rest of the capacity is free.
    #[serde(default)]
    pub fill_bytes: u64,
    /// Whose writes the others were; `None`: there were no others.
    #[serde(default)]
    pub writes: Option<String>,
    /// Number of times a workload with an end was written from its beginning to its end; 0: it has none.
    #[serde(default)]
    pub passes: u64,
    /// There were trims among the writes.
    #[serde(default)]
    pub has_trims: bool,
    /// The share of the capacity that holds data in the end, if trims left less than was filled; `None`: they did not, or the device
    /// does not tell.
    #[serde(default)]
    pub held: Option<f64>,
    /// Of a recording that was repeated, what one pass of it does.
    #[serde(default)]
    pub pass: Option<PassResult>,
    /// Of a recording too short to say which of its units it writes again, and when, the write amplification if the same comes again
    /// in the same order, and if it goes on at random over all that is held.
    #[serde(default)]
    pub bounds: Option<[f64; 2]>,
    /// The workload makes a file system on the device, and files in it.
    #[serde(default)]
    pub has_file_system: bool,
    /// What the workload says is in use, and what the rest of the device holds (`used=`, `trimmed=`).
    #[serde(default)]
    pub in_use: Option<String>,
    /// Write amplification of the earlier and of the later half of its windows; both 0 unless `steady`.
    pub last_windows: [f64; 2],
    /// True if it is in the state that was asked for: of `steady`, the two agree within 1 %; of `log-full`, all log blocks are in
    /// use. Always true for the others.
    pub converged: bool,
    /// What the device programmed in the last window, by cause; `None` unless the workload's own
    /// writes prepared it.
    #[serde(default)]
    pub last_window: Option<WriteAmplification>,
    /// Units that were one while most of these bytes were written; 1: all were written at full size.
    #[serde(default = "one")]
    pub twin_units: u32,
    /// Bytes of these that were the last ones, written at the pace of the run, its reads among them; 0: write amplification does not
    /// depend on it, and all were written as fast as the device took them.
    #[serde(default)]
    pub own_pace_bytes: u64,
    /// Seconds it was then left idle, until its cache of blocks in SLC mode was folded; 0 without one.
    #[serde(default)]
    pub rested_s: f64,
}

/// What one pass of a recording does to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PassResult {
    /// Bytes it writes.
    pub bytes: u64,
    /// Bytes of the units that it writes at least once.
    pub distinct_bytes: u64,
    /// Bytes of the units that are trimmed at its end.
    pub trimmed_bytes: u64,
}

impl PassResult {
    /// Writes to a unit that is written at all, on average, below which the order of a recording does not say when its units are
    /// written again: with two, each interval between two writes of a unit is seen once.
    const WRITES_MIN: u64 = 2;

    /// True if it contains too little information about which units are written again, and when.
    pub(crate) fn is_too_short(&self) -> bool {
        self.bytes < PassResult::WRITES_MIN * self.distinct_bytes
    }
}

impl Precondition {
    /// At full size, with nothing written yet.
    pub fn none(kind: &str) -> Precondition {
        Precondition {
            about: String::new(),
            kind: kind.into(),
            host_bytes: 0,
            fill_bytes: 0,
            writes: None,
            passes: 0,
            has_trims: false,
            held: None,
            pass: None,
            bounds: None,
            has_file_system: false,
            in_use: None,
            last_windows: [0.0; 2],
            converged: true,
            last_window: None,
            twin_units: 1,
            own_pace_bytes: 0,
            rested_s: 0.0,
        }
    }

    /// True if the write amplification of the run is not that of a steady state.
    pub fn is_doubtful(&self) -> bool {
        !self.converged || self.bounds.is_some()
    }

    /// How a device of `capacity_bytes` was prepared: by whose writes, how many capacities, what it holds, and whether it is steady.
    pub fn line(&self, capacity_bytes: u64) -> String {
        let (kind, how) = self.kind.split_once(',').unwrap_or((&self.kind, ""));
        let (order, how): (Vec<&str>, Vec<&str>) = how.split(',').partition(|how| *how == RANDOM_ORDER);
        let is_scattered = kind == "scattered" || !order.is_empty();
        let mut text = match kind {
            "fresh" => "new, every block erased".to_string(),
            "full" | "scattered" | "log-full" | "steady" if self.host_bytes == 0 => {
                "as new: its state does not depend on earlier writes".to_string()
            }
            "full" | "scattered" | "log-full" | "steady" => {
                self.written(kind, is_scattered, capacity_bytes.max(1) as f64)
            }
            other => other.to_string(),
        };
        if self.has_file_system {
            text += "; it holds a file system";
        }
        if let Some(in_use) = &self.in_use {
            text += &format!("; {in_use}");
        }
        if self.rested_s > 0.0 {
            text += &format!("; then idle for {} to fold its SLC cache", Span::from_seconds(self.rested_s));
        }
        match how.join(", ") {
            how if how.is_empty() => text,
            how => format!("{text} ({how})"),
        }
    }

    /// What was written.
    fn written(&self, kind: &str, is_scattered: bool, capacity: f64) -> String {
        let order = if is_scattered { "in random order" } else { "in order" };
        // Results of older versions do not say how much was filled.
        let filled = if self.fill_bytes > 0 { self.fill_bytes } else { self.host_bytes.min(capacity as u64) };
        let mut text = match filled as f64 / capacity {
            share if share < 0.9995 => format!("{} filled once {order}, the rest free", percent(share)),
            _ => format!("filled once {order}"),
        };
        if kind != "steady" && kind != "log-full" {
            return text;
        }
        let Some(writes) = &self.writes else {
            let log = if kind == "log-full" { ", so the log is empty" } else { "" };
            return text + "; the workload writes nothing" + log;
        };
        let [before, last] = self.last_windows;
        let after = short(self.host_bytes.saturating_sub(filled) as f64 / capacity);
        text += &format!(", then {after} capacities of {writes}");
        match self.passes {
            0 => {}
            1 => text += " (all of it once)",
            passes => text += &format!(" (all of it {passes} times)"),
        }
        if self.twin_units > 1 {
            text += &format!(" (most of them with {} units as one)", self.twin_units);
        }
        if self.own_pace_bytes > 0 {
            let last = short(self.own_pace_bytes as f64 / capacity);
            text += &format!(", the last {last} at the workload's own rate");
        }
        text += &match self.converged {
            true if kind == "log-full" => ", until its log was full".to_string(),
            false if kind == "log-full" => ", which did not fill its log".to_string(),
            true => format!(", steady at WA {last:.2}"),
            false => format!(", not steady: WA still changed from {before:.2} to {last:.2}"),
        };
        match self.pass {
            Some(pass) if pass.trimmed_bytes > 0 => {
                text += &format!("; {} is trimmed", percent(pass.trimmed_bytes as f64 / capacity));
            }
            None if self.has_trims || self.held.is_some() => {
                let held = self.held.map_or(String::new(), |held| format!(", {} holds data", percent(held)));
                text += &format!("; some requests are trims{held}");
            }
            _ => {}
        }
        if let (Some([repeated, anywhere]), Some(pass)) = (self.bounds, self.pass) {
            let times = short(pass.bytes as f64 / pass.distinct_bytes.max(1) as f64);
            text += &format!(
                "; too short to tell: it writes each unit {times} times on average; WA is {repeated:.2} if it repeats in the same \
                 order, {anywhere:.2} if it continues at random over everything it wrote"
            );
        }
        text
    }
}

fn one() -> u32 {
    1
}

fn percent(share: f64) -> String {
    format!("{} %", short(100.0 * share))
}

/// Two or three digits.
fn short(number: f64) -> String {
    match number {
        number if number >= 10.0 => format!("{number:.0}"),
        number if number >= 0.1 => format!("{number:.1}"),
        number => format!("{number:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn steady() -> Precondition {
        Precondition {
            host_bytes: 310 * GIB,
            fill_bytes: 100 * GIB,
            writes: Some("the workload's own writes".into()),
            last_windows: [1.023, 1.021],
            ..Precondition::none("steady")
        }
    }

    #[test]
    fn a_line_says_whose_writes_how_many_and_what_is_held() {
        let own = "filled once in order, then 2.1 capacities of the workload's own writes";
        let line = |state: Precondition| state.line(100 * GIB);
        let log = |converged| Precondition { kind: "log-full".into(), converged, ..steady() };
        assert_eq!(line(log(true)), format!("{own}, until its log was full"));
        assert_eq!(line(log(false)), format!("{own}, which did not fill its log"));
        assert_eq!(line(steady()), format!("{own}, steady at WA 1.02"));
        let repeated = Precondition { passes: 31, has_file_system: true, ..steady() };
        assert_eq!(
            line(repeated),
            format!("{own} (all of it 31 times), steady at WA 1.02; it holds a file system")
        );
        let drifting = Precondition { converged: false, last_windows: [1.2, 1.32], ..steady() };
        assert!(drifting.is_doubtful() && !steady().is_doubtful());
        assert_eq!(line(drifting), format!("{own}, not steady: WA still changed from 1.20 to 1.32"));
        let trimmed = Precondition { has_trims: true, held: Some(0.873), ..steady() };
        let wanted = format!("{own}, steady at WA 1.02; some requests are trims, 87 % holds data");
        assert_eq!(line(trimmed), wanted);
        let used =
            Precondition { in_use: Some("30 GB in use, the rest full of stale data".into()), ..steady() };
        let wanted = format!("{own}, steady at WA 1.02; 30 GB in use, the rest full of stale data");
        assert_eq!(line(used), wanted);
        let paced = Precondition { own_pace_bytes: 30 * GIB, ..steady() };
        assert_eq!(line(paced), format!("{own}, the last 0.3 at the workload's own rate, steady at WA 1.02"));
        let part = Precondition {
            kind: "steady,fill=30%,idle=10s".into(),
            fill_bytes: 30 * GIB,
            writes: None,
            ..steady()
        };
        let wanted =
            "30 % filled once in order, the rest free; the workload writes nothing (fill=30%, idle=10s)";
        assert_eq!(line(part), wanted);
        let full = Precondition { kind: "scattered".into(), host_bytes: 100 * GIB, ..steady() };
        assert_eq!(line(full), "filled once in random order");
        let sorted_later = Precondition { kind: "steady,order=random,idle=1s".into(), ..steady() };
        let wanted = own.replace("in order", "in random order") + ", steady at WA 1.02 (idle=1s)";
        assert_eq!(line(sorted_later), wanted);
        assert_eq!(line(Precondition::none("fresh")), "new, every block erased");
        assert_eq!(line(Precondition::none("as it was left")), "as it was left");
    }

    #[test]
    fn a_short_recording_has_bounds() {
        let pass = PassResult { bytes: 12 * GIB, distinct_bytes: 10 * GIB, trimmed_bytes: GIB };
        assert!(pass.is_too_short() && !PassResult { bytes: 20 * GIB, ..pass }.is_too_short());
        let short = Precondition { passes: 18, pass: Some(pass), bounds: Some([1.02, 3.4]), ..steady() };
        assert!(short.is_doubtful());
        let line = short.line(100 * GIB);
        assert!(
            line.contains(
                "; 1.0 % is trimmed; too short to tell: it writes each unit 1.2 times on average; WA is 1.02 if"
            ),
            "{line}"
        );
        assert!(line.ends_with("3.40 if it continues at random over everything it wrote"), "{line}");
    }
}
