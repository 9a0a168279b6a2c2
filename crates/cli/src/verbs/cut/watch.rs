//! Waits for programs, and ends them with all their children when the user interrupts. Nothing here exits the
//! process, so that mounts, loop devices and folders are released.

use crate::failure::Failure;
use nvlab_serve::{Signals, Woken, kill_group, process_file};
use std::cell::Cell;
use std::io;
use std::process::{Child, ExitStatus};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a reader without notification is polled.
const LOOK: Duration = Duration::from_millis(5);

/// Handles SIGINT and SIGTERM.
pub struct Watch {
    signals: Signals,
    ended: Cell<bool>,
}

impl Watch {
    pub fn new() -> Result<Watch, Failure> {
        let signals =
            Signals::install().map_err(|error| Failure::machine("cannot handle signals", &error))?;
        Ok(Watch { signals, ended: Cell::new(false) })
    }

    /// An error if the user wants to end.
    pub fn go_on(&self) -> Result<(), Failure> {
        self.ended.set(self.ended.get() || self.signals.end_was_asked());
        match self.ended.get() {
            true => Err(Failure::Interrupted("interrupted".into())),
            false => Ok(()),
        }
    }

    /// Waits for a program with a process group of its own; kills the group if the user wants to end.
    pub fn wait(&self, child: &mut Child) -> Result<ExitStatus, Failure> {
        let failed = |error: io::Error| Failure::machine("cannot wait for the program", &error);
        let process = process_file(child.id()).map_err(failed)?;
        loop {
            match self.signals.wait(Some(&process)).map_err(failed)? {
                Woken::Program => return child.wait().map_err(failed),
                Woken::Plug => {}
                Woken::End => {
                    self.ended.set(true);
                    kill_group(child.id());
                    child.wait().map_err(failed)?;
                    self.go_on()?;
                }
            }
        }
    }

    /// Waits for the reader of the output of a program that has ended, and of everything it started.
    pub fn join(&self, reader: JoinHandle<io::Result<()>>, program: u32) -> Result<(), Failure> {
        while !reader.is_finished() {
            if let Err(interrupted) = self.go_on() {
                // Some still run, so their group still exists.
                kill_group(program);
                return Err(interrupted);
            }
            std::thread::sleep(LOOK);
        }
        let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        read.map_err(|error| Failure::machine("cannot read the program's output", &error))
    }
}
