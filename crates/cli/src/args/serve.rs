//! The command line of `nvlab serve`.

use super::size;
use clap::{ArgGroup, Args};
use nvlab_run::Preparation;
use nvlab_serve::TimeMode;
use nvlab_serve::nbd::TlsMode;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
With --nbd a program finds the device at $NVLAB_URI, with --fuse it is the file $NVLAB_DEV. Without a program nvlab serves until Ctrl-C, SIGTERM or `stop` on
the control socket; SIGUSR1 pulls the plug. At the end it says what was done to the device.

With --mem the program opens the file $NVLAB_WINDOW and maps it, shared; or it calls
nvlab_window_map(size_t *bytes). It must be linked dynamically: a library is preloaded.

Examples:
  nvlab serve ssd-tlc --nbd disk.sock --state dir --control control.sock
  nvlab serve ssd-tlc --nbd --time fast -- sh -c 'nbdcopy image.raw \"$NVLAB_URI\"'
  nvlab serve ssd-tlc --nbd 127.0.0.1:10809 --tls require --tls-certificates pki --tls-verify-peer
  nvlab serve ssd-tlc --nbd --precondition steady,fill=30%,idle=10s -- ./program
  nvlab serve ssd-tlc --fuse mnt --time fast -- sh -c 'mkfs.ext4 -q \"$NVLAB_DEV\"'
  nvlab serve envy --mem --time fast -- sh -c './program \"$NVLAB_WINDOW\"'
  nvlab serve envy --mem --state dir --size 1GiB --resident 64MiB --http 127.0.0.1:7070 -- ./program";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
#[command(group(ArgGroup::new("face").required(true).args(["mem", "nbd", "fuse"]).multiple(true)))]
pub struct Serve {
    /// Design: NAME or FILE.toml, with changes after commas; each one is an export of its name, the first also the one
    /// without a name
    #[arg(required = true, num_args = 1.., value_name = "DESIGN")]
    pub designs: Vec<String>,
    /// Memory for a program, by userfaultfd (design envy)
    #[arg(long, requires = "program", conflicts_with_all = ["nbd", "fuse"])]
    pub mem: bool,
    /// A block device over NBD: the path of a Unix socket, or HOST:PORT [default: a socket of its own]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, require_equals = false)]
    pub nbd: Option<Option<String>>,
    /// Whether NBD clients use TLS: off | on (they may) | require
    #[arg(long, default_value = "off", value_name = "MODE", requires = "nbd")]
    pub tls: TlsMode,
    /// Folder with server-cert.pem and server-key.pem, and ca-cert.pem for --tls-verify-peer
    #[arg(long, value_name = "DIR", requires = "nbd")]
    pub tls_certificates: Option<PathBuf>,
    /// An NBD client that uses TLS must have a certificate signed by ca-cert.pem
    #[arg(long, requires = "tls_certificates")]
    pub tls_verify_peer: bool,
    /// A directory with the device as a file, by FUSE: an empty directory, or one to create
    #[arg(long, value_name = "DIR")]
    pub fuse: Option<PathBuf>,
    /// Let --nbd and --http listen on addresses that other machines can reach
    #[arg(long)]
    pub allow_remote: bool,
    /// Change one design value (repeatable)
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE", conflicts_with = "mem")]
    pub set: Vec<String>,
    /// Seed of the device's random choices; a device reopened from its state keeps its own
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Bring a new device to a state before it is served, as for run: steady | log-full | full | scattered, with ,fill=30%
    /// ,span=30% ,idle=10s after it; what that writes reads as zeros, and its seed takes the place of --seed
    #[arg(long, value_name = "STATE", conflicts_with = "mem")]
    pub precondition: Option<Preparation>,
    /// Bytes of the memory, a multiple of 4 KiB [default: those of the state, or 256 MiB]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "mem")]
    pub size: Option<u64>,
    /// Bytes of it that may be resident, at least 64 KiB [default: a quarter]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "mem")]
    pub resident: Option<u64>,
    /// Folder of the state: what was served survives restarts and kill -9 [default: discarded at the end]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// When a request is answered: real (no earlier than the device would) | fast (at once) | xN (N times slower)
    #[arg(long, default_value = "real", value_name = "MODE")]
    pub time: TimeMode,
    /// A socket for the commands status, cut, cut after N, stop: a line each, answered in lines
    #[arg(long, value_name = "PATH", conflicts_with = "mem")]
    pub control: Option<PathBuf>,
    /// A live page at http://HOST:PORT/, counts for Prometheus at /metrics (not of a memory)
    #[arg(long, value_name = "HOST:PORT")]
    pub http: Option<String>,
    /// The power fails during the N-th operation, and comes back
    #[arg(long, value_name = "N", conflicts_with = "mem", value_parser = clap::value_parser!(u64).range(1..))]
    pub cut_at: Option<u64>,
    /// A device that lies: FLUSH is acknowledged and nothing is made durable for it
    #[arg(long, conflicts_with = "mem")]
    pub ignore_flush: bool,
    /// Write what was asked as a trace: FILE[:FORMAT], as for trace convert; must not exist
    #[arg(long, value_name = "FILE", conflicts_with = "mem")]
    pub record: Option<String>,
    /// The program and its arguments; nvlab ends with its status
    #[arg(last = true, num_args = 1.., value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}
