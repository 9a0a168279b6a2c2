//! Volatile references of a program to objects, valid between transactions.

use super::{Handle, Read, Strong, Write, offset, read, write};
use crate::error::{Error, Result};
use crate::mutex::locked;
use crate::persist::{Brand, Persist};
use crate::tx::Tx;
use nvlab_os::afresh;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::sync::Arc;

impl<T: Persist<H>, H: Brand> Handle<T, H> {
    pub(crate) fn new(tx: &Tx<'_, H>, word: NonZeroU64) -> Result<Self> {
        let core =
            tx.raw.core().this.upgrade().ok_or_else(|| Error::Invalid("the heap is being closed".into()))?;
        *locked(&core.handles).entry(offset(word)).or_default() += 1;
        Ok(Handle { word, core: Arc::downgrade(&core), of: PhantomData })
    }

    /// Refuses another heap of the brand.
    fn check(&self, tx: &Tx<'_, H>) -> Result<()> {
        match std::ptr::eq(self.core.as_ptr(), tx.raw.core()) {
            true => Ok(()),
            false => Err(tx
                .raw
                .doom(Error::Invalid("the handle is of another heap, or of one that was closed".into()))),
        }
    }

    /// The value, for reading.
    // A store behind the fence of the last commit waits for it, and there is room for a few dozen: calls would fill it.
    #[inline(always)]
    pub fn read<'t>(&self, tx: &'t Tx<'_, H>) -> Result<Read<'t, T>> {
        let handle = afresh(self);
        handle.check(tx)?;
        read::<T, H>(tx.raw, handle.word)
    }

    /// The value, borrowed mutably.
    #[inline]
    pub fn write<'t>(&self, tx: &'t Tx<'_, H>) -> Result<Write<'t, T>> {
        let handle = afresh(self);
        handle.check(tx)?;
        write::<T, H>(tx.raw, handle.word)
    }

    /// A persistent pointer to the object; `None` if it has lost its last one and is kept alive only by its handles.
    pub fn strong(&self, tx: &Tx<'_, H>) -> Result<Option<Strong<T, H>>> {
        self.check(tx)?;
        let header = tx.raw.header(offset(self.word))?;
        (header.meta().strong() > 0).then(|| Strong::counted(tx.raw, header, self.word)).transpose()
    }
}

impl<T, H: Brand> Clone for Handle<T, H> {
    fn clone(&self) -> Self {
        if let Some(core) = self.core.upgrade() {
            *locked(&core.handles).entry(offset(self.word)).or_default() += 1;
        }
        Handle { word: self.word, core: self.core.clone(), of: PhantomData }
    }
}

impl<T, H: Brand> Drop for Handle<T, H> {
    fn drop(&mut self) {
        let Some(core) = self.core.upgrade() else { return };
        crate::reap::drop_handle(&core, offset(self.word));
    }
}

impl<T, H: Brand> fmt::Debug for Handle<T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({:#x})", offset(self.word))
    }
}
