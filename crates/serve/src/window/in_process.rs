//! A window of this process: memory whose loads and stores are plain instructions.

use super::service::{Service, WindowOptions};
use super::state::Found;
use super::stats::WindowStats;
use crate::ServeError;
use nvlab_os::Mapping;

/// Memory that is a simulated device.
///
/// Dropping it writes everything back ([`Window::close`] also returns whether that succeeded). Children created by fork do
/// not have it.
#[derive(Debug)]
pub struct Window {
    // Before the service: nothing may be mapped when it closes.
    mapping: Option<Mapping>,
    service: Service,
}

impl Window {
    /// Opens a window, new or from its state.
    pub fn open(options: &WindowOptions) -> Result<Window, ServeError> {
        let service = Service::open(options)?;
        let mapping = Some(service.map()?);
        Ok(Window { mapping, service })
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

    fn mapping(&self) -> &Mapping {
        self.mapping.as_ref().expect("a window is mapped until it is closed")
    }

    /// The whole window; an access to an absent page waits for the device.
    pub fn as_slice(&self) -> &[u8] {
        self.mapping().as_slice()
    }

    /// As `as_slice`; a store to a clean page marks it dirty.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.mapping.as_mut().expect("a window is mapped until it is closed").as_mut_slice()
    }

    /// The first byte. Threads may share the window through it like any memory.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.mapping().start()
    }

    /// A multiple of 4 KiB.
    pub fn len(&self) -> usize {
        self.mapping().len()
    }

    /// False: a window has at least a page.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes everything stored before to the device, and the device to its files: it then survives a crash of the machine.
    /// A killed process loses nothing even without this.
    pub fn sync(&self) -> Result<(), ServeError> {
        self.service.sync()
    }

    /// What was counted since the window was opened.
    pub fn stats(&self) -> WindowStats {
        self.service.stats()
    }

    /// Writes everything back. After an error the state stays marked as open, and its resident pages remain.
    pub fn close(mut self) -> Result<WindowStats, ServeError> {
        self.end()
    }

    fn end(&mut self) -> Result<WindowStats, ServeError> {
        drop(self.mapping.take());
        self.service.close()?;
        Ok(self.service.stats())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        if self.mapping.is_some()
            && let Err(error) = self.end()
        {
            eprintln!("nvlab: the memory window was not closed cleanly: {error}");
        }
    }
}
