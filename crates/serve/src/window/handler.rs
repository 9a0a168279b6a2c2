//! The thread that answers faults: it waits for the faults of any mapping, reads them in batches, and has the engine answer.
//!
//! It must never leave a program waiting: if it fails or panics, every process that maps the window is killed.

use super::engine::{Client, Engine};
use crate::ServeError;
use crate::sys::userfaultfd::{BATCH, PageFault};
use crate::sys::{poll, process};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Shared between the handler and the threads that open, sync and close the window.
#[derive(Debug)]
pub(crate) struct Shared {
    engine: Mutex<Engine>,
    /// Written to wake the handler for something other than a fault.
    bell: File,
    stop: AtomicBool,
    /// Set when the handler has failed.
    ended: AtomicBool,
}

impl Shared {
    /// The engine. After a panic with the lock held it may be used for counts and for killing clients only, see
    /// [`Shared::whole`].
    pub(crate) fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails after a panic with the engine locked: no page is served or written back any more, so that the next start finds
    /// media and resident pages as after a kill.
    pub(crate) fn whole(&self) -> Result<(), ServeError> {
        match self.engine.is_poisoned() {
            true => Err(ServeError::Bug("the memory window panicked (see above)".into())),
            false => Ok(()),
        }
    }

    /// Has the faults of one more mapping answered; fails if the handler has ended.
    pub(crate) fn admit(&self, client: Client) -> io::Result<()> {
        let mut engine = self.engine();
        self.whole().map_err(io::Error::other)?;
        if self.ended.load(Ordering::Acquire) {
            return Err(io::Error::other("the fault handler has ended"));
        }
        engine.admit(client);
        self.ring()
    }

    /// The handler fails: every program is killed, and none is admitted any more.
    fn fail(&self, why: &str) {
        // Under the lock, so that no client is admitted in between.
        let engine = self.engine();
        self.ended.store(true, Ordering::Release);
        engine.end_clients(why);
    }

    fn ring(&self) -> io::Result<()> {
        (&self.bell).write_all(&1u64.to_ne_bytes())
    }
}

/// The thread.
#[derive(Debug)]
pub(crate) struct FaultHandler {
    pub(crate) shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl FaultHandler {
    /// Starts the thread, pinned to `core` if given.
    pub(crate) fn start(engine: Engine, core: Option<usize>) -> Result<FaultHandler, ServeError> {
        let bell = poll::event().map_err(ServeError::io("cannot create an eventfd"))?;
        let shared = Arc::new(Shared {
            engine: Mutex::new(engine),
            bell,
            stop: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        });
        let of_thread = Arc::clone(&shared);
        let body = move || {
            // Without that core it can serve all the same.
            if let Some(Err(error)) = core.map(process::pin) {
                eprintln!("nvlab: the memory window: the handler is not pinned to a core: {error}");
            }
            match catch_unwind(AssertUnwindSafe(|| serve(&of_thread))) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => of_thread.fail(&error.to_string()),
                Err(_) => of_thread.fail("the fault handler failed (see above)"),
            }
        };
        let thread = std::thread::Builder::new()
            .name("nvlab-window".into())
            .spawn(body)
            .map_err(ServeError::io("cannot start the fault handler"))?;
        Ok(FaultHandler { shared, thread: Some(thread) })
    }

    /// Answers pending faults and ends the thread.
    pub(crate) fn stop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.shared.stop.store(true, Ordering::Release);
        match self.shared.ring() {
            // It catches its own panics.
            Ok(()) => thread.join().expect("the fault handler does not panic"),
            Err(error) => self.shared.fail(&format!("cannot stop the handler: {error}")),
        }
    }
}

impl Drop for FaultHandler {
    fn drop(&mut self) {
        self.stop();
    }
}

fn serve(shared: &Shared) -> io::Result<()> {
    let mut faults = [PageFault::default(); BATCH];
    let mut waiting: Vec<libc::pollfd> = Vec::new();
    let mut numbers: Vec<usize> = Vec::new();
    let mut changed = true;
    loop {
        if changed {
            let engine = shared.engine();
            waiting.clear();
            numbers.clear();
            waiting.push(poll::readable(shared.bell.as_raw_fd()));
            for (number, client) in engine.clients() {
                waiting.push(poll::readable(client.faults.as_raw_fd()));
                numbers.push(number);
            }
        }
        poll::wait_readable(&mut waiting, None)?;
        changed = waiting[0].revents != 0;
        if changed {
            (&shared.bell).read_exact(&mut [0; 8])?;
            if shared.stop.load(Ordering::Acquire) {
                return Ok(());
            }
        }
        let mut engine = shared.engine();
        shared.whole().map_err(io::Error::other)?;
        for (entry, &number) in waiting[1..].iter().zip(&numbers) {
            // The descriptor was made blocking, which would stop every program.
            if entry.revents & libc::POLLERR != 0 {
                engine.give_up(number, "its userfaultfd was changed after it was handed over".into());
            } else if entry.revents != 0 {
                engine.serve(number, &mut faults);
            }
        }
        engine.make_room_ahead();
        // A client that has gone must not be polled: its descriptor is closed.
        changed |= engine.clients().count() != numbers.len();
    }
}
