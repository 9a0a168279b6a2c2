//! The header of an object: its reference counts and its type.

use super::shadow::HEADER_KIND;
use super::{Private, RawTx};
use crate::block::Meta;
use crate::error::Result;

impl<'t> RawTx<'t> {
    /// The two words of an object's header behind the lock, to be read or changed.
    pub fn header(self, at: u64) -> Result<Header<'t>> {
        Ok(Header(self.change(at, at + 8, 2, HEADER_KIND)?))
    }
}

/// The private copy of an object's header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header<'t>(Private<'t>);

impl Header<'_> {
    pub fn meta(self) -> Meta {
        // SAFETY: the private copy has two words; headers are not borrowed.
        Meta(unsafe { *self.0.data })
    }
    pub fn set_meta(self, meta: Meta) {
        // SAFETY: as above.
        unsafe { *self.0.data = meta.0 }
    }
    pub fn link(self) -> u64 {
        // SAFETY: as above.
        unsafe { *self.0.data.add(1) }
    }
    pub fn set_link(self, link: u64) {
        // SAFETY: as above.
        unsafe { *self.0.data.add(1) = link }
    }
}
