//! Hardware transactions (section 6): the old copies of pages a transaction changes are kept, and protected
//! from the cleaner, until it is committed or aborted. One at a time.
//!
//! A *shadow* is the old version of one page: a flash page, a slot of the buffer, or nothing. It owns its
//! copy as a logical page does, so that cleaning and flushing move it instead of dropping it. A page that was
//! in SRAM gets a new slot; the shadow keeps the old one.
//!
//! The transaction record in SRAM is the commit point: one word. Shadows carry the number of their
//! transaction, so they need not be erased.

use super::{Envy, EnvyConfig, NOTHING, SHADOW, SLOT};
use crate::ControllerError;
use nvlab_medium::Store;
use nvlab_units::{Lpa, Served, Span, Time};

/// The old version of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shadow {
    pub lpa: Lpa,
    pub location: u32,
}

/// The transaction.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub open: bool,
    /// The number of the last transaction begun.
    pub number: u64,
    pub shadows: Vec<Shadow>,
    limit: u32,
    /// One bit per logical page: whether it has a shadow.
    held: Vec<u64>,
}

impl Transaction {
    pub fn new(config: &EnvyConfig) -> Transaction {
        let limit = config.transaction_pages;
        let words = if limit > 0 { config.logical_pages.div_ceil(64) } else { 0 };
        Transaction {
            open: false,
            number: 0,
            shadows: Vec::with_capacity(limit as usize),
            limit,
            held: vec![0; words as usize],
        }
    }

    /// True if a page that is about to change needs a shadow first.
    #[inline]
    pub fn must_hold(&self, lpa: Lpa) -> bool {
        self.open && !self.holds(lpa)
    }

    pub fn holds(&self, lpa: Lpa) -> bool {
        self.held[lpa.index() / 64] & 1 << (lpa.0 % 64) != 0
    }

    /// Fails if no further page may change.
    pub fn check_room(&self) -> Result<(), ControllerError> {
        match self.count() < self.limit {
            true => Ok(()),
            false => Err(ControllerError::TransactionFull { pages: self.limit }),
        }
    }

    pub fn count(&self) -> u32 {
        self.shadows.len() as u32
    }

    /// The location of a shadow; `NOTHING` if it no longer exists.
    pub fn location(&self, shadow: u32) -> u32 {
        self.shadows.get(shadow as usize).map_or(NOTHING, |shadow| shadow.location)
    }

    pub fn set_location(&mut self, shadow: u32, location: u32) {
        self.shadows[shadow as usize].location = location;
    }

    fn close(&mut self) {
        self.open = false;
        for shadow in self.shadows.drain(..) {
            self.held[shadow.lpa.index() / 64] &= !(1 << (shadow.lpa.0 % 64));
        }
    }
}

impl<S: Store> Envy<S> {
    /// Begins a transaction: further stores are committed or undone as a whole.
    ///
    /// Errors: [`ControllerError::TransactionOpen`]; [`ControllerError::TransactionFull`] if the configuration
    /// allows no transactions.
    pub fn begin(&mut self, at: Time) -> Result<Served, ControllerError> {
        if self.transaction.open {
            return Err(ControllerError::TransactionOpen);
        }
        self.transaction.check_room()?;
        self.advance(at);
        let served = self.access(at.max(self.written), None, self.cycle());
        self.transaction.open = true;
        self.transaction.number += 1;
        self.publish_transaction((served.start, served.end));
        Ok(served)
    }

    /// Commits the stores of the transaction; they are durable at the end, as a whole.
    ///
    /// Errors: [`ControllerError::NoTransaction`].
    pub fn commit(&mut self, at: Time) -> Result<Served, ControllerError> {
        if !self.transaction.open {
            return Err(ControllerError::NoTransaction);
        }
        self.advance(at);
        let served = self.access(at.max(self.written), None, self.cycle());
        self.transaction.open = false;
        self.publish_transaction((served.start, served.end));
        for shadow in 0..self.transaction.count() {
            self.drop_location(self.transaction.location(shadow));
        }
        self.transaction.close();
        self.stats.commits += 1;
        Ok(served)
    }

    /// Undoes the stores of the transaction: every page it changed is restored.
    ///
    /// Errors: [`ControllerError::NoTransaction`].
    pub fn abort(&mut self, at: Time) -> Result<Served, ControllerError> {
        if !self.transaction.open {
            return Err(ControllerError::NoTransaction);
        }
        self.advance(at);
        let start = at.max(self.written);
        let mut end = start;
        for shadow in 0..self.transaction.count() {
            let served = self.access(end, None, self.cycle());
            self.roll_back(served, shadow);
            end = served.end;
        }
        let served = self.access(end, None, self.cycle());
        self.transaction.open = false;
        self.publish_transaction((served.start, served.end));
        self.transaction.close();
        self.stats.aborts += 1;
        Ok(Served { start, end: served.end })
    }

    /// One access to a word of SRAM.
    fn cycle(&self) -> Span {
        self.config.control + self.sram.config().write.first
    }

    /// Makes a shadow of the version of a page at `location`.
    pub(super) fn hold(&mut self, lpa: Lpa, location: u32) -> u32 {
        let shadow = self.transaction.count();
        self.transaction.shadows.push(Shadow { lpa, location });
        self.transaction.held[lpa.index() / 64] |= 1 << (lpa.0 % 64);
        self.give(location, shadow | SHADOW);
        shadow
    }

    /// Changes the owner of a location.
    fn give(&mut self, location: u32, owner: u32) {
        match location {
            NOTHING => {}
            location if location & SLOT != 0 => {
                self.buffer.slots[(location & !SLOT) as usize].owner = owner;
            }
            page => self.p2l[page as usize] = owner,
        }
    }

    fn roll_back(&mut self, served: Served, shadow: u32) {
        let Shadow { lpa, location } = self.transaction.shadows[shadow as usize];
        self.drop_location(self.l2p[lpa.index()]);
        self.l2p[lpa.index()] = location;
        self.give(location, lpa.0);
        if S::KEEPS {
            self.publish_rollback((served.start, served.end), lpa, shadow);
        }
    }
}
