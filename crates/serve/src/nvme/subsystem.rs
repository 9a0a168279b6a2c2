//! The subsystem: its namespaces, its controllers, and what it is called.

use super::controller::{Controller, Host, Kind};
use super::namespace::Namespace;
use crate::served::Drive;
use nvlab_units::Rng;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The name of every discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// The date and domain of our names.
const NQN_PREFIX: &str = "nqn.2025-01.org.nvlab:";
/// Characters of the devices' names in that of a subsystem, which may have 223 in all.
const NAMES_MAX: usize = 160;
/// Numbers of controllers end here.
const CONTROLLERS_MAX: u16 = 0xffef;
/// Entries of a queue.
pub const QUEUE_ENTRIES: u16 = 1024;

/// Devices that hosts reach at one address.
pub struct Subsystem {
    pub nqn: String,
    pub serial: String,
    pub model: String,
    pub namespaces: Vec<Namespace>,
    /// I/O queues that a controller may have.
    pub queues_max: u16,
    controllers: Mutex<Controllers>,
}

#[derive(Default)]
struct Controllers {
    all: BTreeMap<u16, Arc<Controller>>,
    last: u16,
}

/// The name of a design without its changes, and without what NQNs do not have.
fn plain(name: &str) -> String {
    let design = name.split([' ', ',']).next().unwrap_or(name);
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c.to_ascii_lowercase() } else { '-' };
    design.chars().map(keep).collect()
}

impl Subsystem {
    /// With these devices, reached at a port: two servers of a machine have different names.
    pub fn new(drives: Vec<Arc<Drive>>, port: u16, queues_max: u16) -> Subsystem {
        let names: Vec<String> = drives.iter().map(|drive| plain(drive.name())).collect();
        let mut names = names.join("-and-");
        names.truncate(NAMES_MAX);
        let nqn = format!("{NQN_PREFIX}{names}:{port}");
        let namespaces = drives.into_iter().zip(1..);
        let namespaces = namespaces.map(|(drive, number)| Namespace::new(drive, number, &nqn));
        Subsystem {
            serial: format!("{:016X}", Rng::stream(0, &nqn).bits()),
            model: format!("nvlab {names}"),
            namespaces: namespaces.collect(),
            queues_max,
            controllers: Mutex::default(),
            nqn,
        }
    }

    fn controllers(&self) -> MutexGuard<'_, Controllers> {
        // Controllers are added and removed whole.
        self.controllers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new controller for a host; `None` if all numbers are in use.
    pub fn add_controller(&self, kind: Kind, host: Host) -> Option<Arc<Controller>> {
        let mut controllers = self.controllers();
        let last = controllers.last;
        let mut numbers = (last + 1..=CONTROLLERS_MAX).chain(1..=last);
        let id = numbers.find(|id| !controllers.all.contains_key(id))?;
        let controller = Arc::new(Controller::new(id, kind, host));
        controllers.all.insert(id, Arc::clone(&controller));
        controllers.last = id;
        Some(controller)
    }

    /// The controller with a number.
    pub fn controller(&self, id: u16) -> Option<Arc<Controller>> {
        self.controllers().all.get(&id).cloned()
    }

    /// Ends a controller.
    pub fn remove_controller(&self, id: u16) {
        if let Some(controller) = self.controllers().all.remove(&id) {
            controller.end();
        }
    }

    /// The numbers of I/O controllers from `from` on.
    pub fn controller_ids(&self, from: u16) -> Vec<u16> {
        let controllers = self.controllers();
        let all = controllers.all.range(from..).filter(|(_, controller)| controller.kind == Kind::Io);
        all.map(|(&id, _)| id).collect()
    }

    /// The namespace with a number, and its place.
    pub fn namespace(&self, number: u32) -> Option<(usize, &Namespace)> {
        let index = (number as usize).checked_sub(1)?;
        self.namespaces.get(index).map(|namespace| (index, namespace))
    }
}
