//! The command line of `nvlab serve`.

use super::size;
use clap::{ArgGroup, Args};
use nvlab_run::Preparation;
use nvlab_serve::TimeMode;
use nvlab_serve::nbd::TlsMode;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
The device is $NVLAB_URI with --nbd, $NVLAB_NVME with --nvme and the file $NVLAB_DEV with --fuse. Without a program, nvlab
serves until Ctrl-C, SIGTERM or `stop` on the control socket. SIGUSR1 cuts the power. At the end it prints statistics of the device.

With --mem the program opens the file $NVLAB_WINDOW and maps it with MAP_SHARED, or calls
nvlab_window_map(size_t *bytes). The program must be dynamically linked: a library is preloaded.

Examples:
  nvlab serve ssd-tlc --nbd disk.sock --state dir --control control.sock
  nvlab serve ssd-tlc --nbd --time fast -- sh -c 'nbdcopy image.raw \"$NVLAB_URI\"'
  nvlab serve ssd-tlc --nbd 127.0.0.1:10809 --tls require --tls-certificates pki --tls-verify-peer
  nvlab serve ssd-tlc --nbd --precondition steady,fill=30%,idle=10s -- ./program
  nvlab serve ssd-tlc --nvme 127.0.0.1:4420 --state dir
  nvlab serve ssd-tlc --fuse mnt --time fast -- sh -c 'mkfs.ext4 -q \"$NVLAB_DEV\"'
  nvlab serve envy --mem --time fast -- sh -c './program \"$NVLAB_WINDOW\"'
  nvlab serve envy --mem --state dir --size 1GiB --resident 64MiB --http 127.0.0.1:7070 -- ./program";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
#[command(group(ArgGroup::new("face").required(true).args(["mem", "nbd", "nvme", "fuse"]).multiple(true)))]
pub struct Serve {
    /// Designs: NAME or FILE.toml, with changes after commas; each is an export under its name (NBD) and a namespace
    /// (NVMe), the first is also the default export
    #[arg(required = true, num_args = 1.., value_name = "DESIGN")]
    pub designs: Vec<String>,
    /// Serve memory to a program, by userfaultfd (design envy)
    #[arg(long, requires = "program", conflicts_with_all = ["nbd", "nvme", "fuse"])]
    pub mem: bool,
    /// Serve a block device over NBD: path of a Unix socket, or HOST:PORT [default: a temporary socket]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, require_equals = false)]
    pub nbd: Option<Option<String>>,
    /// TLS for NBD clients: off | on (optional) | require
    #[arg(long, default_value = "off", value_name = "MODE", requires = "nbd")]
    pub tls: TlsMode,
    /// Folder with server-cert.pem and server-key.pem, and ca-cert.pem for --tls-verify-peer
    #[arg(long, value_name = "DIR", requires = "nbd")]
    pub tls_certificates: Option<PathBuf>,
    /// Require NBD clients that use TLS to present a certificate signed by ca-cert.pem
    #[arg(long, requires = "tls_certificates")]
    pub tls_verify_peer: bool,
    /// Serve NVMe over TCP to Linux hosts (nvme connect-all -t tcp -a HOST -s PORT), at HOST:PORT, e.g. 127.0.0.1:4420
    #[arg(long, value_name = "HOST:PORT")]
    pub nvme: Option<String>,
    /// Serve the device as a file in DIR by FUSE; DIR is an empty directory or one to create
    #[arg(long, value_name = "DIR")]
    pub fuse: Option<PathBuf>,
    /// Let --nbd, --nvme and --http listen on addresses that other machines can reach
    #[arg(long)]
    pub allow_remote: bool,
    /// Change one design value (repeatable)
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE", conflicts_with = "mem")]
    pub set: Vec<String>,
    /// Seed of the device's random choices; a device reopened with --state keeps its seed
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Precondition a new device, as for run: steady | log-full | full | scattered, with optional suffixes ,fill=30%
    /// ,span=30% ,idle=10s. The data it writes reads as zeros; its seed replaces --seed
    #[arg(long, value_name = "STATE", conflicts_with = "mem")]
    pub precondition: Option<Preparation>,
    /// Size of the memory, a multiple of 4 KiB [default: as stored in --state, or 256 MiB]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "mem")]
    pub size: Option<u64>,
    /// Limit of its resident part, at least 64 KiB [default: a quarter]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "mem")]
    pub resident: Option<u64>,
    /// Store the device in DIR, so that it survives restarts and kill -9 [default: discarded at the end]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// When requests complete: real (when the simulated device would) | fast (at once) | xN (N times slower)
    #[arg(long, default_value = "real", value_name = "MODE")]
    pub time: TimeMode,
    /// Unix socket for the commands status, cut, cut after N and stop, one per line
    #[arg(long, value_name = "PATH", conflicts_with = "mem")]
    pub control: Option<PathBuf>,
    /// Serve a live page at http://HOST:PORT/ and Prometheus metrics at /metrics (not with --mem)
    #[arg(long, value_name = "HOST:PORT")]
    pub http: Option<String>,
    /// Cut the power during the N-th operation, then restore it
    #[arg(long, value_name = "N", conflicts_with = "mem", value_parser = clap::value_parser!(u64).range(1..))]
    pub cut_at: Option<u64>,
    /// Acknowledge FLUSH without making anything durable (a lying device)
    #[arg(long, conflicts_with = "mem")]
    pub ignore_flush: bool,
    /// Record the requests as a trace: FILE[:FORMAT], as for trace convert; must not exist
    #[arg(long, value_name = "FILE", conflicts_with = "mem")]
    pub record: Option<String>,
    /// The program and its arguments; nvlab exits with its status
    #[arg(last = true, num_args = 1.., value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}
