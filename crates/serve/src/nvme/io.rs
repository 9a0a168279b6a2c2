//! Commands of an I/O queue: each goes to the command set of its namespace.

use super::command::{
    ALL_NAMESPACES, Command, Commands, Done, Fault, Moves, Outcome, Status, fabrics, nvm as opcode,
};
use super::controller::Controller;
use super::namespace::Namespace;
use super::nvm;
use super::subsystem::Subsystem;
use crate::net::connections::Connection;
use crate::served::{Drive, Session};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An I/O queue.
pub struct Io {
    subsystem: Arc<Subsystem>,
    controller: Arc<Controller>,
    connection: Arc<Connection>,
    number: u16,
    /// Of the namespaces, in their order.
    sessions: Vec<Session>,
    /// The host has disconnected the queue.
    over: bool,
    /// Data of the device that are compared or verified.
    scratch: Vec<u8>,
}

impl Io {
    pub fn new(
        subsystem: Arc<Subsystem>,
        controller: Arc<Controller>,
        connection: Arc<Connection>,
        number: u16,
    ) -> Io {
        let sessions = subsystem.namespaces.iter().map(|namespace| namespace.drive.session()).collect();
        Io { subsystem, controller, connection, number, sessions, over: false, scratch: Vec::new() }
    }

    /// True if replies are held until they are due.
    pub fn holds_answers(&self) -> bool {
        self.subsystem.namespaces.iter().any(|namespace| namespace.drive.holds_answers())
    }

    /// The devices, each in the session of this queue.
    pub fn devices(&self) -> Vec<(Arc<Drive>, Session)> {
        let drives = self.subsystem.namespaces.iter().map(|namespace| Arc::clone(&namespace.drive));
        drives.zip(self.sessions.iter().copied()).collect()
    }

    fn namespace(&self, command: &Command) -> Result<(usize, &Namespace), Status> {
        self.subsystem.namespace(command.namespace()).ok_or(Status::INVALID_NAMESPACE)
    }

    /// Calls the command set of a namespace.
    fn of_namespace(
        &mut self,
        command: &Command,
        serve: impl FnOnce(&mut nvm::Access<'_>) -> Outcome,
    ) -> Outcome {
        let (index, namespace) =
            self.subsystem.namespace(command.namespace()).ok_or(Status::INVALID_NAMESPACE)?;
        let mut access = nvm::Access {
            namespace,
            session: self.sessions[index],
            is_durable: !self.controller.write_cache.load(Ordering::Relaxed),
            scratch: &mut self.scratch,
        };
        let done = serve(&mut access)?;
        Ok(done.map(|done| Done { of: Some(index), ..done }))
    }

    /// Flushes every namespace.
    fn flush_all(&self) -> Outcome {
        let mut all = Done::default();
        for (index, (namespace, session)) in self.subsystem.namespaces.iter().zip(&self.sessions).enumerate()
        {
            let flushed = namespace.drive.flush(*session);
            let due = flushed.map_err(|error| Fault::of(&error, Status::WRITE_FAULT))?;
            all = Done { due: all.due.max(due), of: Some(index), ..all };
        }
        Ok(Some(all))
    }
}

impl Commands for Io {
    fn moves(&mut self, command: &Command) -> Result<Moves, Status> {
        match command.opcode() {
            fabrics::OPCODE => Ok(Moves::Nothing),
            opcode::FLUSH if command.namespace() == ALL_NAMESPACES => Ok(Moves::Nothing),
            _ if !self.controller.is_ready() => Err(Status::SEQUENCE),
            _ => nvm::moves(self.namespace(command)?.1, command),
        }
    }

    fn run(&mut self, command: &Command) -> Outcome {
        match command.opcode() {
            fabrics::OPCODE if command.fabrics_type() == fabrics::DISCONNECT => {
                self.over = true;
                Done::with(0)
            }
            fabrics::OPCODE => Err(Status::INVALID_OPCODE.into()),
            opcode::FLUSH if command.namespace() == ALL_NAMESPACES => self.flush_all(),
            _ => self.of_namespace(command, |access| access.run(command)),
        }
    }

    fn fill(&mut self, command: &Command, into: &mut [u8]) -> Outcome {
        self.of_namespace(command, |access| access.read(command, into))
    }

    fn shows(&self, command: &Command) -> bool {
        self.namespace(command).is_ok_and(|(_, namespace)| nvm::shows(namespace, command))
    }

    fn show(&mut self, command: &Command, take: &mut dyn FnMut(&[&[u8]])) -> Outcome {
        self.of_namespace(command, |access| access.show(command, take))
    }

    fn take(&mut self, command: &Command, at: u32, data: &[u8]) -> Outcome {
        self.of_namespace(command, |access| access.take(command, at, data))
    }

    fn failed(&mut self, command: &Command, status: Status) {
        self.controller.log_failure(self.number, command, status);
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

impl Drop for Io {
    fn drop(&mut self) {
        self.controller.remove_queue(&self.connection);
    }
}
