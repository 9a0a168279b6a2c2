//! The status of a log on a [`Store`]: two copies, of which a power failure tears at most one.
//!
//! 1. A copy is replaced and synced before the other is touched, the worse copy first: at any moment one is whole.
//! 2. Once a write has returned, both copies are the same: damage to either is tolerated.
//! 3. Of two whole copies the one with the higher sequence holds, and of the same sequence the one with the higher
//!    mark.
//! 4. Everything before the *mark* was durable when that was written, together with an append and not synced on its
//!    own: a record before it that cannot be read was damaged. At most 1 MiB after it is durable, unless one append
//!    is longer. The copies take turns: when one gets a mark, that of the other is durable.
//!
//! # Format, version 1
//!
//! The copies begin 4096 B apart, so that even a device of 4 KiB sectors tears only one. Each is one sector:
//! 64 B as below (integers little-endian), zeros to its end.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | `nvlabrvm` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | bytes of a sector |
//! | 16 | 4 | kind of the log, four letters |
//! | 20 | 8 | identity |
//! | 28 | 8 | generation |
//! | 36 | 8 | head |
//! | 44 | 8 | capacity in bytes |
//! | 52 | 8 | sequence: counts writes of the status |
//! | 60 | 4 | CRC-32C of the bytes before |
//! | 64 | 8 | mark |
//! | 72 | 4 | CRC-32C of identity, generation and mark; logs of earlier programs have zeros here, and no mark |

use crate::checksum::crc32c;
use crate::log::Status;
use crate::{Error, Result, Store};

/// What every log of this crate begins with.
pub const MAGIC: [u8; 8] = *b"nvlabrvm";
/// Version of the on-disk format; others are refused.
pub const VERSION: u32 = 1;
/// Bytes from the beginning of one copy to that of the other.
const SPACING: u64 = 4096;
/// Bytes of both copies and what is between them: the log proper may begin here.
pub const BYTES: u64 = 2 * SPACING;

/// At most this much is durable behind the mark.
pub(crate) const MARK_BYTES: u64 = 1 << 20;

const ENCODED: usize = 76;
const CHECKED: usize = 60;

/// What the two copies hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copy {
    sector_bytes: u32,
    kind: [u8; 4],
    capacity: u64,
    sequence: u64,
    status: Status,
    mark: Option<u64>,
}

impl Copy {
    /// The newer of two copies has the greater. Marks that were given up are those of an earlier sequence.
    fn age(&self) -> (u64, Option<u64>) {
        (self.sequence, self.mark)
    }

    fn mark_crc(&self, mark: u64) -> u32 {
        let Status { identity, generation, .. } = self.status;
        crc32c(&[[identity, generation, mark].map(u64::to_le_bytes).as_flattened()])
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.sector_bytes as usize);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.sector_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.kind);
        let Status { identity, generation, head } = self.status;
        for field in [identity, generation, head, self.capacity, self.sequence] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32c(&[&bytes]).to_le_bytes());
        if let Some(mark) = self.mark {
            bytes.extend_from_slice(&mark.to_le_bytes());
            bytes.extend_from_slice(&self.mark_crc(mark).to_le_bytes());
        }
        bytes.resize(self.sector_bytes as usize, 0);
        bytes
    }

    /// The copy, or the place within it and what is wrong there.
    fn decode(bytes: &[u8; ENCODED]) -> std::result::Result<Copy, (u64, String)> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        if bytes[..8] != MAGIC {
            return Err((0, "this is not a log: it does not begin with \"nvlabrvm\"".into()));
        }
        // A version is believed only if it is not a damaged byte: ours has a checksum at 60, as any later will.
        if word(CHECKED) != crc32c(&[&bytes[..CHECKED]]) {
            return Err((CHECKED as u64, "the status does not match its checksum".into()));
        }
        if word(8) != VERSION {
            return Err((8, format!("version {}; this program knows version {VERSION}", word(8))));
        }
        let sector_bytes = word(12);
        if !is_sector(sector_bytes) {
            return Err((12, format!("a sector of {sector_bytes} B")));
        }
        let kind = bytes[16..20].try_into().expect("4 bytes");
        let status = Status { identity: long(20), generation: long(28), head: long(36) };
        let found = Copy { sector_bytes, kind, capacity: long(44), sequence: long(52), status, mark: None };
        let mark = Some(long(64)).filter(|&mark| found.mark_crc(mark) == word(72));
        Ok(Copy { mark, ..found })
    }
}

/// Whether this is a supported sector size.
fn is_sector(bytes: u32) -> bool {
    bytes.is_power_of_two() && (512..=SPACING as u32).contains(&bytes)
}

/// The kind of the log on a store; `None` if there is no status, an error if there is one but neither copy is whole.
pub fn kind(store: &dyn Store, name: &str) -> Result<Option<[u8; 4]>> {
    let mut first = None;
    for slot in [0, 1] {
        match StatusPair::read(store, name, slot * SPACING) {
            Ok(copy) => return Ok(Some(copy.kind)),
            Err(error @ Error::Format { .. }) => drop(first.get_or_insert(error)),
            Err(error) => return Err(error),
        }
    }
    match first {
        // It does not begin with the magic, or is too short for it.
        Some(Error::Format { offset, .. }) if offset < 8 => Ok(None),
        Some(error) => Err(error),
        None => Ok(None),
    }
}

/// The status of a log on a store.
#[derive(Debug)]
pub struct StatusPair {
    offset: u64,
    /// The copy to replace first.
    worse: u64,
    /// It has a mark that the other one has not.
    is_marked: bool,
    copy: Copy,
}

impl StatusPair {
    /// Writes the status of a new log with head and generation 0; durable when it returns. The copies take [`BYTES`] from
    /// `offset` on, and each is written as one sector of 512, 1024, 2048 or 4096 bytes.
    pub fn create(
        store: &dyn Store,
        name: &str,
        offset: u64,
        kind: [u8; 4],
        sector_bytes: u32,
        identity: u64,
        capacity: u64,
    ) -> Result<StatusPair> {
        if !is_sector(sector_bytes) {
            let why = format!("a sector of {sector_bytes} B: it must be 512, 1024, 2048 or 4096 B");
            return Err(Error::Invalid(why));
        }
        let status = Status { identity, generation: 0, head: 0 };
        let copy = Copy { sector_bytes, kind, capacity, sequence: 0, status, mark: None };
        let mut pair = StatusPair { offset, worse: 0, is_marked: false, copy };
        pair.write(store, name, status)?;
        Ok(pair)
    }

    /// Finds the status of a log of this kind.
    pub fn open(store: &dyn Store, name: &str, offset: u64, kind: [u8; 4]) -> Result<StatusPair> {
        let copies = [0, 1].map(|slot| Self::read(store, name, offset + slot * SPACING));
        let (worse, copy) = match copies {
            [Ok(first), Ok(second)] if second.age() > first.age() => (0, second),
            [Ok(first), Ok(_)] => (1, first),
            [Ok(first), Err(Error::Format { .. })] => (1, first),
            [Err(Error::Format { .. }), Ok(second)] => (0, second),
            [Err(error), _] | [_, Err(error)] => return Err(error),
        };
        if copy.kind != kind {
            let [found, wanted] = [copy.kind, kind].map(|kind| kind.escape_ascii().to_string());
            let why = format!("a log of kind \"{found}\" where \"{wanted}\" was expected");
            let offset = offset + (1 - worse) * SPACING + 16;
            return Err(Error::Format { what: name.into(), offset, why });
        }
        Ok(StatusPair { offset, worse, is_marked: false, copy })
    }

    fn read(store: &dyn Store, name: &str, offset: u64) -> Result<Copy> {
        let length = store.len().map_err(Error::io("read the length of", &name))?;
        if length < offset + ENCODED as u64 {
            let why = format!("this is not a log: it ends at {length} B, before its status");
            return Err(Error::Format { what: name.into(), offset: length, why });
        }
        let mut bytes = [0; ENCODED];
        store.read(&mut bytes, offset).map_err(Error::io("read the status of", &name))?;
        Copy::decode(&bytes).map_err(|(at, why)| Error::Format {
            what: name.into(),
            offset: offset + at,
            why,
        })
    }

    /// Replaces the status; durable when it returns. A power failure during the call leaves the old or the new one. After an
    /// error nobody knows which it is.
    pub fn write(&mut self, store: &dyn Store, name: &str, status: Status) -> Result<()> {
        let mark = Some(self.marked_or_head().max(status.head));
        let copy = Copy { sequence: self.copy.sequence + 1, status, mark, ..self.copy };
        let bytes = copy.encode();
        for slot in [self.worse, 1 - self.worse] {
            store
                .write(&bytes, self.offset + slot * SPACING)
                .and_then(|()| store.sync())
                .map_err(Error::io("write the status of", &name))?;
        }
        (self.copy, self.is_marked) = (copy, false);
        Ok(())
    }

    /// A position before which everything was durable; `None` if an earlier program wrote the log.
    pub(crate) fn mark(&self) -> Option<u64> {
        self.copy.mark
    }

    fn marked_or_head(&self) -> u64 {
        self.copy.mark.unwrap_or(0).max(self.copy.status.head)
    }

    /// Called before an append that ends at `end`, when everything before `forced` is durable: moves the mark there if that
    /// append would end too far behind it, and returns whether it did. The caller syncs it with the append or before.
    #[inline]
    pub(crate) fn mark_before(
        &mut self,
        store: &dyn Store,
        name: &str,
        forced: u64,
        end: u64,
    ) -> Result<bool> {
        let marked = self.marked_or_head();
        if end <= marked + MARK_BYTES || forced <= marked {
            return Ok(false);
        }
        if self.is_marked {
            // That mark has been synced, for what was appended with it has been forced: it is not the one to be torn now.
            self.worse = 1 - self.worse;
        }
        (self.copy.mark, self.is_marked) = (Some(forced), true);
        let written = store.write(&self.copy.encode(), self.offset + self.worse * SPACING);
        written.map_err(Error::io("write the mark of", &name)).map(|()| true)
    }

    /// Moves the mark back to `tail`: what was durable behind it is given up.
    pub(crate) fn cut(&mut self, store: &dyn Store, name: &str, tail: u64) -> Result<()> {
        self.copy.mark = self.copy.mark.map(|mark| mark.min(tail));
        self.write(store, name, self.copy.status)
    }

    /// Writes the copy that was found once more, to be synced by the caller. If the device has it, a power failure meanwhile
    /// changes nothing; if only a cache has it, the other copy is whole.
    pub(crate) fn rewrite(&self, store: &dyn Store, name: &str) -> Result<()> {
        let written = store.write(&self.copy.encode(), self.offset + (1 - self.worse) * SPACING);
        written.map_err(Error::io("write the status of", &name))
    }

    /// The status that is durable.
    pub fn status(&self) -> Status {
        self.copy.status
    }

    /// Bytes of records that the log can hold.
    pub fn capacity(&self) -> u64 {
        self.copy.capacity
    }

    /// Bytes that a power failure tears as one: 512, 1024, 2048 or 4096.
    pub fn sector_bytes(&self) -> u32 {
        self.copy.sector_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::Mutex;

    const KIND: [u8; 4] = *b"test";

    /// Bytes, and the number of writes until one is torn and fails; 0 is never.
    #[derive(Debug, Default)]
    struct Bytes(Mutex<(Vec<u8>, u32)>);

    impl Store for Bytes {
        fn len(&self) -> io::Result<u64> {
            Ok(self.0.lock().unwrap().0.len() as u64)
        }
        fn read(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
            into.copy_from_slice(&self.0.lock().unwrap().0[offset as usize..][..into.len()]);
            Ok(())
        }
        fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
            let mut state = self.0.lock().unwrap();
            state.1 = state.1.wrapping_sub(1);
            let torn = state.1 == 0;
            let bytes = if torn { 30 } else { data.len() };
            state.0[offset as usize..][..bytes].copy_from_slice(&data[..bytes]);
            if torn { Err(io::Error::other("cut")) } else { Ok(()) }
        }
        fn set_len(&self, bytes: u64) -> io::Result<()> {
            self.0.lock().unwrap().0.resize(bytes as usize, 0);
            Ok(())
        }
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn created() -> (Bytes, StatusPair) {
        let store = Bytes::default();
        store.set_len(BYTES + 512).unwrap();
        let pair = StatusPair::create(&store, "a log", 512, KIND, 512, 7, 1 << 20).unwrap();
        (store, pair)
    }

    #[test]
    fn a_torn_write_leaves_the_old_status_or_the_new_one() {
        for cut in 1..=4 {
            let (store, mut pair) = created();
            store.0.lock().unwrap().1 = cut;
            let mut before = pair.status();
            let (old, new) = loop {
                let next = Status { head: before.head + 100, ..before };
                match pair.write(&store, "a log", next) {
                    Ok(()) => before = next,
                    Err(_) => break (before, next),
                }
            };
            let mut again = StatusPair::open(&store, "a log", 512, KIND).unwrap();
            assert_eq!(again.status(), if cut % 2 == 1 { old } else { new }, "write {cut}");
            // The torn copy is replaced first: a second cut does not take the whole one.
            store.0.lock().unwrap().1 = 1;
            again.write(&store, "a log", old).unwrap_err();
            let found = StatusPair::open(&store, "a log", 512, KIND).unwrap().status();
            assert_eq!(found, again.status(), "write {cut}");
        }
    }

    #[test]
    fn any_flipped_bit_is_tolerated_in_one_copy_and_named_in_both() {
        let (store, mut pair) = created();
        let status = Status { identity: 7, generation: 3, head: 900 };
        pair.write(&store, "a log", status).unwrap();
        for bit in 0..(CHECKED + 4) * 8 {
            let flip = |slot: usize| {
                store.0.lock().unwrap().0[512 + slot * SPACING as usize + bit / 8] ^= 1 << (bit % 8);
            };
            for slot in [0, 1] {
                flip(slot);
                assert_eq!(StatusPair::open(&store, "a log", 512, KIND).unwrap().status(), status);
                flip(slot);
            }
            [0, 1].into_iter().for_each(flip);
            let error = StatusPair::open(&store, "a log", 512, KIND).unwrap_err();
            let Error::Format { offset, .. } = error else { panic!("{error}") };
            assert_eq!(offset, if bit < 64 { 512 } else { 512 + 60 }, "bit {bit}");
            [0, 1].into_iter().for_each(flip);
        }
    }

    /// The mark moves when an append would end more than 1 MiB behind it; a torn or damaged one leaves the one before.
    #[test]
    fn the_mark_moves_with_appends_and_with_the_head() {
        let (store, mut pair) = created();
        let found = || StatusPair::open(&store, "a log", 512, KIND).unwrap().mark();
        assert_eq!(found(), Some(0));
        for (forced, end, moves) in
            [(500, MARK_BYTES, false), (0, 3 * MARK_BYTES, false), (700, MARK_BYTES + 1, true)]
        {
            assert_eq!(pair.mark_before(&store, "a log", forced, end).unwrap(), moves);
        }
        assert_eq!(found(), Some(700));
        let at = 512 + pair.worse as usize * SPACING as usize + 64;
        store.0.lock().unwrap().0[at] ^= 1;
        assert_eq!(found(), Some(0));
        pair.write(&store, "a log", Status { head: 600, ..pair.status() }).unwrap();
        assert_eq!(found(), Some(700));
        pair.write(&store, "a log", pair.status().next_generation(2000)).unwrap();
        assert_eq!(found(), Some(2000));
        // As programs before this one wrote it.
        for slot in [0, 1] {
            store.0.lock().unwrap().0[512 + slot * SPACING as usize + 64..][..12].fill(0);
        }
        assert_eq!(found(), None);
    }

    /// Two marks are in different copies: if the second is torn or damaged, the first counts, not the status before both.
    #[test]
    fn a_damaged_mark_leaves_the_one_before() {
        let (store, mut pair) = created();
        for forced in [700, 800, 900] {
            assert!(pair.mark_before(&store, "a log", forced, 2 * MARK_BYTES).unwrap());
        }
        for (slot, found) in [(pair.worse, 800), (1 - pair.worse, 900)] {
            let at = 512 + (slot * SPACING) as usize + 3;
            store.0.lock().unwrap().0[at] ^= 1;
            let again = StatusPair::open(&store, "a log", 512, KIND).unwrap();
            assert_eq!((again.mark(), again.worse), (Some(found), slot));
            store.0.lock().unwrap().0[at] ^= 1;
        }
        // The one that a cache may have alone is written again; the other is whole.
        let again = StatusPair::open(&store, "a log", 512, KIND).unwrap();
        assert_eq!((again.mark(), again.worse), (Some(900), 1 - pair.worse));
    }

    /// The power fails when one copy has the mark that was moved back, and the other the old one.
    #[test]
    fn a_mark_that_was_given_up_is_not_found_again() {
        let (store, mut pair) = created();
        pair.mark_before(&store, "a log", 700, 2 * MARK_BYTES).unwrap();
        pair.write(&store, "a log", pair.status()).unwrap();
        store.0.lock().unwrap().1 = 2;
        pair.cut(&store, "a log", 500).unwrap_err();
        assert_eq!(StatusPair::open(&store, "a log", 512, KIND).unwrap().mark(), Some(500));
    }

    #[test]
    fn other_versions_kinds_and_files_are_refused_with_the_offset() {
        let (store, _) = created();
        let message =
            |store: &Bytes, kind| StatusPair::open(store, "a log", 512, kind).unwrap_err().to_string();
        assert_eq!(
            message(&store, *b"disk"),
            "a log at byte 528: a log of kind \"test\" where \"disk\" was expected"
        );
        for slot in [0, 1] {
            let at = 512 + slot * SPACING as usize;
            let mut state = store.0.lock().unwrap();
            state.0[at + 8] = 2;
            let crc = crc32c(&[&state.0[at..at + CHECKED]]);
            state.0[at + CHECKED..at + CHECKED + 4].copy_from_slice(&crc.to_le_bytes());
        }
        assert_eq!(message(&store, KIND), "a log at byte 520: version 2; this program knows version 1");
        let empty = Bytes::default();
        assert_eq!(
            message(&empty, KIND),
            "a log at byte 0: this is not a log: it ends at 0 B, before its status"
        );
    }
}
