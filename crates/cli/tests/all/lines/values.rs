//! Values for options and arguments: legal ones, those at the limits of what is allowed, and garbage.

use nvlab_design::keys::{self, Key};
use nvlab_design::toml_reader::datum::Shape;
use nvlab_units::Rng;

/// Draws values.
#[derive(Debug)]
pub struct Values {
    keys: Vec<&'static Key>,
}

/// Designs: small built-in ones, existing files, and names that are none.
const DESIGNS: [&str; 19] = [
    "bench-4g",
    "bench-4g",
    "hftl",
    "hftl-fsms",
    "lbftl",
    "lbftl-fsms",
    "envy-128m",
    "s3c2413",
    "ssd-tlc",
    "tlc-pslc",
    "mlc-bast",
    "fusion-fast",
    "rvm-flash",
    "rvm-hybrid",
    "mine.toml",
    "mine.toml",
    "broken.toml",
    "missing.toml",
    "folder",
];
const MEDIA: [&str; 9] = ["tlc", "dram", "nand", "mlc", "slc", "flash", "sram", "pram", "other"];
const FILES: [&str; 11] = [
    "mine.toml",
    "notes.txt",
    "trace.csv",
    "job.fio",
    "image.bin",
    "kept",
    "folder",
    "new.file",
    "folder/new.file",
    "missing/new.file",
    "runs",
];
const WORKLOADS: [&str; 21] = [
    "uniform",
    "uniform bs=8KiB threads=3 qd=2",
    "zipf read=50% qd=4",
    "sequential bs=1MiB",
    "hotcold hot=10/90 rate=10k/s",
    "selfsimilar bs=64KiB qd=32",
    "jesd219 read=40% span=50%",
    "shuffled bs=16KiB",
    "uniform read=30% trim=10% flush=7 fua=10%",
    "uniform bs=512B rate=1M/s arrivals=regular",
    "tpca branches=1 accounts=100",
    "debit-credit accounts=100 until=200transactions",
    "compiler files=5",
    "iozone mode=write record=4KiB file=1MiB",
    "logger record=200B rate=1/s until=100records",
    "tpcc",
    "trace.csv:msr",
    "trace.csv:msr compact first=1s",
    "job.fio",
    "job.fio:writer",
    "trace.csv",
];
const GARBAGE: [&str; 22] = [
    "",
    " ",
    "-",
    "--",
    "0",
    "-1",
    "1e99",
    "18446744073709551616",
    "4294967296",
    "nan",
    "inf",
    "%",
    "1 %",
    "\u{fc}\u{1f600}",
    "a=b=c",
    "./",
    "[",
    "\"",
    "{}",
    "'x'",
    "\t",
    "24 h",
];

/// Garbage.
pub fn garbage(rng: &mut Rng) -> String {
    pick(rng, &GARBAGE)
}

fn pick(rng: &mut Rng, of: &[&str]) -> String {
    of[rng.below(of.len() as u64) as usize].to_string()
}

/// Options that keep a simulation short, placed before all others: of repeated ones the last counts, or is refused.
pub fn always(verb: &str) -> &'static [(&'static str, &'static str)] {
    match verb {
        "run" | "compare" => &[("--until", "LIMIT"), ("--precondition", "STATE"), ("--workload", "WORKLOAD")],
        "sweep" => &[("--until", "LIMIT"), ("--precondition", "STATE")],
        "cut" => &[("--cuts", "N")],
        "reproduce" => &[("--only", "LIST")],
        _ => &[],
    }
}

/// True for what a line may change or replace, according to the help.
pub fn is_output(verb: &str, option: &str, value: &str) -> bool {
    matches!(option, "--html" | "--timeline" | "--out" | "--save" | "--state")
        || (verb, option, value) == ("image", "", "FILE")
}

impl Values {
    pub fn new() -> Values {
        Values { keys: keys::all().collect() }
    }

    /// A value for an option (or an argument, without a name) that the help calls `what`.
    pub fn of(&self, rng: &mut Rng, option: &str, what: &str) -> String {
        if rng.chance(0.05) {
            return garbage(rng);
        }
        match (option, what) {
            ("--set", _) => self.set(rng),
            ("--only", _) => pick(rng, &["fig06", "fig99", "fig06,fig06", ","]),
            ("--until", _) => {
                pick(rng, &["100 io", "2000 io", "1 ms", "10 us", "4 MiB", "1e-6 x capacity", "1 io", "0 io"])
            }
            ("--precondition", _) => {
                pick(rng, &["fresh", "fresh", "fresh", "fresh", "fresh", "fresh", "fresh", "full"])
            }
            ("--assert", _) => {
                pick(rng, &["waf < 9", "iops > 1k", "write.p99 <= 1 ms", "waf ~ 1", "x < 1", "waf <"])
            }
            ("--metrics", _) => pick(rng, &["iops", "iops,waf", "write.p99", "price,", "nothing"]),
            ("--repeat" | "--cuts" | "--requests" | "--jobs", _) => pick(rng, &["1", "2", "3", "0", "1M"]),
            ("--check", _) => pick(rng, &["device", "program", "program=notes.txt", "fs=ext4", "fs=none"]),
            ("--tls", _) => pick(rng, &["off", "on", "require", "maybe"]),
            ("--time", _) => pick(rng, &["fast", "fast", "real", "x2", "x0"]),
            ("--size" | "--capacity" | "--resident", _) => {
                pick(rng, &["1 MiB", "64 KiB", "0 B", "3 B", "16 EiB", "4 KiB"])
            }
            ("--nbd", _) => pick(
                rng,
                &["nbd.sock", "localhost:0", "mine.toml", "folder", "missing/nbd.sock", "nowhere:x"],
            ),
            ("--control", _) => pick(rng, &["control.sock", "notes.txt", "folder", "missing/c.sock"]),
            ("--http" | "--nvme", _) => pick(rng, &["localhost:0", "0.0.0.0:0", "localhost", "notes.txt"]),
            (_, "AXIS") => pick(
                rng,
                &["ftl.spare=10%,30%", "ftl.spare=10..30:10", "ftl.clean.kind=fifo", "ftl.spare", "x=1..0:1"],
            ),
            (_, "I/N") => pick(rng, &["1/2", "2/2", "1/1", "3/2", "0/0"]),
            (_, "DESIGN" | "A" | "B" | "DESIGNS") => self.design(rng),
            (_, "WORKLOAD") => pick(rng, &WORKLOADS),
            (_, "TRACE" | "FROM") => {
                pick(rng, &["trace.csv", "trace.csv:msr", "trace.csv:nvt", "notes.txt", "missing.csv"])
            }
            (_, "TO") => pick(
                rng,
                &[
                    "new.nvt",
                    "new.csv:msr",
                    "new.csv.gz:alibaba",
                    "mine.toml",
                    "trace.csv:msr",
                    "missing/new.nvt",
                ],
            ),
            (_, "FILES") => pick(rng, &["mine.toml", "broken.toml", "ssd-tlc", "missing.toml", "folder"]),
            (_, "FILE" | "DIR" | "PATH") => pick(rng, &FILES),
            (_, "RUNS") => pick(rng, &["kept", "kept/one", "runs", "folder", "missing", "notes.txt"]),
            (_, "COMMAND") => pick(rng, &["true", "false", "cat $NVLAB_IMAGE > /dev/null", "exit 3"]),
            (_, "NAME") => pick(rng, &["ssd-tlc", "tlc-2022", "dram", "disk-7200", "mine.toml", "nothing"]),
            (_, "SEED") if option.is_empty() => pick(rng, &["000", "999", "folder", "folder/", "missing/"]),
            (_, "TOPIC") => self.topic(rng),
            (_, "SHELL") => pick(rng, &["bash", "zsh", "fish", "sh"]),
            (_, "FMT") => pick(rng, &["human", "json", "jsonl", "csv", "md", "xml"]),
            (_, "WHEN") => pick(rng, &["auto", "always", "never"]),
            (_, "N") => pick(rng, &["0", "1", "7", "18446744073709551615", "1000"]),
            _ => garbage(rng),
        }
    }

    /// A design, now and then with changes after commas.
    fn design(&self, rng: &mut Rng) -> String {
        let mut design = pick(rng, &DESIGNS);
        while rng.chance(0.2) {
            design = format!("{design},{}", self.set(rng));
        }
        design
    }

    fn topic(&self, rng: &mut Rng) -> String {
        match rng.below(3) {
            0 => pick(rng, &["waf", "workloads", "formats", "exit-codes", "wafff", "ftl", "media"]),
            _ => self.keys[rng.below(self.keys.len() as u64) as usize].path.to_string(),
        }
    }

    /// `KEY=VALUE`: most keys exist, most values have the shape their key wants.
    fn set(&self, rng: &mut Rng) -> String {
        let key = self.keys[rng.below(self.keys.len() as u64) as usize];
        let path = match key.path.strip_prefix("media.*") {
            Some(rest) => format!("media.{}{rest}", pick(rng, &MEDIA)),
            None => key.path.to_string(),
        };
        let value = match rng.below(10) {
            0 => garbage(rng),
            1..4 => key.example.trim_matches('"').to_string(),
            _ => value(rng, key.shape),
        };
        match rng.below(40) {
            0 => format!("{path}x={value}"),
            1 => path,
            _ => format!("{path}={value}"),
        }
    }
}

/// A value of a shape, mostly near its limits.
fn value(rng: &mut Rng, shape: Shape) -> String {
    const SIZES: [&str; 12] = [
        "0 B",
        "1 B",
        "7 B",
        "512 B",
        "4 KiB",
        "4097 B",
        "1 MiB",
        "3 GB",
        "1 TiB",
        "12 TB",
        "16 EiB",
        "18446744073709551615 B",
    ];
    const TIMES: [&str; 9] = ["0 ns", "1 ps", "1 ns", "60 us", "5 ms", "3 s", "24 h", "25 h", "213 d"];
    match shape {
        Shape::Size { min, max } if rng.chance(0.4) => {
            let bytes = [min, max, min.saturating_sub(1), max.saturating_add(1), min.saturating_mul(2)];
            format!("{} B", bytes[rng.below(5) as usize])
        }
        Shape::Size { .. } => pick(rng, &SIZES),
        Shape::SizeShareOrNone => {
            if rng.chance(0.3) {
                pick(rng, &["none", "0 %", "7 %", "250 %", "1e-9 %"])
            } else {
                pick(rng, &SIZES)
            }
        }
        Shape::Time => pick(rng, &TIMES),
        Shape::TimeOrNone => {
            if rng.chance(0.3) {
                "none".into()
            } else {
                pick(rng, &TIMES)
            }
        }
        Shape::Times => {
            pick(rng, &["1 us", "[\"1 us\", \"2 us\"]", "[\"24 h\"]", "[]", "[\"0 ns\", \"0 ns\", \"0 ns\"]"])
        }
        Shape::Share { .. } => pick(
            rng,
            &["0 %", "1e-9", "0.5", "50 %", "99 %", "99.99 %", "1", "100 %", "101 %", "-1 %", "1e-300"],
        ),
        Shape::Count { min, max } => {
            let small = 1u64 << rng.below(12);
            let counts =
                [min, max, min + 1, min.saturating_sub(1), max.saturating_add(1), max - 1, small, small + 1];
            counts[rng.below(8) as usize].to_string()
        }
        Shape::Rate => {
            pick(rng, &["1 B/s", "1 kB/s", "30 ns/B", "700 MB/s", "1e18 B/s", "7 s/B", "0 B/s", "16 EiB/s"])
        }
        Shape::Price => pick(rng, &["0 USD/GiB", "0.06 USD/GiB", "1e300 USD/B", "5 EUR/GiB", "-1 USD/GiB"]),
        Shape::Text => {
            pick(rng, &["text", "10/90", "no", "tlc-2022", "./part.toml", "../x", "builtin:hftl", "0/100"])
        }
        Shape::Flag => pick(rng, &["true", "false", "yes"]),
        Shape::OneOf(names) => names[rng.below(names.len() as u64) as usize].0.to_string(),
        Shape::Medium => pick(rng, &MEDIA),
    }
}
