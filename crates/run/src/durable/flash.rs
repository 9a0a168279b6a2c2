//! A NOR array as a character device: chips in lockstep, of which one step programs a byte each.
//!
//! An append of any alignment takes one step for every row of the gang that it touches: `n` bytes over `p` chips take
//! between `n / p` and `(n - 1) / p + 2` steps. System 001 counts `n / p`: its emulator delays every byte by a share of a
//! step.

use super::clock::{Activity, Clock, power_failed};
use nvlab_medium::flash::{Nor, NorConfig};
use nvlab_medium::{MediumError, MemStore, PowerCut};
use nvlab_rvm::Flash;
use nvlab_rvm::flash::{Erased, Shape};
use nvlab_units::{BlockId, Ticket, Time};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The only die: everything on the device happens one after the other.
const DIE: u32 = 0;

/// An array with its bytes in memory.
pub type Array = Nor<MemStore>;

/// A NOR array. Clones are the same device: one for the log, one to look at its counts.
#[derive(Clone, Debug)]
pub struct NorFlash {
    array: Arc<Mutex<Array>>,
    clock: Clock,
}

impl NorFlash {
    /// A factory-new array of one die.
    pub fn new(config: NorConfig, clock: Clock) -> NorFlash {
        assert_eq!(config.flash.geometry.dies(), 1, "a gang of chips in lockstep is one die");
        let store = MemStore::new(Array::store_bytes(&config.flash.geometry));
        NorFlash { array: Arc::new(Mutex::new(Nor::new(config, store))), clock }
    }

    /// The array itself.
    pub fn array(&self) -> MutexGuard<'_, Array> {
        self.array.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self, array: &mut Array, activity: Activity, end: Time) -> io::Result<()> {
        match self.clock.until(activity, end) {
            Ok(()) => {
                array.settle(end);
                Ok(())
            }
            Err(cut) => {
                array.cut(cut);
                Err(power_failed())
            }
        }
    }

    fn finish(&self, array: &mut Array, activity: Activity, ticket: Ticket) -> io::Result<()> {
        let end = array.finish(DIE, ticket, self.clock.now());
        self.done(array, activity, end)
    }
}

fn failed(error: MediumError) -> io::Error {
    io::Error::other(error.to_string())
}

impl Flash for NorFlash {
    fn name(&self) -> String {
        "the simulated flash".into()
    }

    fn shape(&self) -> Shape {
        let array = self.array();
        Shape { block_bytes: array.geometry().block_bytes(), blocks: array.geometry().blocks() }
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.clock.check()?;
        let mut array = self.array();
        let served = array.read(self.clock.now(), offset, into.len() as u64, into).map_err(failed)?;
        self.done(&mut array, Activity::Read, served.end)
    }

    fn program(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.clock.check()?;
        let mut array = self.array();
        let block = array.geometry().block_bytes();
        let mut at = offset;
        let mut rest = data;
        while !rest.is_empty() {
            let bytes = rest.len().min((block - at % block) as usize);
            let ticket = array.program(self.clock.now(), at, bytes as u64, &rest[..bytes]).map_err(failed)?;
            self.finish(&mut array, Activity::Write, ticket)?;
            (at, rest) = (at + bytes as u64, &rest[bytes..]);
        }
        Ok(())
    }

    fn erase(&mut self, block: u32) -> io::Result<Erased> {
        self.clock.check()?;
        let mut array = self.array();
        match array.erase(self.clock.now(), BlockId(block)) {
            Ok(ticket) => self.finish(&mut array, Activity::Erase, ticket).map(|()| Erased::Clean),
            Err(MediumError::EraseFailed(worn)) => {
                let ticket = array.last(DIE);
                self.finish(&mut array, Activity::Erase, ticket)?;
                array.mark_bad(worn);
                Ok(Erased::WornOut)
            }
            Err(MediumError::BadBlock(_)) => Ok(Erased::WornOut),
            Err(error) => Err(failed(error)),
        }
    }
}
