//! The persistence domain of a heap: how its stores are made durable, as requested and as possible where its file lies.

use crate::error::{Error, Result};
use crate::place::Place;
use crate::simulated::Simulated;
use nvlab_os::Flush;
use std::path::Path;
use std::sync::Arc;

/// How the stores of a heap are made durable.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Persistence {
    /// Cache-line flushes if the file lies in memory (DAX: survives power loss; tmpfs: a killed process, not power loss),
    /// fences only in a memory window, msync elsewhere.
    #[default]
    Detect,
    /// Flushes with this instruction. Refused for a file on a disk, where flushed lines only reach the page cache.
    Lines(Flush),
    /// The caches themselves are persistent (eADR): fences only. The program guarantees that: it is not detected.
    /// Refused for a file on a disk.
    Caches,
    /// msync: for every file and block device, at the cost of a system call for each transaction. Refused in a memory
    /// window, whose device msync does not reach.
    Sync,
    /// Neither flushes nor fences: a killed program loses nothing, a power cut or a crash of the system may leave the
    /// file damaged. Transactions are still atomic and isolated. For heaps that need not survive a restart.
    Process,
    /// A simulated cache, for tests.
    Simulated(Arc<Simulated>),
}

/// The persistence domain of a heap.
#[derive(Clone, Debug)]
pub(crate) enum Domain {
    Lines(Flush),
    Caches,
    Sync,
    Process,
    /// Of recoverable memory.
    Log,
    Simulated(Arc<Simulated>),
}

/// How a file is made durable as requested; refused where that would have no effect.
pub(crate) fn domain(
    persistence: &Persistence,
    path: &Path,
    place: Place,
    in_memory: bool,
) -> Result<Domain> {
    let refuse = |what: &str| {
        Err(Error::NotPersistent(format!(
            "{} is on a disk: {what} leave its changes in the page cache; use Persistence::Sync",
            path.display()
        )))
    };
    match persistence {
        // A store to a window is durable when it is done.
        Persistence::Detect if place == Place::Window => Ok(Domain::Caches),
        Persistence::Detect => match Flush::detect().filter(|_| in_memory) {
            Some(flush) => Ok(Domain::Lines(flush)),
            None => Ok(Domain::Sync),
        },
        Persistence::Lines(_) if !in_memory => refuse("cache-line flushes"),
        Persistence::Caches if !in_memory => refuse("persistent caches"),
        Persistence::Lines(flush) if !flush.is_supported() => {
            Err(Error::Invalid(format!("this processor has no {flush:?}")))
        }
        Persistence::Lines(flush) => Ok(Domain::Lines(*flush)),
        Persistence::Caches => Ok(Domain::Caches),
        Persistence::Sync if place == Place::Window => Err(Error::NotPersistent(format!(
            "{} is a memory window: msync does not reach its device; use Persistence::Detect",
            path.display()
        ))),
        Persistence::Sync => Ok(Domain::Sync),
        Persistence::Process => Ok(Domain::Process),
        Persistence::Simulated(simulated) => Ok(Domain::Simulated(simulated.clone())),
    }
}
