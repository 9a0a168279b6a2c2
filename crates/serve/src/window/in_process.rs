//! A window of this process: memory whose loads and stores are plain instructions.

use super::service::{Service, WindowOptions};
use super::state::Found;
use super::stats::WindowStats;
use crate::ServeError;
use nvlab_os::Mapping;

/// Memory that is a simulated device.
///
/// Dropping it writes everything back ([`Window::close`] also says whether that went well). Children by fork do not
/// have it.
#[derive(Debug)]
pub struct Window {
    // Before the service: nothing may be mapped when it closes.
    mapping: Option<Mapping>,
    service: Service,
}

impl Window {
    /// Opens a window, new or as its state has it.
    pub fn open(options: &WindowOptions) -> Result<Window, ServeError> {
        let service = Service::open(options)?;
        let mapping = Some(service.map()?);
        Ok(Window { mapping, service })
    }

    /// How it was found.
    pub fn found(&self) -> &Found {
        self.service.found()
    }

    /// True without the privilege that serves them: a system call that touches an absent page of the window (a read from a
    /// file into it) fails with EFAULT. Loads and stores are served all the same.
    pub fn is_user_only(&self) -> bool {
        self.service.is_user_only()
    }

    fn mapping(&self) -> &Mapping {
        self.mapping.as_ref().expect("a window is mapped until it is closed")
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.mapping().as_slice()
    }

    /// The bytes, to change.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.mapping.as_mut().expect("a window is mapped until it is closed").as_mut_slice()
    }

    /// The first byte. Threads that share the window through it see what they see of any memory.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.mapping().start()
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.mapping().len()
    }

    /// False: a window has at least a page.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was stored before this call outlives the machine's memory after it: it is in the device, and the device is
    /// in its files. A killed process loses nothing, even without.
    pub fn sync(&self) -> Result<(), ServeError> {
        self.service.sync()
    }

    /// What happened so far.
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
            eprintln!("nvlab: the memory window was not closed in good order: {error}");
        }
    }
}
