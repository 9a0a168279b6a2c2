//! The header of an object: how many refer to it, and its type.

use super::shadow::HEADER_KIND;
use super::{Private, RawTx};
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

/// References and type of an object: strong 28 bits, weak 20 bits, type + 1 in 16 bits; 0 if it is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta(pub u64);

pub(crate) const STRONG_MAX: u64 = (1 << 28) - 1;
pub(crate) const WEAK_MAX: u64 = (1 << 20) - 1;

impl Meta {
    pub fn new(strong: u64, weak: u64, tag: u16) -> Meta {
        Meta(u64::from(tag) << 48 | weak << 28 | strong)
    }
    pub fn strong(self) -> u64 {
        self.0 & STRONG_MAX
    }
    pub fn weak(self) -> u64 {
        self.0 >> 28 & WEAK_MAX
    }
    /// 0 if the block is free.
    pub fn tag(self) -> u16 {
        (self.0 >> 48) as u16
    }
}

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
