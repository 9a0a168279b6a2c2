//! Addresses, listeners, and the path of a socket in the file system.
//!
//! A killed server leaves its socket behind. Only such a socket is removed, and never anything else: the file at the path
//! must be a socket that no process has open ([`remove_dead`]). At the end a server removes the socket that it created, if
//! it is still the one at the path.

use super::stream::Stream;
use crate::ServeError;
use crate::sys::stream;
use nvlab_os::file;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Error, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The send buffer requested for a Unix socket. The kernel doubles it and reports the socket writable at a quarter: a reply
/// of 1 MiB is then sent without a wait in the middle, and a second one does not evict the first from the caches before it
/// is read. (With twice as much such a read took 10 % more processor time.) TCP sizes its own buffers.
const SEND_BUFFER_BYTES: usize = 1 << 20;
/// How long another server that examines a path in the same folder is waited for.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system, for the same user.
    Unix(PathBuf),
    /// An IP address of this machine and a port.
    Tcp(SocketAddr),
}

impl Address {
    /// From `HOST:PORT` (a number and a port) or a path.
    pub fn parse(text: &str) -> Address {
        let host = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        match host.as_deref().unwrap_or(text).parse() {
            Ok(address) => Address::Tcp(address),
            Err(_) => Address::Unix(text.into()),
        }
    }

    /// True for TCP addresses other than loopback: other machines can connect.
    pub fn is_remote(&self) -> bool {
        match self {
            Address::Unix(_) => false,
            Address::Tcp(address) => match address.ip() {
                IpAddr::V4(ip) => !ip.is_loopback(),
                IpAddr::V6(ip) => !ip.is_loopback(),
            },
        }
    }
}

impl fmt::Display for Address {
    /// In the form that [`Address::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => path.display().fmt(f),
            Address::Tcp(address) => address.fmt(f),
        }
    }
}

/// A listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix {
        // In this order: the file is removed first.
        _file: SocketFile,
        listener: UnixListener,
    },
    Tcp(TcpListener),
}

/// The path of a socket that this process listens on; removed at the end, before the socket is closed: until then no other
/// file has its inode number.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    made: Metadata,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| is_same_socket(&found, &self.made)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn is_same_socket(one: &Metadata, other: &Metadata) -> bool {
    one.file_type().is_socket() && (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Listens; also returns the address that clients connect to, with the port that was chosen where the port was 0.
pub(crate) fn listen(address: &Address) -> Result<(Listener, Address), ServeError> {
    match address {
        Address::Unix(path) => {
            let failed = || ServeError::io(format!("cannot listen at {}", path.display()));
            let listener = bind(path).map_err(failed())?;
            let absolute = path.canonicalize().map_err(failed())?;
            let made = fs::symlink_metadata(&absolute).map_err(failed())?;
            let file = SocketFile { path: absolute, made };
            fs::set_permissions(&file.path, Permissions::from_mode(0o600)).map_err(failed())?;
            let address = Address::Unix(file.path.clone());
            Ok((Listener::Unix { _file: file, listener }, address))
        }
        Address::Tcp(address) => {
            let failed = || ServeError::io(format!("cannot listen at {address}"));
            let listener = TcpListener::bind(address).map_err(failed())?;
            let address = Address::Tcp(listener.local_addr().map_err(failed())?);
            Ok((Listener::Tcp(listener), address))
        }
    }
}

/// Binds a path, where a killed server may have left its socket.
fn bind(path: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {}
        bound => return bound,
    }
    // Another server that found the same socket must not remove the one created here.
    let _locked = lock_folder(path)?;
    remove_dead(path)?;
    UnixListener::bind(path)
}

/// Locks the folder of a path, as every server does before it removes a socket there.
fn lock_folder(path: &Path) -> io::Result<File> {
    let (folder, begun) = (File::open(file::folder_of(path))?, Instant::now());
    while !file::try_lock(&folder)? {
        if begun.elapsed() > LOCK_PATIENCE {
            return Err(Error::new(ErrorKind::WouldBlock, "its folder is locked by another process"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(folder)
}

/// Removes a socket that no process has open; anything else is left alone and an error. The folder is locked.
fn remove_dead(path: &Path) -> io::Result<()> {
    // Held open, so that no other file can get its inode number meanwhile.
    let flags = libc::O_PATH | libc::O_NOFOLLOW;
    let held = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = held.metadata()?;
    if !found.file_type().is_socket() {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            "it exists and is not a socket; it is not replaced",
        ));
    }
    // A datagram socket cannot connect to it, but the kernel's error tells whether a process has the socket open, of whatever
    // kind, listening or not yet; and no process notices.
    let this = format!("/proc/self/fd/{}", held.as_raw_fd());
    match UnixDatagram::unbound()?.connect(&this) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
        Err(error) if error.raw_os_error() != Some(libc::EPROTOTYPE) => return Err(error),
        _ => return Err(Error::new(ErrorKind::AddrInUse, "it is in use: another process listens on it")),
    }
    match is_same_socket(&fs::symlink_metadata(path)?, &found) {
        true => fs::remove_file(path),
        false => Err(Error::new(
            ErrorKind::AddrInUse,
            "it is in use: another process has just started to listen on it",
        )),
    }
}

impl Listener {
    pub(crate) fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Unix { listener, .. } => {
                let stream = listener.accept()?.0;
                stream::send_buffer(&stream, SEND_BUFFER_BYTES)?;
                Ok(Stream::Unix(stream))
            }
            Listener::Tcp(listener) => {
                let stream = listener.accept()?.0;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
        }
    }

    pub(crate) fn fd(&self) -> i32 {
        match self {
            Listener::Unix { listener, .. } => listener.as_raw_fd(),
            Listener::Tcp(listener) => listener.as_raw_fd(),
        }
    }
}
