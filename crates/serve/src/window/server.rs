//! A window for another program: the server owns the device, the program maps the file `$NVLAB_WINDOW`.
//!
//! The file is empty and sealed: the kernel refuses to map it for a program without the preloaded library (a static
//! program), and to write to it; nothing is ever stored that would be lost.

use super::attach::AttachListener;
use super::service::{Service, WindowOptions};
use super::state::Found;
use super::stats::WindowStats;
use super::watched::WatchedWindow;
use crate::ServeError;
use crate::http::watched::Watched;
use crate::sys::abi::{SOCKET_VARIABLE, WINDOW_VARIABLE};
use crate::sys::process;
use nvlab_os::file;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

/// The library that makes programs map the window (see `build.rs`).
const PRELOAD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/preload.so"));

/// An open window that programs can attach to.
#[derive(Debug)]
pub struct WindowServer {
    // In this order: first, no more programs attach.
    door: AttachListener,
    service: Service,
    face: File,
    library: File,
}

impl WindowServer {
    /// Opens a window, new or from its state.
    pub fn open(options: &WindowOptions) -> Result<WindowServer, ServeError> {
        let service = Service::open(options)?;
        let made = || ServeError::io("cannot create a file in memory");
        let face = file::anonymous(c"nvlab-window", true).map_err(made())?;
        face.set_len(service.bytes()).and_then(|()| file::seal(&face)).map_err(made())?;
        let mut library = file::anonymous(c"nvlab-preload", false).map_err(made())?;
        library.write_all(PRELOAD).map_err(made())?;
        let door = AttachListener::open(service.shared().clone(), service.bytes())?;
        Ok(WindowServer { door, service, face, library })
    }

    /// What was in the state when the window was opened.
    pub fn found(&self) -> &Found {
        self.service.found()
    }

    /// True if faults of system calls cannot be served here: one that touches an absent page of the window (a read from a
    /// file into it) fails with EFAULT. Loads and stores are served.
    pub fn is_user_only(&self) -> bool {
        self.service.is_user_only()
    }

    /// The window as a live page shows it.
    pub fn watched(&self, name: &str) -> Arc<dyn Watched> {
        Arc::new(WatchedWindow::new(name, Arc::clone(self.service.shared())))
    }

    /// A multiple of 4 KiB.
    pub fn bytes(&self) -> u64 {
        self.service.bytes()
    }

    /// The environment variables that a program needs. Its children inherit them and may map the window, too.
    pub fn environment(&self) -> [(&'static str, OsString); 3] {
        let name = |name: &'static CStr| name.to_str().expect("a name of ASCII letters");
        let mut preload = own(&self.library);
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(" ");
            preload.push(others);
        }
        [
            (name(WINDOW_VARIABLE), own(&self.face)),
            (name(SOCKET_VARIABLE), self.door.name().into()),
            ("LD_PRELOAD", preload),
        ]
    }

    /// Runs a program to its end. It is killed if the calling thread ends before.
    pub fn run(&self, program: &OsStr, arguments: &[OsString]) -> Result<ExitStatus, ServeError> {
        let mut command = Command::new(program);
        command.args(arguments).envs(self.environment());
        process::end_with_parent(&mut command);
        command.status().map_err(|source| ServeError::Program { program: program.into(), source })
    }

    /// What was counted since the window was opened.
    pub fn stats(&self) -> WindowStats {
        self.service.stats()
    }

    /// Why the device failed, if it did: programs received SIGBUS.
    pub fn failure(&self) -> Option<String> {
        self.service.shared().engine().failure().map(String::from)
    }

    /// Writes everything back. Programs that still map the window are killed: they outlived the program that was run.
    pub fn close(self) -> Result<WindowStats, ServeError> {
        let WindowServer { door, mut service, .. } = self;
        drop(door);
        service.shared().engine().end_rest();
        service.close()?;
        Ok(service.stats())
    }
}

/// The path by which other processes of the same user open a file of this one.
fn own(file: &File) -> OsString {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
}
