//! A NOR array as a character device: chips in lockstep; one step programs a byte of each.
//!
//! An append of any alignment takes one step for every row of the gang that it touches: `n` bytes over `p` chips take
//! between `n / p` and `(n - 1) / p + 2` steps. System 001 counts `n / p`: its emulator delays every byte by a share of a
//! step.
//!
//! Erases may be deferred: they are executed while the array is idle, one after the other, and any other operation
//! suspends the one in progress. So the array has its own clock, on which its operations follow each other; the host
//! waits for those it issues. A program to a block with a deferred erase waits for that.

use super::clock::{Activity, Clock, power_failed};
use nvlab_medium::flash::{Nor, NorConfig};
use nvlab_medium::{MediumError, MemStore, PowerCut};
use nvlab_rvm::Flash;
use nvlab_rvm::flash::{Erased, Shape};
use nvlab_units::{BlockId, Die, Interruption, Span, Ticket, Time};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The only die: everything on the device happens one after the other.
const DIE: Die = Die(0);

/// An array with its bytes in memory.
pub type Array = Nor<MemStore>;

/// Erases that were put off, and the time of the array.
#[derive(Clone, Debug, Default)]
struct Own {
    now: Time,
    put_off: VecDeque<u32>,
    /// How far the first of them has got.
    progress: Span,
    /// Since when the host wants nothing.
    idle_from: Time,
}

/// A NOR array. Clones are the same device: one for the log, one to look at its counts.
#[derive(Clone, Debug)]
pub struct NorFlash {
    array: Arc<Mutex<Array>>,
    own: Arc<Mutex<Own>>,
    puts_off: bool,
    clock: Clock,
}

impl NorFlash {
    /// A factory-new array of one die, whose erases are put off or waited for.
    pub fn new(config: NorConfig, puts_off: bool, clock: Clock) -> NorFlash {
        assert_eq!(config.flash.geometry.dies(), 1, "a gang of chips in lockstep is one die");
        let store = MemStore::new(Array::store_bytes(&config.flash.geometry));
        let array = Arc::new(Mutex::new(Nor::new(config, store)));
        NorFlash { array, own: Arc::default(), puts_off, clock }
    }

    /// Another array, as this one would be if the power failed now and came back at once.
    pub(super) fn after_cut(&self, clock: Clock) -> NorFlash {
        let array = Arc::new(Mutex::new(self.array().clone()));
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let copy = NorFlash { array, own: Arc::new(Mutex::new(own)), puts_off: self.puts_off, clock };
        copy.clock.cut_at(copy.clock.now());
        copy.begin().expect_err("the power failed");
        copy.clock.cut_at(Time::MAX);
        copy
    }

    /// The array itself.
    pub fn array(&self) -> MutexGuard<'_, Array> {
        self.array.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every erase that was put off is done.
    pub fn drain(&self) -> io::Result<()> {
        let (mut array, mut own) = self.begin()?;
        while !own.put_off.is_empty() {
            self.wait_for_first(&mut array, &mut own)?;
        }
        self.end(&mut own);
        Ok(())
    }

    /// Called before an operation of the host: deferred erases have been executed as far as time allowed, and are
    /// suspended now.
    fn begin(&self) -> io::Result<(MutexGuard<'_, Array>, MutexGuard<'_, Own>)> {
        let (mut array, mut own) = (self.array(), self.own.lock().unwrap_or_else(PoisonError::into_inner));
        if self.clock.is_aside() {
            return Ok((array, own));
        }
        let interruption = array.cells().config.timing.interruption;
        let mut idle = self.clock.now().since(own.idle_from);
        if let Interruption::Suspend { resume, .. } = interruption
            && own.progress > Span::ZERO
        {
            idle = idle.saturating_sub(resume);
        }
        let mut is_under_way = false;
        while let Some(&block) = own.put_off.front() {
            let erase = array.erase_time(BlockId(block));
            let took = idle.min(erase.saturating_sub(own.progress));
            own.progress += took;
            idle = idle.saturating_sub(took);
            is_under_way = took > Span::ZERO;
            if own.progress < erase {
                break;
            }
            self.erased(&mut array, &mut own, block)?;
            is_under_way = false;
        }
        if let Err(cut) = self.clock.check() {
            tear(&mut array, &mut own);
            return Err(cut);
        }
        if is_under_way {
            match interruption {
                Interruption::Suspend { latency, .. } => self.clock.spend(Activity::Erase, latency),
                Interruption::Wait => self.wait_for_first(&mut array, &mut own)?,
            }
        }
        Ok((array, own))
    }

    /// The host wants nothing more for now.
    fn end(&self, own: &mut Own) {
        if !self.clock.is_aside() {
            own.idle_from = self.clock.now();
        }
    }

    /// The first of those that were put off has got to its end.
    fn erased(&self, array: &mut Array, own: &mut Own, block: u32) -> io::Result<()> {
        let ticket = array.erase(own.now, BlockId(block)).map_err(failed)?;
        own.now = array.finish(DIE, ticket, own.now);
        array.settle(own.now);
        own.put_off.pop_front();
        own.progress = Span::ZERO;
        Ok(())
    }

    fn wait_for_first(&self, array: &mut Array, own: &mut Own) -> io::Result<()> {
        let Some(&block) = own.put_off.front() else { return Ok(()) };
        let left = array.erase_time(BlockId(block)).saturating_sub(own.progress);
        let from = self.clock.now();
        if let Err(cut) = self.clock.until(Activity::Erase, from + left) {
            own.progress += cut.since(from);
            tear(array, own);
            return Err(power_failed());
        }
        self.erased(array, own, block)
    }

    /// Waits until a block is erased, if that was deferred. It is executed next.
    fn wait_for(&self, array: &mut Array, own: &mut Own, block: u32) -> io::Result<()> {
        let Some(at) = own.put_off.iter().position(|&other| other == block) else { return Ok(()) };
        let next = usize::from(own.progress > Span::ZERO).min(at);
        own.put_off.remove(at);
        own.put_off.insert(next, block);
        for _ in 0..=next {
            self.wait_for_first(array, own)?;
        }
        Ok(())
    }

    /// An operation of the array, which ends at `end` of its own time.
    fn done(&self, array: &mut Array, own: &mut Own, activity: Activity, end: Time) -> io::Result<()> {
        let (from, took) = (self.clock.now(), end.since(own.now));
        match self.clock.until(activity, from + took) {
            Ok(()) => {
                array.settle(end);
                own.now = end;
                Ok(())
            }
            Err(cut) => {
                own.now += cut.since(from);
                array.cut(own.now);
                tear(array, own);
                Err(power_failed())
            }
        }
    }

    fn finish(&self, array: &mut Array, own: &mut Own, activity: Activity, ticket: Ticket) -> io::Result<()> {
        let end = array.finish(DIE, ticket, own.now);
        self.done(array, own, activity, end)
    }
}

/// The power fails during a deferred erase; the others have not begun.
fn tear(array: &mut Array, own: &mut Own) {
    if let Some(block) = own.put_off.front()
        && own.progress > Span::ZERO
        && array.erase(own.now, BlockId(*block)).is_ok()
    {
        array.cut(own.now + own.progress);
        own.now += own.progress;
    }
    own.put_off.clear();
    own.progress = Span::ZERO;
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
        let (mut array, mut own) = self.begin()?;
        let block = array.geometry().block_bytes();
        for block in offset / block..(offset + into.len() as u64).div_ceil(block) {
            self.wait_for(&mut array, &mut own, block as u32)?;
        }
        let served = array.read(own.now, offset, into.len() as u64, into).map_err(failed)?;
        self.done(&mut array, &mut own, Activity::Read, served.end)?;
        self.end(&mut own);
        Ok(())
    }

    fn program(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let (mut array, mut own) = self.begin()?;
        let block = array.geometry().block_bytes();
        let mut at = offset;
        let mut rest = data;
        while !rest.is_empty() {
            self.wait_for(&mut array, &mut own, (at / block) as u32)?;
            let bytes = rest.len().min((block - at % block) as usize);
            let ticket = array.program(own.now, at, bytes as u64, &rest[..bytes]).map_err(failed)?;
            self.finish(&mut array, &mut own, Activity::Write, ticket)?;
            (at, rest) = (at + bytes as u64, &rest[bytes..]);
        }
        self.end(&mut own);
        Ok(())
    }

    fn erase(&mut self, block: u32) -> io::Result<Erased> {
        let (mut array, mut own) = self.begin()?;
        let erased = if self.puts_off {
            if !own.put_off.contains(&block) {
                own.put_off.push_back(block);
            }
            Erased::Clean
        } else {
            match array.erase(own.now, BlockId(block)) {
                Ok(ticket) => {
                    self.finish(&mut array, &mut own, Activity::Erase, ticket)?;
                    Erased::Clean
                }
                Err(MediumError::EraseFailed(worn)) => {
                    let ticket = array.last(DIE);
                    self.finish(&mut array, &mut own, Activity::Erase, ticket)?;
                    array.mark_bad(worn);
                    Erased::WornOut
                }
                Err(MediumError::BadBlock(_)) => Erased::WornOut,
                Err(error) => return Err(failed(error)),
            }
        };
        self.end(&mut own);
        Ok(erased)
    }
}
