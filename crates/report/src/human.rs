//! One run as text for a terminal: the run, its figures, the causes of writes, die time, cost. Labels are in one
//! column; lines are wrapped at the width of the style.

mod durable;
mod lifetime;
mod lines;
mod map;
mod precondition;
mod software;
mod tenants;

pub(super) use lifetime::{lifetime, unworn};
pub(super) use precondition::precondition;

use super::Style;
use super::notes::doubt;
use super::times::why;
use super::warnings::warnings;
use nvlab_run::metric::busy_flash;
use nvlab_run::number::{self, Shown};
use nvlab_run::result::{
    FlashResult, MemoryResult, OpResult, PricePart, RunResult, TimeSplit, WriteAmplification,
};

/// The column at which the text of a labelled line begins.
const INDENT: usize = 18;

/// A smaller share of absorbed writes is not shown.
const ABSORBED: f64 = 0.001;

/// A run for people.
pub fn run_text(run: &RunResult, style: Style) -> String {
    let mut page = Page { text: String::new(), style };
    page.head(run);
    page.state(run);
    page.throughput(run);
    page.latency(run);
    page.writes(run);
    page.media(run);
    page.cost(run);
    page.why(run);
    let key = run.key.get(..8).unwrap_or(&run.key);
    let foot = format!("key {key} · nvlab {} · results version {}", run.nvlab, run.results_version);
    page.text += &format!("\n  {}\n", page.dim(&foot));
    page.text
}

/// The kinds of requests that a run had: name and figures.
pub(super) fn operations(run: &RunResult) -> impl Iterator<Item = (&'static str, &OpResult)> {
    let [read, write] = match (&run.durable, run.transaction.count > 0) {
        (Some(_), _) => ["read", "commit"],
        (None, true) => ["load", "store"],
        (None, false) => ["read", "write"],
    };
    let all = [
        (read, &run.read),
        (write, &run.write),
        ("trim", &run.trim),
        ("flush", &run.flush),
        ("transaction", &run.transaction),
    ];
    all.into_iter().filter(|(_, op)| op.count > 0)
}

/// The rows of a table of latencies: the requests, and the operations that made writes durable.
pub(super) fn timed(run: &RunResult) -> impl Iterator<Item = (&'static str, &OpResult)> {
    operations(run).chain([("commit", &run.commit)].into_iter().filter(|(_, op)| op.count > 0))
}

/// `1 host`, `1.92 clean`...: the non-zero parts of write amplification.
pub(super) fn write_parts(run: &RunResult) -> Vec<(&'static str, f64)> {
    let parts = WriteAmplification::CAUSES.into_iter().zip(run.write_amplification.parts());
    parts.filter(|(name, value)| *name == "host" || *value > 0.0).collect()
}

/// Simulated time and the time of this computer, side by side.
pub(super) fn times(run: &RunResult) -> String {
    let text = format!("simulated {} in {}", number::time_s(run.simulated_s), number::time_s(run.wall_s));
    match run.simulated_s / run.wall_s {
        speed if speed.is_finite() && speed > 0.0 => format!("{text} ({}x)", number::three(speed)),
        _ => text,
    }
}

/// Requests issued and served, and whether some are missing.
pub(super) fn requests(run: &RunResult) -> (String, bool) {
    let served = number::count(run.requests_served);
    match run.requests_asked {
        _ if run.arrivals.is_some_and(|arrivals| arrivals.waiting > 0) => {
            let offered = number::count(run.arrivals.map_or(0, |arrivals| arrivals.offered));
            (format!("{offered} offered until the end of the run, {served} served"), true)
        }
        Some(asked) if asked == run.requests_served => (format!("{served} issued, all served"), false),
        Some(asked) => (format!("{} issued, {served} served", number::count(asked)), true),
        None => (format!("{served} served"), false),
    }
}

/// The text of a page, line by line.
struct Page {
    text: String,
    style: Style,
}

impl Page {
    fn painted(&self, code: &str, text: &str) -> String {
        let plain = !self.style.color || code.is_empty() || text.is_empty();
        if plain { text.to_string() } else { format!("\x1b[{code}m{text}\x1b[0m") }
    }
    fn dim(&self, text: &str) -> String {
        self.painted("2", text)
    }
    fn bold(&self, text: &str) -> String {
        self.painted("1", text)
    }

    /// A labelled line. `\u{a0}` in the text is a space at which it is not broken.
    fn line(&mut self, label: &str, text: &str) {
        self.line_in("", label, text);
    }

    /// A labelled line whose text has a colour.
    fn line_in(&mut self, code: &str, label: &str, text: &str) {
        let width = self.style.width.max(60) - INDENT;
        for (index, part) in wrapped(text, width).into_iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            let padding = " ".repeat((INDENT - 2).saturating_sub(label.chars().count()));
            let part = self.painted(code, part.replace('\u{a0}', " ").trim_end());
            self.text += &format!("  {}{padding}{part}\n", self.painted("36", label));
        }
    }

    /// A labelled line that begins with `!` if something is wrong.
    fn checked(&mut self, label: &str, (text, wrong): (String, bool)) {
        match wrong {
            true => self.line_in("33", label, &format!("! {text}")),
            false => self.line(label, &text),
        }
    }

    fn head(&mut self, run: &RunResult) {
        let design = &run.design;
        self.text += &format!("{} · {}", self.bold(&design.name), durable::sizes(run));
        if !design.about.is_empty() {
            self.text += &format!(" · {}", self.dim(&design.about));
        }
        let (left, right) = (format!("{} · seed {}", run.workload, run.seed), times(run));
        let gap = self.style.width.saturating_sub(left.chars().count() + right.chars().count());
        self.text += &if gap >= 2 {
            format!("\n{left}{}{right}\n", " ".repeat(gap))
        } else {
            format!("\n{left}\n{right}\n")
        };
        if !run.workload_about.is_empty() {
            self.text += &format!("{}\n", self.dim(&run.workload_about));
        }
        self.text.push('\n');
    }

    fn state(&mut self, run: &RunResult) {
        self.checked("Prepared", precondition(run));
        self.checked("Requests", requests(run));
        for warning in warnings(run) {
            self.checked("", (warning, true));
        }
    }

    fn throughput(&mut self, run: &RunResult) {
        if let Some(program) = &run.program {
            self.line("Program", &number::program(run.simulated_s, program));
        }
        if run.transaction.count > 0 {
            let accesses =
                |(name, op): (&str, &OpResult)| keep(&format!("   {name}s {}", number::per_second(op.per_s)));
            let accesses: String =
                operations(run).filter(|(name, _)| *name != "transaction").map(accesses).collect();
            let per_s = number::count(run.transaction.per_s.round() as u64);
            self.line("Throughput", &format!("{per_s} TPS{accesses}"));
            return self.doubts(run, &["tps"]);
        }
        let per_s: f64 = operations(run).map(|(_, op)| op.per_s).sum();
        let mut text = format!("{} IOPS", number::count(per_s.round() as u64));
        for (name, op) in operations(run).filter(|(_, op)| op.bytes > 0) {
            text += &format!("   {name} {}", number::bandwidth(op.bytes_per_s)).replace(' ', "\u{a0}");
        }
        self.line("Throughput", &text);
        self.doubts(run, &["iops"]);
    }

    /// The caveats to the figures in the line above.
    fn doubts(&mut self, run: &RunResult, metrics: &[&str]) {
        let doubts: Vec<String> = metrics.iter().filter_map(|name| doubt(name, run)).collect();
        if !doubts.is_empty() {
            self.checked("", (doubts.join("; "), true));
        }
    }

    /// One row for each kind of request; numbers and units are aligned.
    fn latency(&mut self, run: &RunResult) {
        let heads = ["mean", "p50", "p95", "p99", "p99.9", "p99.99", "max"];
        let line: String = heads.iter().map(|head| format!("{head:>9}")).collect();
        self.line("Latency", &keep(&line[2..]));
        for (name, op) in timed(run) {
            let cell = |Shown { number, unit, .. }: Shown| format!("{number:>6} {unit:<2}");
            let cells: String = latencies(op).into_iter().map(number::time_ns).map(cell).collect();
            self.line(&format!("  {name}"), &keep(&cells[2..]));
        }
        self.doubts(run, &["read.mean", "write.mean", "trim.mean", "flush.mean", "transaction.mean"]);
        if let Some(software) = &run.software {
            software::lines(software).into_iter().for_each(|(label, text)| self.line(label, &text));
        }
        for tenant in &run.tenants {
            self.line("Stream", &tenants::line(tenant));
        }
        if let Some(memory) = &run.memory {
            self.line("Buffer", &buffer(run, memory));
        }
        if let Some(lines) = &run.lines {
            self.line("Cache", &lines::line(lines));
        }
        if let Some(map) = &run.map {
            self.line("Map", &map::line(map));
        }
        if run.buffer_wait_s > 0.0 {
            let wait = number::time_s(run.buffer_wait_s / run.write.count.max(1) as f64);
            self.line("Buffer", &format!("writes waited {wait} on average for room in the write buffer"));
        }
        if run.merge_wait_s > 0.0 {
            let wait = number::time_s(run.merge_wait_s / run.write.count.max(1) as f64);
            self.line("Merges", &format!("writes waited {wait} on average until log blocks were merged"));
        }
    }

    fn writes(&mut self, run: &RunResult) {
        if let Some(durable) = &run.durable {
            return durable::lines(durable).into_iter().for_each(|(label, text)| self.line(label, &text));
        }
        let wa = &run.write_amplification;
        if !wa.is_of_something() {
            return self.line("Write amp.", "none: the host wrote nothing");
        }
        let part = |(name, value): (&str, f64)| {
            let value = if name == "host" && value == 1.0 { "1".to_string() } else { number::two(value) };
            keep(&format!("{value} {name}"))
        };
        let parts: Vec<String> = write_parts(run).into_iter().map(part).collect();
        self.line(
            "Write amp.",
            &format!("{}\u{a0}\u{a0}\u{a0}= {}", number::two(wa.total), parts.join(" + ")),
        );
        self.doubts(run, &["waf"]);
        if wa.absorbed >= ABSORBED {
            let share = number::share(wa.absorbed);
            self.line(
                "",
                &format!(
                    "{share} of the units written replaced one in the write buffer and were not programmed separately"
                ),
            );
        }
        let levelling = run
            .lifetime
            .levelling
            .filter(|later| number::two(later.write_amplification) != number::two(wa.total));
        if let Some(later) = levelling {
            self.line("", &lifetime::levelled_later(&later));
        }
        if wa.unaligned > 1.0 {
            let text = "bytes of units touched per byte written (partial units; not in the total)";
            self.line("", &format!("{} {text}", number::three(wa.unaligned)));
        }
        if wa.cleaned_blocks > 0 {
            let live = number::share(wa.cleaned_live_share);
            let blocks = keep(&number::things(wa.cleaned_blocks, "block"));
            self.line("Cleaning", &format!("{blocks} cleaned, {live} live on average"));
        }
    }

    fn media(&mut self, run: &RunResult) {
        if let Some(memory) = &run.memory {
            self.line("Time", &time(&memory.time));
        }
        if let Some(flash) = &run.flash {
            self.flash(run, flash);
        }
        // Only a device that counts its wear has a wear histogram.
        if let Some(hidden) = run.media.first().filter(|_| run.flash.is_none()) {
            self.line("Wear", &lifetime::levelled_evenly(hidden));
        }
        if run.durable.is_none() || run.lifetime.rated_cycles > 0 {
            self.line("Lifetime", &lifetime(run));
            for doubt in run.doubts("lifetime.bytes") {
                self.checked("", (doubt, true));
            }
        }
    }

    fn flash(&mut self, run: &RunResult, flash: &FlashResult) {
        if run.memory.is_none() {
            self.busy(flash);
        }
        let done = [(flash.reads, "read"), (flash.programs, "program"), (flash.erases, "erase")];
        let done = done.map(|(count, what)| keep(&number::things(count, what)));
        self.line("Flash", &done.join(", "));
        self.kinds(run);
        self.faults(flash);
        let mean = number::three(flash.cycles_mean);
        let (least, most, deviation) =
            (flash.cycles_min, flash.cycles_max, number::three(flash.cycles_deviation));
        let rated = number::count(run.lifetime.rated_cycles as u64);
        let rated = keep(&format!("rated {rated}"));
        let of = if run.durable.is_some() { "blocks of records: " } else { "" };
        self.line(
            "Wear",
            &format!("{of}cycles mean {mean}, min {least}, max {most}, deviation {deviation}; {rated}"),
        );
    }

    fn busy(&mut self, flash: &FlashResult) {
        let percent = |share: f64| format!("{:.0}", share * 100.0);
        let [all, read, program, erase, channel] =
            [busy_flash(flash), flash.busy_read, flash.busy_program, flash.busy_erase, flash.busy_channel]
                .map(percent);
        let busy = format!("dies {all} %: read {read}, program {program}, erase {erase}");
        self.line("Device busy", &format!("{}   {}", keep(&busy), keep(&format!("channels {channel} %"))));
    }

    /// Each kind of flash, if there are several.
    fn kinds(&mut self, run: &RunResult) {
        for medium in run.media.iter().filter(|_| run.media.len() > 1) {
            let done = [(medium.reads, "read"), (medium.programs, "program"), (medium.erases, "erase")];
            let mut parts = done.map(|(count, what)| keep(&number::things(count, what))).to_vec();
            let busy = number::time_s(medium.read_s + medium.program_s + medium.erase_s);
            parts.push(keep(&format!("{busy} in total")));
            parts.push(keep(&match medium.years {
                Some(years) if run.lifetime.caveat.is_some() => format!("lasts {} (!)", number::years(years)),
                Some(years) => format!("lasts {}", number::years(years)),
                None => "nothing programmed".to_string(),
            }));
            self.line(&format!("  {}", medium.name), &parts.join(", "));
        }
    }

    fn faults(&mut self, flash: &FlashResult) {
        let [reads, programs, erases] = flash.failures;
        let counts = [
            (flash.read_retries, "read retried", "reads retried"),
            (reads, "read lost", "reads lost"),
            (programs, "program failed", "programs failed"),
            (erases, "erase failed", "erases failed"),
            (flash.retired_blocks, "block retired", "blocks retired"),
        ];
        let text = |(count, one, many): (u64, &str, &str)| {
            keep(&format!("{} {}", number::count(count), if count == 1 { one } else { many }))
        };
        let parts: Vec<String> = counts.into_iter().filter(|(count, ..)| *count > 0).map(text).collect();
        if !parts.is_empty() {
            self.checked("Faults", (parts.join(", "), reads > 0));
        }
    }

    /// Where the time of its requests went, and what limits the run.
    fn why(&mut self, run: &RunResult) {
        why(run).iter().for_each(|(label, text)| self.line(label, text));
    }

    fn cost(&mut self, run: &RunResult) {
        let price = &run.price;
        let part = |PricePart { name, usd, .. }: &PricePart| {
            let usd = usd.map_or("no price".to_string(), number::three);
            keep(&format!("{name} {usd}"))
        };
        let parts: Vec<String> = price.parts.iter().map(part).collect();
        let total = price.total_usd.map_or("not known".to_string(), |usd| number::usd(usd).to_string());
        let each =
            price.usd_per_gib.map_or(String::new(), |usd| format!("   {} USD/GiB", number::three(usd)));
        self.line("Price", &format!("{} ({}){}", keep(&total), parts.join(", "), keep(&each)));
        if run.durable.is_some() {
            return;
        }
        let memory = number::bytes(run.controller_memory_bytes as f64);
        let mut text = format!("{memory} of tables in the controller");
        if let Some(memory) = &run.memory {
            text +=
                &keep(&format!("; page table of {} in the design", number::bytes(memory.table_bytes as f64)));
        }
        self.line("Memory", &text);
    }
}

/// The figures of the write buffer of a memory, in one line.
fn buffer(run: &RunResult, memory: &MemoryResult) -> String {
    let hits = match run.transaction.count {
        // A block is many words: a share of those would be misleading.
        0 => format!("{} hit", number::things(memory.buffer_hits, "page")),
        _ => {
            let share = memory.buffer_hits as f64 / memory.stores.max(1) as f64;
            format!("{} of stores hit", number::share(share))
        }
    };
    let mut parts = vec![keep(&hits)];
    parts.push(keep(&format!("{} copied to the buffer", number::things(memory.copied_pages, "page"))));
    let rate = number::per_second(memory.flushed_pages as f64 / run.simulated_s);
    let mut flushed = format!("{} flushed ({rate}", number::count(memory.flushed_pages));
    if run.transaction.count > 0 {
        let each = memory.flushed_pages as f64 / run.transaction.count as f64;
        flushed += &format!(", {} a transaction", number::three(each));
    }
    parts.push(keep(&format!("{flushed})")));
    parts.join(", ")
}

/// The shares of the time of a memory, in one line.
fn time(split: &TimeSplit) -> String {
    let parts = [
        ("read", split.read),
        ("write and copy", split.write),
        ("flush", split.flush),
        ("clean", split.clean),
        ("level wear", split.wear),
        ("erase", split.erase),
        ("idle or waiting to resume", split.idle),
    ];
    let part = |(name, share): (&str, f64)| keep(&format!("{name} {}", number::share(share)));
    parts.map(part).join(", ")
}

/// The columns of the latency table.
pub(super) fn latencies(op: &OpResult) -> [f64; 7] {
    let latency = &op.latency;
    let whole =
        [latency.p50_ns, latency.p95_ns, latency.p99_ns, latency.p99_9_ns, latency.p99_99_ns, latency.max_ns];
    let [p50, p95, p99, p99_9, p99_99, max] = whole.map(|ns| ns as f64);
    [latency.mean_ns, p50, p95, p99, p99_9, p99_99, max]
}

/// Prevents line breaks inside the text.
fn keep(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// Lines of at most `width` characters, broken at spaces (also at runs of spaces).
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() || line.chars().count() + 1 + word.chars().count() <= width {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines
}

#[cfg(test)]
mod tests;
