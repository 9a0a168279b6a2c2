//! The first command of a connection, which makes it a queue of a controller.

use super::admin::Admin;
use super::command::{Command, Commands, Done, Fault, Flow, Moves, Outcome, Status, fabrics};
use super::controller::{Host, Kind};
use super::io::Io;
use super::subsystem::{DISCOVERY_NQN, QUEUE_ENTRIES, Subsystem};
use crate::net::connections::Connection;
use std::net::SocketAddr;
use std::sync::Arc;

/// Bytes of the data of Connect.
const DATA_BYTES: u32 = 1024;
/// The number by which a host asks for a new controller.
const ANY_CONTROLLER: u16 = 0xffff;
/// Flag of Connect: no flow control of the submission queue.
const NO_FLOW_CONTROL: u8 = 1 << 2;

/// What a connection became.
pub enum Role {
    Admin(Admin),
    Io(Io),
}

/// A connection that is no queue yet.
pub struct Connecting {
    subsystem: Arc<Subsystem>,
    connection: Arc<Connection>,
    /// Where the host connected to.
    address: SocketAddr,
    role: Option<Accepted>,
}

/// A queue that was accepted.
pub struct Accepted {
    pub role: Role,
    pub flow: Flow,
}

/// A parameter of Connect that is wrong, by its offset in the command or in its data.
enum Wrong {
    Command(u16),
    Data(u16),
}

impl From<Wrong> for Fault {
    fn from(wrong: Wrong) -> Fault {
        let result = match wrong {
            Wrong::Command(offset) => offset as u64,
            Wrong::Data(offset) => 1 << 16 | offset as u64,
        };
        Fault::Failed(Status::CONNECT_PARAMETERS, result)
    }
}

/// A name that ends with a zero byte, from a field of a data structure.
fn name(field: &[u8]) -> Option<&[u8]> {
    let end = field.iter().position(|&byte| byte == 0)?;
    Some(&field[..end]).filter(|name| !name.is_empty())
}

impl Connecting {
    pub fn new(subsystem: Arc<Subsystem>, connection: Arc<Connection>, address: SocketAddr) -> Connecting {
        Connecting { subsystem, connection, address, role: None }
    }

    /// What it became; `None`: the host left before.
    pub fn accepted(self) -> Option<Accepted> {
        self.role
    }

    fn connect(&mut self, command: &Command, data: &[u8]) -> Result<u16, Fault> {
        let id = u16::from_le_bytes([data[16], data[17]]);
        let kind = match name(&data[256..512]) {
            Some(nqn) if nqn == self.subsystem.nqn.as_bytes() => Kind::Io,
            Some(nqn) if nqn == DISCOVERY_NQN.as_bytes() => Kind::Discovery,
            _ => return Err(Wrong::Data(256).into()),
        };
        let nqn = name(&data[512..768]).ok_or(Fault::from(Wrong::Data(512)))?.to_vec();
        let host = Host { id: data[..16].try_into().expect("16 bytes"), nqn };
        // The number of entries counts from 0, the least queue has two.
        let (format, queue) = (command.dword(10) as u16, (command.dword(10) >> 16) as u16);
        let (size, flags) = (command.dword(11) as u16, (command.dword(11) >> 16) as u8);
        if format != 0 {
            return Err(Status::CONNECT_FORMAT.into());
        }
        if !(1..QUEUE_ENTRIES).contains(&size) {
            return Err(Wrong::Command(44).into());
        }
        let (role, id) = match queue {
            0 => self.admin(kind, host, id, command.dword(12))?,
            _ if kind == Kind::Discovery || queue > self.subsystem.queues_max => {
                return Err(Wrong::Command(42).into());
            }
            _ => (self.io(host, id, queue)?, id),
        };
        let flow = Flow { queue, entries: size + 1, disabled: flags & NO_FLOW_CONTROL != 0 };
        self.role = Some(Accepted { role, flow });
        Ok(id)
    }

    fn admin(&self, kind: Kind, host: Host, id: u16, keep_alive_ms: u32) -> Result<(Role, u16), Fault> {
        if id != ANY_CONTROLLER {
            return Err(Wrong::Data(16).into());
        }
        let controller = self.subsystem.add_controller(kind, host).ok_or(Status::INTERNAL)?;
        let id = controller.id;
        let admin = Admin::new(Arc::clone(&self.subsystem), controller, self.address, keep_alive_ms);
        Ok((Role::Admin(admin), id))
    }

    fn io(&self, host: Host, id: u16, queue: u16) -> Result<Role, Fault> {
        let controller = self.subsystem.controller(id).filter(|controller| controller.kind == Kind::Io);
        let controller = controller.ok_or(Wrong::Data(16))?;
        if controller.host != host {
            return Err(Status::CONNECT_HOST.into());
        }
        let connection = Arc::clone(&self.connection);
        let io = Io::new(Arc::clone(&self.subsystem), Arc::clone(&controller), connection, queue);
        match controller.add_queue(queue, &self.connection) {
            true => Ok(Role::Io(io)),
            false => Err(Status::SEQUENCE.into()),
        }
    }
}

impl Commands for Connecting {
    fn moves(&mut self, command: &Command) -> Result<Moves, Status> {
        match (command.opcode(), command.fabrics_type()) {
            (fabrics::OPCODE, fabrics::CONNECT) => Ok(Moves::WholeFromHost(DATA_BYTES)),
            _ => Err(Status::SEQUENCE),
        }
    }

    fn run(&mut self, _: &Command) -> Outcome {
        Err(Status::SEQUENCE.into())
    }

    fn fill(&mut self, _: &Command, _: &mut [u8]) -> Outcome {
        Err(Status::SEQUENCE.into())
    }

    fn take(&mut self, command: &Command, _at: u32, data: &[u8]) -> Outcome {
        let id = self.connect(command, data)?;
        Done::with(id as u64)
    }

    fn is_over(&self) -> bool {
        self.role.is_some()
    }
}
