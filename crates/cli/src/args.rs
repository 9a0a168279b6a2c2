//! The command line: every verb and option. Parsing only.

mod choose;
mod cut;
mod fit;
mod heap;
mod log;
mod pts;
mod reproduce;
mod serve;
mod stack;

pub use choose::Choose;
pub use cut::Cut;
pub use fit::Fit;
pub use heap::{HeapBench, HeapVerb};
pub use log::{FoundFiles, LogFiles, LogVerb};
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
  nvlab design new mine.toml                               a design of your own to start from

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
    /// Keep results under DIR
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
    /// Runs in parallel [default: one for each core]
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
    /// Keep prepared devices in DIR [default: nvlab in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, global = true, value_name = "DIR", env = "NVLAB_CACHE", hide_env_values = true)]
    pub cache: Option<PathBuf>,
    /// All prepared devices together take at most this; those not used for longest go
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
    /// Neither use nor keep prepared devices and converted traces
    #[arg(long, global = true)]
    pub no_cache: bool,
    /// Say less on stderr; twice: errors only
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub quiet: u8,
    /// Say more on stderr
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// When to use colour (NO_COLOR and CLICOLOR_FORCE are obeyed)
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: When,
    /// Hide progress: the bar on a terminal's stderr, or elsewhere a line every 30 s
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
    /// Simulate several designs under the same workload, side by side
    Compare(Compare),
    /// Simulate every point of a parameter space
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(Sweep),
    /// Find the design of a drive from what is said of it: a data sheet, a review
    #[command(after_help = fit::EXAMPLES)]
    Fit(Fit),
    /// Find the best design that meets requirements: keys that are free, needs, goals
    #[command(after_help = choose::EXAMPLES)]
    Choose(Choose),
    /// Test a design as SNIA's performance test specification does: IOPS, throughput, latency, write saturation
    Pts(Pts),
    /// Serve a design to a program: its loads and stores are real, the memory behind them is simulated
    Serve(Serve),
    /// Cut the power of a served device under a program, many times, and check what survives
    Cut(Cut),
    /// Let tools (mkfs, mtools, fsck) work on an image that a simulated device holds
    Image(Image),
    /// Look into a log or segment of recoverable memory, recover it, or keep what a damaged one still has
    #[command(subcommand)]
    Log(LogVerb),
    /// Look into a heap of persistent objects, shrink it, or measure what heaps cost
    #[command(subcommand)]
    Heap(HeapVerb),
    /// Look at, convert or make traces
    #[command(subcommand)]
    Trace(Trace),
    /// List, show, check, compare or start designs
    #[command(subcommand)]
    Design(DesignVerb),
    /// List the built-in parts, or show one with the source of every number
    Parts {
        #[command(subcommand)]
        verb: Option<Parts>,
    },
    /// Make a self-contained HTML report from results
    Report(Report),
    /// Compare the claims of a paper with what is measured
    Reproduce(Reproduce),
    /// Explain a design key, a metric, workloads, formats or exit codes
    Explain {
        /// E.g. ftl.clean.kind | waf | workloads | formats | exit-codes [default: list them]
        topic: Option<String>,
    },
    /// Measure on this machine what each layer of software above an instant device costs
    Stack(Stack),
    /// Say what this machine can do (cores, memory, FUSE, userfaultfd, Python)
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

/// What run and compare have in common.
#[derive(Args)]
pub struct Simulation {
    /// Workload: 'KIND key=value ...' | TRACE[:FORMAT] | FILE.fio[:JOB] (nvlab explain workloads);
    /// repeated: they run together
    #[arg(short = 'w', long, value_name = "WORKLOAD")]
    pub workload: Vec<String>,
    /// Change one design value, e.g. --set ftl.clean.kind=greedy (repeatable)
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of what is measured; further runs take the following seeds. The device's preparation has its own
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Stop after simulated time, requests, or data: 60 s | 1e6 io | 2 TiB (read and written) | 3 x capacity
    /// (written), or when a figure is known so exactly: 2% (write amplification) | 'write.p99 within 5%'
    /// [default: the end of the workload, or 1 x capacity, or 1e6 io if it hardly writes]
    #[arg(long, value_name = "LIMIT")]
    pub until: Option<Until>,
    /// Bring the device to a known state first: fresh | full | scattered | log-full | steady, with ,fill=30% ,span=30%
    /// ,idle=10s ,twin=no ,seed=N after it (nvlab explain steady-state)
    #[arg(long, default_value = "steady", value_name = "STATE")]
    pub precondition: Preparation,
    /// Run again even if the same run is among the results
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
    /// Repeat with N seeds, each on a device prepared anew, and report mean and 95 % interval
    #[arg(short = 'n', long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// Print these metrics only, as compare does, e.g. -m iops,write.p99,waf
    #[arg(short = 'm', long, value_delimiter = ',', value_name = "LIST")]
    pub metrics: Vec<String>,
    /// Exit with 1 unless true, e.g. --assert 'waf < 2.5' (repeatable)
    #[arg(long = "assert", value_name = "EXPR")]
    pub asserts: Vec<String>,
    /// Write the run over time to FILE, for ui.perfetto.dev and other readers of Chrome's trace events
    #[arg(long, value_name = "FILE", conflicts_with = "repeat")]
    pub timeline: Option<PathBuf>,
    /// A live page at http://HOST:PORT/ to watch, slow down and change the run; it begins in real time, and its result is not kept
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["repeat", "force"])]
    pub http: Option<String>,
    /// Let --http listen on addresses that other machines can reach
    #[arg(long, requires = "http")]
    pub allow_remote: bool,
}

#[derive(Args)]
pub struct Compare {
    /// Two or more designs, the first is the baseline: NAME or FILE.toml, with changes after commas as in
    /// ssd-tlc,ftl.clean.kind=fifo,ftl.spare=20%
    #[arg(required = true, num_args = 2.., value_name = "DESIGN")]
    pub designs: Vec<String>,
    #[command(flatten)]
    pub simulation: Simulation,
    /// Repeat with N seeds, each on a device prepared anew; differences inside the 95 % interval are marked "same"
    #[arg(short = 'n', long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// Metrics (columns) to show, e.g. -m iops,write.p99,waf,price
    #[arg(short = 'm', long, value_delimiter = ',', value_name = "LIST")]
    pub metrics: Vec<String>,
    /// Write the table to FILE as Parquet, in base units
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// In CSV, JSON and Parquet too, name designs only by what differs: fifo for ssd-tlc ftl.clean.kind=fifo
    #[arg(long)]
    pub short_names: bool,
    /// Exit with 1 if true of a design, e.g. --fail-if 'write.p99 > 5 ms'; beside the first design:
    /// --fail-if 'waf > +5 %' (repeatable)
    #[arg(long, value_name = "EXPR")]
    pub fail_if: Vec<String>,
}

const SWEEP_EXAMPLES: &str = "\
Examples:
  nvlab sweep spare.toml                                    a file with axes (nvlab explain sweeps)
  nvlab sweep ssd-tlc -w 'uniform qd=32' -p 'ftl.spare=7%..28%:7%' -p ftl.clean.kind=greedy,fifo
  nvlab sweep spare.toml --shard 1/2 -o a                   half of the points; on another machine --shard 2/2 -o b
  nvlab sweep spare.toml --from a --from b                  the table of both";

#[derive(Args)]
pub struct Sweep {
    /// File of a sweep; or with -w a design: NAME | FILE.toml
    pub file: String,
    /// Axis: KEY=V1,V2,... | KEY=LO..HI:STEP | KEY=LO..HI*FACTOR (repeatable)
    #[arg(short = 'p', long = "param", value_name = "AXIS", requires = "workload")]
    pub params: Vec<String>,
    /// The workload of a design; a pattern, e.g. 'fleet/*.csv', is a point for each trace
    #[arg(short = 'w', long, value_name = "WORKLOAD")]
    pub workload: Option<String>,
    /// Change one design value at every point, e.g. --set ftl.clean.kind=greedy (repeatable)
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// With -w: seed for every random choice [default: 1]
    #[arg(long, value_name = "N", requires = "workload")]
    pub seed: Option<u64>,
    /// Stop after simulated time, requests, or data, as for run [default: what the file says]
    #[arg(long, value_name = "LIMIT")]
    pub until: Option<Until>,
    /// State of the device before, as for run [default: what the file says, else steady]
    #[arg(long, value_name = "STATE")]
    pub precondition: Option<Preparation>,
    /// Metrics (columns and curves) to show, e.g. -m iops,write.p99,waf,price
    #[arg(short = 'm', long, value_delimiter = ',', value_name = "LIST")]
    pub metrics: Vec<String>,
    /// The two or three metrics of the Pareto front, e.g. --front price.gib,read.p99 [default: price, lifetime and p99]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub front: Vec<String>,
    /// Run only shard I of N, and keep its results; a run without this option makes the table
    #[arg(long, value_name = "I/N", env = "NVLAB_SHARD", hide_env_values = true)]
    pub shard: Option<Shard>,
    /// Also take results kept in DIR: those of shards that ran elsewhere (repeatable)
    #[arg(long, value_name = "DIR")]
    pub from: Vec<PathBuf>,
    /// Run the points elsewhere: dask (a process for each core) | dask:tcp://HOST:PORT
    #[arg(long, value_name = "CLUSTER", conflicts_with_all = ["shard", "force"])]
    pub on: Option<String>,
    /// Print the points and which of them are done, run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Run points again even if the same runs are among the results
    #[arg(long)]
    pub force: bool,
    /// The page; replaced if it exists [default: sweep-NAME.html under --out]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Subcommand)]
pub enum Trace {
    /// Footprint, mix, sizes, skew, interarrival of a trace
    Info {
        /// TRACE[:FORMAT], with volume=NAME if wanted
        trace: String,
    },
    /// Convert between formats; counts what a format cannot express
    Convert {
        /// TRACE[:FORMAT]
        from: String,
        /// FILE[:FORMAT]; the extension selects the format, and .gz or .zst the compression; must not exist
        to: String,
        /// Only these volumes
        #[arg(long, value_delimiter = ',', value_name = "LIST")]
        volumes: Vec<String>,
    },
    /// Write each volume to a file of its own
    Split {
        /// TRACE[:FORMAT]
        from: String,
        /// Folder for the files VOLUME.FORMAT, or volume=VOLUME/part-0.parquet; none of them may exist
        dir: PathBuf,
        /// Extension of the files: selects the format, and compression (msr.gz). parquet keeps the times of the whole trace:
        /// the folder is again a trace
        #[arg(long, default_value = "nvt", value_name = "EXTENSION")]
        extension: String,
    },
    /// Print the first requests
    Head {
        /// TRACE[:FORMAT]
        trace: String,
        /// How many
        #[arg(short = 'n', default_value_t = 10, value_name = "N")]
        count: usize,
    },
    /// Write a generated workload as a trace
    Make {
        /// 'KIND key=value ...'
        workload: String,
        /// FILE[:FORMAT]; must not exist
        to: String,
        /// Bytes of the device it is made for
        #[arg(long, default_value = "16 GiB", value_name = "SIZE", value_parser = size)]
        capacity: u64,
        /// Requests at most
        #[arg(short = 'n', long, default_value = "1M", value_name = "N", value_parser = count)]
        requests: u64,
        /// Seed for every random choice
        #[arg(long, default_value_t = 1, value_name = "N")]
        seed: u64,
    },
}

const IMAGE_EXAMPLES: &str = "\
After each command what it changed in the file is written to the device, and the file is read back from it.

Examples:
  nvlab image hftl-fsms vol.img --size 8MiB 'mkfs.vfat -F 12 $NVLAB_IMAGE' 'mcopy -i $NVLAB_IMAGE README.md ::'";

#[derive(Args)]
#[command(after_help = IMAGE_EXAMPLES)]
pub struct Image {
    /// Design: NAME | FILE.toml (nvlab design list)
    pub design: String,
    /// The image; $NVLAB_IMAGE for the commands. Created if missing
    pub file: PathBuf,
    /// Commands, each one argument for sh -c
    #[arg(required = true, value_name = "COMMAND")]
    pub commands: Vec<String>,
    /// Bytes of an image that is created [default: those of the device]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
    /// Cut the power after each command, before the image is read back
    #[arg(long)]
    pub cut: bool,
    /// Change one design value, e.g. --set ftl.route.update=journal (repeatable)
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed for every random choice
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
    /// Built-in designs
    List,
    /// The design with every default filled in, each value with its origin
    Show {
        /// NAME | FILE.toml
        design: String,
        /// Change one design value (repeatable)
        #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
        set: Vec<String>,
    },
    /// Check design files: every error of every file; nothing is run
    Check {
        /// FILE.toml | NAME
        #[arg(required = true)]
        files: Vec<String>,
    },
    /// Differences of two resolved designs
    Diff {
        /// NAME | FILE.toml, with changes after commas
        a: String,
        /// The other
        b: String,
    },
    /// A design file of the same drive with another capacity: dies, memory, buffer, map and checkpoints together
    Scale {
        /// NAME | FILE.toml, with changes after commas
        design: String,
        /// What the host can address: 1TB | 960GB | 2TiB
        #[arg(value_parser = size)]
        capacity: u64,
        /// The file to write; must not exist [default: print it]
        file: Option<PathBuf>,
    },
    /// Write a commented file to start from
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
    /// Print the JSON Schema (for editors)
    Schema,
}

#[derive(Subcommand)]
pub enum Parts {
    /// Every built-in part
    List,
    /// One part: every number, with its source
    Show {
        /// NAME | FILE.toml
        name: String,
    },
}

#[derive(Args)]
pub struct Report {
    /// Result directories, as run and compare keep them; or a finished sweep: the folder or the table (.parquet) that it left
    #[arg(required_unless_present = "schema")]
    pub runs: Vec<PathBuf>,
    /// The file to write; replaced if it exists
    #[arg(long, default_value = "report.html", value_name = "FILE")]
    pub html: PathBuf,
    /// Open it in the browser
    #[arg(long)]
    pub open: bool,
    /// Print the JSON Schema of results instead: of result.json, run --json and compare --json
    #[arg(long, conflicts_with_all = ["runs", "html", "open"])]
    pub schema: bool,
}

#[derive(Args)]
pub struct Bench {
    /// The designs to measure
    pub designs: Vec<String>,
    /// A small size: shows that it works, not how fast it is
    #[arg(long)]
    pub smoke: bool,
    /// Measure them served: over NBD, answered at once, in memory [default: every built-in design]
    #[arg(long, conflicts_with_all = ["requests", "depth", "only"])]
    pub served: bool,
    /// Requests of each kind
    #[arg(long, default_value = "20M", value_name = "N", value_parser = count)]
    pub requests: u64,
    /// Requests under way
    #[arg(long, default_value_t = 32, value_name = "N")]
    pub depth: u32,
    /// Only this operation
    #[arg(long, value_name = "OP", value_parser = ["write", "read"])]
    pub only: Option<String>,
}
