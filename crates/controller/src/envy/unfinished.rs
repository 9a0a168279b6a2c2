//! Cleans that a power cut left unfinished.
//!
//! Each page goes to a page that already holds, wholly or in part, the same bytes (flash may be programmed again
//! as long as bits are only cleared), or to a blank one. So a torn copy wastes no space, and a clean can be cut any
//! number of times.

use super::Envy;
use super::clean::CopyCause;
use super::recover::read_segment;
use super::segments::{Moving, NO_SEGMENT, Role};
use nvlab_medium::Store;
use nvlab_units::Time;
use std::collections::{HashMap, VecDeque};

impl<S: Store> Envy<S> {
    /// Copies the remaining live pages out of segments being emptied, and erases these.
    pub(super) fn finish_leaving(&mut self, at: Time) -> Result<Time, String> {
        let is_leaving = |&number: &u32| self.segments[number as usize].role == Role::Leaving;
        let leaving: Vec<u32> = (0..self.segments.len() as u32).filter(is_leaving).collect();
        let (mut now, mut moving) = (at, Vec::new());
        for &number in &leaving {
            let before = moving.len();
            self.gather(number, &mut moving);
            let reads = (moving.len() - before) as u64;
            let span = self.nor.cells().config.timing.read[0] * reads;
            now = self.nor.occupy(now, self.die_of_segment(number), reads, span).end;
        }
        let mut ends: Vec<u32> = self.segments.iter().map(|segment| segment.next).collect();
        let moving = self.complete_unrecorded(now.max(self.written), moving, &mut ends);
        for number in leaving {
            let own = moving.iter().filter(|one| self.segment_of(one.from) == number);
            let own: Vec<Moving> = own.copied().collect();
            let partner = self.segments[number as usize].partner;
            self.repeat_copies(now.max(self.written), partner, own, &mut ends)?;
            now = self.finish_all(now);
            for (segment, &end) in self.segments.iter_mut().zip(&ends) {
                if segment.role == Role::InService {
                    segment.next = segment.next.max(end);
                    segment.done = segment.next;
                }
            }
            self.erase_after_cut(now, number);
            now = self.finish_all(now);
        }
        Ok(now)
    }

    /// Finds copies that were made but not recorded and completes them: the whole ones first, so that none is taken for
    /// another page's, then the torn ones. Then uses the blank pages of segments that count as full. Returns the pages
    /// for which that did not suffice.
    fn complete_unrecorded(&mut self, at: Time, moving: Vec<Moving>, ends: &mut [u32]) -> Vec<Moving> {
        let begun = self.begun_pages(ends);
        let mut holding: HashMap<Vec<u8>, VecDeque<u32>> = HashMap::new();
        for &page in &begun {
            holding.entry(self.bytes_of(page)).or_default().push_back(page);
        }
        let mut left = Vec::with_capacity(moving.len());
        for one in moving {
            match holding.get_mut(&self.bytes_of(one.from)).and_then(VecDeque::pop_front) {
                Some(page) => self.copy_to(at, page, one, ends),
                None => left.push(one),
            }
        }
        let mut blank = holding.remove(&vec![0xFF; self.page.len()]).unwrap_or_default();
        let mut torn = self.last_torn(&begun);
        left.retain(|&one| {
            let place = torn.iter().position(|&page| self.can_take(page, one.from));
            match place.map(|place| torn.remove(place)).or_else(|| blank.pop_front()) {
                Some(page) => self.copy_to(at, page, one, ends),
                None => return true,
            }
            false
        });
        left
    }

    /// The last page of each segment that is not blank and has no owner: a die programs in order, so no other can be
    /// torn. A torn page is completed before a later page is begun.
    fn last_torn(&self, begun: &[u32]) -> Vec<u32> {
        let of_a_segment = begun.chunk_by(|&one, &other| self.segment_of(one) == self.segment_of(other));
        let written = |&&page: &&u32| self.bytes_of(page).iter().any(|&byte| byte != 0xFF);
        let last = of_a_segment.filter_map(|pages| pages.iter().rev().find(written).copied());
        last.filter(|&page| self.location(self.p2l[page as usize]) != page).collect()
    }

    /// Copies pages to blank ones, preferably the partner's: there is one for each page that was being moved.
    fn repeat_copies(
        &mut self,
        at: Time,
        partner: u32,
        moving: Vec<Moving>,
        ends: &mut [u32],
    ) -> Result<(), String> {
        let pages = self.nor.geometry().pages_per_block;
        for one in moving {
            let blank = |other: &u32| {
                self.segments[*other as usize].role == Role::InService && ends[*other as usize] < pages
            };
            let target = [partner].into_iter().chain(0..self.segments.len() as u32).find(blank);
            let Some(target) = target else {
                return Err(format!(
                    "no page is erased for the unfinished {one:?}: the segments are damaged"
                ));
            };
            self.copy_to(at, self.layout_first(target) + ends[target as usize], one, ends);
        }
        Ok(())
    }

    /// Pages programmed, possibly in part, after those recorded, that have no owner: those of partners last, as the
    /// others were being moved to a neighbour.
    fn begun_pages(&self, ends: &[u32]) -> Vec<u32> {
        let leaving = self.segments.iter().filter(|segment| segment.role == Role::Leaving);
        let partners: Vec<u32> = leaving.map(|segment| segment.partner).collect();
        let others = (0..self.segments.len() as u32).filter(|other| !partners.contains(other));
        let mut found = Vec::new();
        for segment in others.chain(partners.iter().copied()) {
            if self.segments[segment as usize].role == Role::InService {
                let known = read_segment(&self.sram, &self.map, segment).1.done;
                let first = self.layout_first(segment);
                let pages = (first + known)..(first + ends[segment as usize].max(known));
                found.extend(pages.filter(|&page| self.location(self.p2l[page as usize]) != page));
            }
        }
        found
    }

    fn copy_to(&mut self, at: Time, page: u32, moving: Moving, ends: &mut [u32]) {
        let target = self.segment_of(page);
        self.segments[target as usize].next = page - self.layout_first(target);
        self.copy(at, target, &[moving], CopyCause::Clean);
        let end = &mut ends[target as usize];
        *end = (*end).max(self.segments[target as usize].next);
    }

    /// True if a page can be programmed with the contents of `from`.
    fn can_take(&self, page: u32, from: u32) -> bool {
        let (there, wanted) = (self.bytes_of(page), self.bytes_of(from));
        there.iter().zip(&wanted).all(|(there, wanted)| there & wanted == *wanted)
    }

    fn bytes_of(&self, page: u32) -> Vec<u8> {
        let mut bytes = vec![0; self.nor.geometry().unit_bytes as usize];
        self.peek(page, 0, &mut bytes);
        bytes
    }

    fn erase_after_cut(&mut self, at: Time, number: u32) {
        let segment = &mut self.segments[number as usize];
        assert_eq!((segment.live, segment.pinned), (0, 0), "segment {number}: {segment:?}");
        (segment.role, segment.partner, segment.in_place) = (Role::Erased, NO_SEGMENT, false);
        (segment.next, segment.done, segment.erasing) = (0, 0, true);
        segment.erases += 1;
        self.record_segment(at, number);
        self.queue_erase(at, number);
    }
}
