//! The command line: every verb and option. Parsing only.

mod choose;
mod cut;
mod fit;
mod heap;
mod log;
mod probe;
mod pts;
mod reproduce;
mod serve;
mod stack;

pub use choose::Choose;
pub use cut::Cut;
pub use fit::Fit;
pub use heap::{HeapBench, HeapVerb};
pub use log::{FoundFiles, LogFiles, LogVerb};
pub use probe::Probe;
pub use pts::Pts;
pub use reproduce::Reproduce;
pub use serve::Serve;
pub use stack::Stack;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use nvlab_lab::sweep::Shard;
use nvlab_report::Format;
use nvlab_run::Preparation;
use nvlab_run::plan::Until;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  nvlab run ssd-tlc -w 'zipf read=70% qd=32'               a built-in design, a generated workload
  nvlab run ssd-tlc -w web.csv.gz:msr -s ftl.spare=20%     a recorded trace, one value changed
  nvlab compare ssd-tlc ssd-qlc mine.toml -w db.fio        three designs, a fio job file
  nvlab design new mine.toml                               a commented design file to edit

More: nvlab VERB --help; nvlab explain lists keys, metrics, workloads and formats";

/// The command.
#[derive(Parser)]
#[command(
    name = "nvlab",
    version,
    about = "A laboratory for non-volatile storage designs",
    long_about = "Describe a storage design in a TOML file, point it at a workload, and learn its speed, write \
                  amplification, lifetime and price. Compare it with others.",
    after_help = EXAMPLES,
    subcommand_required = true,
    arg_required_else_help = true,
    propagate_version = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Print one JSON document on stdout (same as --format json)
    #[arg(long, global = true)]
    pub json: bool,
    /// Output format on stdout [default: human]
    #[arg(long, global = true, value_enum, value_name = "FMT", env = "NVLAB_FORMAT", hide_env_values = true)]
    pub format: Option<FormatName>,
    /// Store results under DIR
    #[arg(
        short = 'o',
        long = "out",
        global = true,
        value_name = "DIR",
        default_value = "runs",
        env = "NVLAB_OUT",
        hide_env_values = true
    )]
    pub out: PathBuf,
    /// Number of parallel runs [default: one per core]
    #[arg(
        short = 'j',
        long,
        global = true,
        value_name = "N",
        env = "NVLAB_JOBS",
        hide_env_values = true,
        value_parser = clap::value_parser!(u32).range(1..=4096)
    )]
    pub jobs: Option<u32>,
    /// Cache preconditioned devices in DIR [default: nvlab in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, global = true, value_name = "DIR", env = "NVLAB_CACHE", hide_env_values = true)]
    pub cache: Option<PathBuf>,
    /// Size limit of that cache; the least recently used devices are evicted
    #[arg(
        long,
        global = true,
        value_name = "SIZE",
        default_value = "4 GiB",
        env = "NVLAB_CACHE_SIZE",
        hide_env_values = true,
        value_parser = size
    )]
    pub cache_size: u64,
    /// Do not use or fill the cache of preconditioned devices and converted traces
    #[arg(long, global = true)]
    pub no_cache: bool,
    /// Print less on stderr; twice: errors only
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub quiet: u8,
    /// Print more on stderr
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// When to use colour (NO_COLOR and CLICOLOR_FORCE are obeyed)
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: When,
    /// Hide progress (a bar if stderr is a terminal, otherwise a line every 30 s)
    #[arg(
        long,
        global = true,
        env = "NVLAB_NO_PROGRESS",
        hide_env_values = true,
        value_parser = clap::builder::FalseyValueParser::new(),
        action = ArgAction::SetTrue
    )]
    pub no_progress: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    Human,
    Json,
    Jsonl,
    Csv,
    Md,
}

impl FormatName {
    pub fn format(self) -> Format {
        match self {
            FormatName::Human => Format::Human,
            FormatName::Json => Format::Json,
            FormatName::Jsonl => Format::JsonLines,
            FormatName::Csv => Format::Csv,
            FormatName::Md => Format::Markdown,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    Auto,
    Always,
    Never,
}

#[derive(Subcommand)]
pub enum Verb {
    /// Simulate one design under one workload
    Run(Run),
    /// Simulate several designs under the same workload and compare them
    Compare(Compare),
    /// Simulate every point of a parameter space
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(Sweep),
    /// Find the design of a drive from its published figures: a data sheet, a review
    #[command(after_help = fit::EXAMPLES)]
    Fit(Fit),
    /// Measure a real drive with short jobs of fio, for `fit`
    #[command(after_help = probe::EXAMPLES)]
    Probe(Probe),
    /// Find the best design that meets requirements: free keys, needs, goals
    #[command(after_help = choose::EXAMPLES)]
    Choose(Choose),
    /// Run SNIA's performance test specification on a design: IOPS, throughput, latency, write saturation
    Pts(Pts),
    /// Serve a design to real programs: as a block device (NBD, FUSE) or as memory
    Serve(Serve),
    /// Cut the power of a served device while a program uses it, many times, and check what survives
    Cut(Cut),
    /// Run tools (mkfs, mtools, fsck) on an image stored on a simulated device
    Image(Image),
    /// Inspect, check, recover or salvage a log or segment of recoverable memory
    #[command(subcommand)]
    Log(LogVerb),
    /// Inspect, check or compact a heap of persistent objects, or measure what heaps cost
    #[command(subcommand)]
    Heap(HeapVerb),
    /// Inspect, convert or generate traces
    #[command(subcommand)]
    Trace(Trace),
    /// List, show, check, compare or create designs
    #[command(subcommand)]
    Design(DesignVerb),
    /// List the built-in parts, or show one with the source of every number
    Parts {
        #[command(subcommand)]
        verb: Option<Parts>,
    },
    /// Make a self-contained HTML report from results
    Report(Report),
    /// Compare the claims of a paper with simulated results
    Reproduce(Reproduce),
    /// Explain a design key, a metric or a topic (workloads, formats, exit codes, ...)
    Explain {
        /// E.g. ftl.clean.kind | waf | workloads | formats | exit-codes [default: list them]
        topic: Option<String>,
    },
    /// Measure the cost of each software layer between a program and the device on this machine
    Stack(Stack),
    /// Report what this machine supports (cores, memory, FUSE, userfaultfd, Python)
    Doctor,
    /// Print shell completions
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Write man pages to DIR
    #[command(hide = true)]
    Man {
        /// The folder
        dir: PathBuf,
    },
    /// Measure the simulator itself
    #[command(hide = true)]
    Bench(Bench),
    /// Check the simulator against closed forms
    #[command(hide = true)]
    CheckTheory,
}

/// Options that run and compare share.
#[derive(Args)]
pub struct Simulation {
    /// Workload: 'KIND key=value ...' | TRACE[:FORMAT] | FILE.fio[:JOB] (nvlab explain workloads);
    /// repeatable: several workloads run at the same time
    #[arg(short = 'w', long, value_name = "WORKLOAD")]
    pub workload: Vec<String>,
    /// Change one design value, e.g. --set ftl.clean.kind=greedy (repeatable)
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of the measured run; repetitions use the seeds that follow. Preconditioning has a seed of its own
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Stop after simulated time, requests or data: 60 s | 1e6 io | 2 TiB (read and written) | 3 x capacity
    /// (written); or when a metric has converged: 2% (write amplification) | 'write.p99 within 5%'
    /// [default: the end of the workload, or 1 x capacity, or 1e6 io if it hardly writes]
    #[arg(long, value_name = "LIMIT")]
    pub until: Option<Until>,
    /// State of the device before the run: fresh | full | scattered | log-full | steady, with optional suffixes
    /// ,fill=30% ,span=30% ,idle=10s ,twin=no ,seed=N (nvlab explain steady-state)
    #[arg(long, default_value = "steady", value_name = "STATE")]
    pub precondition: Preparation,
    /// Run again even if the result of the same run exists
    #[arg(long)]
    pub force: bool,
    /// Write a self-contained HTML report to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Args)]
pub struct Run {
    /// Design: NAME | FILE.toml (nvlab design list)
    pub design: String,
    #[command(flatten)]
    pub simulation: Simulation,
    /// Repeat with N seeds, each on a freshly preconditioned device; report mean and 95 % interval
    #[arg(short = 'n', long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// Print only these metrics, e.g. -m iops,write.p99,waf
    #[arg(short = 'm', long, value_delimiter = ',', value_name = "LIST")]
    pub metrics: Vec<String>,
    /// Exit with status 1 unless EXPR holds, e.g. --assert 'waf < 2.5' (repeatable)
    #[arg(long = "assert", value_name = "EXPR")]
    pub asserts: Vec<String>,
    /// Write a timeline of the run to FILE, in Chrome's trace event format (ui.perfetto.dev)
    #[arg(long, value_name = "FILE", conflicts_with = "repeat")]
    pub timeline: Option<PathBuf>,
    /// Serve a live page at http://HOST:PORT/ to watch, slow down and change the run. It starts in real time;
    /// the result is not stored
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["repeat", "force"])]
    pub http: Option<String>,
    /// Let --http listen on addresses that other machines can reach
    #[arg(long, requires = "http")]
    pub allow_remote: bool,
}

#[derive(Args)]
pub struct Compare {
    /// Two or more designs; the first is the baseline. NAME or FILE.toml, with changes after commas, e.g.
    /// ssd-tlc,ftl.clean.kind=fifo,ftl.spare=20%
    #[arg(required = true, num_args = 2.., value_name = "DESIGN")]
    pub designs: Vec<String>,
    #[command(flatten)]
    pub simulation: Simulation,
    /// Repeat with N seeds, each on a freshly preconditioned device; differences inside the 95 % interval are
    /// marked "same"
    #[arg(short = 'n', long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// Metrics (columns) to show, e.g. -m iops,write.p99,waf,price
    #[arg(short = 'm', long, value_delimiter = ',', value_name = "LIST")]
    pub metrics: Vec<String>,
    /// Write the table to FILE as Parquet, in base units
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// Name designs only by what differs in CSV, JSON and Parquet too: fifo for ssd-tlc ftl.clean.kind=fifo
    #[arg(long)]
    pub short_names: bool,
    /// Exit with status 1 if EXPR holds for any design, e.g. --fail-if 'write.p99 > 5 ms'; relative to the
    /// baseline: --fail-if 'waf > +5 %' (repeatable)
    #[arg(long, value_name = "EXPR")]
    pub fail_if: Vec<String>,
}

const SWEEP_EXAMPLES: &str = "\
Examples:
  nvlab sweep spare.toml                                    a sweep file (nvlab explain sweeps)
  nvlab sweep ssd-tlc -w 'uniform qd=32' -p 'ftl.spare=7%..28%:7%' -p ftl.clean.kind=greedy,fifo
  nvlab sweep spare.toml --shard 1/2 -o a                   half of the points; on another machine --shard 2/2 -o b
  nvlab sweep spare.toml --from a --from b                  the table of both halves";

#[derive(Args)]
pub struct Sweep {
    /// Sweep file; or, with -w, a design: NAME | FILE.toml
    pub file: String,
    /// Axis: KEY=V1,V2,... | KEY=LO..HI:STEP | KEY=LO..HI*FACTOR (repeatable)
    #[arg(short = 'p', long = "param", value_name = "AXIS", requires = "workload")]
    pub params: Vec<String>,
    /// Workload for a design given by name; a pattern such as 'fleet/*.csv' makes one point per trace
    #[arg(short = 'w', long, value_name = "WORKLOAD")]
    pub workload: Option<String>,
    /// Change one design value at every point, e.g. --set ftl.clean.kind=greedy (repeatable)
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// With -w: seed of every random choice [default: 1]
    #[arg(long, value_name = "N", requires = "workload")]
    pub seed: Option<u64>,
    /// When to stop, as for run [default: as in the sweep file]
    #[arg(long, value_name = "LIMIT")]
    pub until: Option<Until>,
    /// State of the device before each run, as for run [default: as in the sweep file, else steady]
    #[arg(long, value_name = "STATE")]
    pub precondition: Option<Preparation>,
    /// Metrics (columns and curves) to show, e.g. -m iops,write.p99,waf,price
    #[arg(short = 'm', long, value_delimiter = ',', value_name = "LIST")]
    pub metrics: Vec<String>,
    /// Two or three metrics for the Pareto front, e.g. --front price.gib,read.p99 [default: price, lifetime and p99]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub front: Vec<String>,
    /// Run only shard I of N and store its results; a later run without this option makes the table
    #[arg(long, value_name = "I/N", env = "NVLAB_SHARD", hide_env_values = true)]
    pub shard: Option<Shard>,
    /// Also use the results in DIR, e.g. of shards that ran on another machine (repeatable)
    #[arg(long, value_name = "DIR")]
    pub from: Vec<PathBuf>,
    /// Run the points on a cluster: dask (local, one process per core) | dask:tcp://HOST:PORT
    #[arg(long, value_name = "CLUSTER", conflicts_with_all = ["shard", "force"])]
    pub on: Option<String>,
    /// Print the points and which of them are done; run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Run points again even if their results exist
    #[arg(long)]
    pub force: bool,
    /// HTML page to write; replaced if it exists [default: sweep-NAME.html under --out]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum Trace {
    /// Summarize a trace: footprint, read/write mix, sizes, skew, interarrival times
    Info {
        /// TRACE[:FORMAT], optionally with volume=NAME
        trace: String,
    },
    /// Convert between formats; counts the requests and fields that the target format cannot express
    Convert {
        /// TRACE[:FORMAT]
        from: String,
        /// FILE[:FORMAT]; the extension selects the format, and .gz or .zst the compression; must not exist
        to: String,
        /// Only these volumes
        #[arg(long, value_delimiter = ',', value_name = "LIST")]
        volumes: Vec<String>,
    },
    /// Write each volume to a separate file
    Split {
        /// TRACE[:FORMAT]
        from: String,
        /// Folder for the files VOLUME.FORMAT or volume=VOLUME/part-0.parquet; none of them may exist
        dir: PathBuf,
        /// Extension of the files; selects format and compression (msr.gz). With parquet, times stay relative to the
        /// whole trace and the folder can be read as one trace
        #[arg(long, default_value = "nvt", value_name = "EXTENSION")]
        extension: String,
    },
    /// Print the first requests
    Head {
        /// TRACE[:FORMAT]
        trace: String,
        /// Number of requests
        #[arg(short = 'n', default_value_t = 10, value_name = "N")]
        count: usize,
    },
    /// Write a generated workload as a trace
    Make {
        /// 'KIND key=value ...'
        workload: String,
        /// FILE[:FORMAT]; must not exist
        to: String,
        /// Capacity of the device it is generated for
        #[arg(long, default_value = "16 GiB", value_name = "SIZE", value_parser = size)]
        capacity: u64,
        /// Maximum number of requests
        #[arg(short = 'n', long, default_value = "1M", value_name = "N", value_parser = count)]
        requests: u64,
        /// Seed of every random choice
        #[arg(long, default_value_t = 1, value_name = "N")]
        seed: u64,
    },
}

const IMAGE_EXAMPLES: &str = "\
After each command, the blocks it changed in the file are written to the device, and the file is read back from it.

Examples:
  nvlab image hftl-fsms vol.img --size 8MiB 'mkfs.vfat -F 12 $NVLAB_IMAGE' 'mcopy -i $NVLAB_IMAGE README.md ::'";

#[derive(Args)]
#[command(after_help = IMAGE_EXAMPLES)]
pub struct Image {
    /// Design: NAME | FILE.toml (nvlab design list)
    pub design: String,
    /// Image file, $NVLAB_IMAGE in the commands; created if missing
    pub file: PathBuf,
    /// Commands; each is passed to sh -c
    #[arg(required = true, value_name = "COMMAND")]
    pub commands: Vec<String>,
    /// Size of a new image [default: the capacity of the device]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
    /// Cut the power after each command, before the image is read back
    #[arg(long)]
    pub cut: bool,
    /// Change one design value, e.g. --set ftl.route.update=journal (repeatable)
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
}

fn size(text: &str) -> Result<u64, String> {
    nvlab_units::quantity::bytes(text).map_err(|error| error.to_string())
}

fn count(text: &str) -> Result<u64, String> {
    nvlab_units::quantity::count(text).map_err(|error| error.to_string())
}

#[derive(Subcommand)]
pub enum DesignVerb {
    /// List the built-in designs
    List,
    /// Show a design with every default filled in, and the origin of each value
    Show {
        /// NAME | FILE.toml
        design: String,
        /// Change one design value (repeatable)
        #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
    /// Check design files: report every error in every file, run nothing
    Check {
        /// FILE.toml | NAME
        #[arg(required = true)]
        files: Vec<String>,
    },
    /// Show the differences between two designs, defaults filled in
    Diff {
        /// NAME | FILE.toml, with changes after commas
        a: String,
        /// NAME | FILE.toml, with changes after commas
        b: String,
    },
    /// Scale a drive to another capacity: dies, memory, buffer, map and checkpoints together
    Scale {
        /// NAME | FILE.toml, with changes after commas
        design: String,
        /// Capacity the host sees: 1TB | 960GB | 2TiB
        #[arg(value_parser = size)]
        capacity: u64,
        /// The file to write; must not exist [default: print it]
        file: Option<PathBuf>,
    },
    /// Write a commented design file to start from
    New {
        /// The file to write; must not exist
        file: PathBuf,
        /// Start from this built-in design
        #[arg(long, value_name = "NAME")]
        from: Option<String>,
        /// Not a design, but the figures of a drive, from which `nvlab fit` finds one
        #[arg(long, conflicts_with = "from")]
        figures: bool,
    },
    /// Print the JSON Schema of design files (for editors)
    Schema,
}

#[derive(Subcommand)]
pub enum Parts {
    /// List the built-in parts
    List,
    /// Show one part: every number with its source
    Show {
        /// NAME | FILE.toml
        name: String,
    },
}

#[derive(Args)]
pub struct Report {
    /// Result directories of run and compare; or a finished sweep: its folder or its table (.parquet)
    #[arg(required_unless_present = "schema")]
    pub runs: Vec<PathBuf>,
    /// File to write; replaced if it exists
    #[arg(long, default_value = "report.html", value_name = "FILE")]
    pub html: PathBuf,
    /// Open it in the browser
    #[arg(long)]
    pub open: bool,
    /// Print the JSON Schema of results instead (result.json, run --json, compare --json)
    #[arg(long, conflicts_with_all = ["runs", "html", "open"])]
    pub schema: bool,
}

#[derive(Args)]
pub struct Bench {
    /// The designs to measure
    pub designs: Vec<String>,
    /// Smoke test: shows that it works, not how fast it is
    #[arg(long)]
    pub smoke: bool,
    /// Measure the designs served over NBD, in memory, with --time fast [default: every built-in design]
    #[arg(long, conflicts_with_all = ["requests", "depth", "only"])]
    pub served: bool,
    /// Number of requests of each kind
    #[arg(long, default_value = "20M", value_name = "N", value_parser = count)]
    pub requests: u64,
    /// Requests in flight
    #[arg(long, default_value_t = 32, value_name = "N")]
    pub depth: u32,
    /// Only this operation
    #[arg(long, value_name = "OP", value_parser = ["write", "read"])]
    pub only: Option<String>,
}
