//! A page that is copied inside the device: its payload stays where the store keeps it, and a copy is one more name for it
//! ([`Data::Copies`]).
//!
//! Data that need not be verified when it is read is not looked at when it is copied either: the checksum of the copy follows from that
//! of the page, and matches the data if that does ([`Spare::encode_copy`]).

use super::BlockMap;
use crate::spare::{self, Kind, Spare};
use nvlab_medium::Store;
use nvlab_medium::flash::SPARE_BYTES;
use nvlab_medium::flash::nand::{Data, Payload};
use nvlab_units::{Lpa, Ppa};

/// What the next copy of a page is programmed with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Copied {
    spare: [u8; SPARE_BYTES],
    /// The page whose payload it shares; `None`: its bytes were fetched.
    from: Option<Ppa>,
}

impl Copied {
    /// The payload; `page`: what was fetched.
    pub fn payload<'a>(&'a self, page: &'a [u8]) -> Payload<'a> {
        let data =
            self.from.as_ref().map_or(Data::Bytes(page), |from| Data::Copies(std::slice::from_ref(from)));
        Payload { data, spare: &self.spare }
    }
}

impl<S: Store> BlockMap<S> {
    /// Prepares a copy of the newest version of a page to array `into`. If it cannot share the payload, this is in `self.page`.
    pub(super) fn fetch(&mut self, lpa: Lpa, kind: Kind, into: usize) -> Copied {
        if !S::KEEPS {
            return Copied::default();
        }
        let address = self.newest(lpa).unwrap_or_else(|| panic!("page {lpa} holds nothing to be copied"));
        let (area, page) = self.locate(address);
        let (unit, stamp, shares) = (Ppa(page), self.stamp, area == into);
        self.stamp += 1;
        let nand = &mut self.areas[area].nand;
        let beside = nand.spare(unit).unwrap_or_default();
        let trusted = shares && !spare::is_to_verify(nand, self.config.verify_reads, unit, 1);
        let mut found = Spare::alone(&beside).filter(|found| trusted && !found.damaged);
        if found.is_none() {
            found = spare::peek(nand, unit, &mut self.page).ok();
        }
        assert!(found.is_none_or(|found| found.lpa == lpa), "page {lpa} at {address} holds {found:?}");
        match found {
            Some(found) if shares && !found.damaged => {
                if !trusted {
                    nand.set_verified(unit);
                }
                let copy = Spare { kind, stamp, ..found };
                Copied { spare: copy.encode_copy(&self.changes, &beside), from: Some(unit) }
            }
            // Data that does not match its checksum is copied as it is; its reads fail ([`BlockMap::note_copied`]). If its sequence
            // number is lost, the last one assigned will do: it is the newest copy of its page.
            found => {
                let damaged = found.is_none_or(|found| found.damaged);
                let sequence = found.map_or(self.sequence - 1, |found| found.sequence);
                let copy = Spare { kind, damaged, lpa, sequence, stamp };
                Copied { spare: copy.encode(&self.page), from: None }
            }
        }
    }

    /// A copy was programmed.
    #[inline]
    pub(super) fn note_copied(&mut self, area: usize, page: u32, copied: &Copied) {
        if S::KEEPS && Spare::says_damaged(&copied.spare) {
            self.areas[area].nand.doubt(Ppa(page));
        }
    }
}
