//! Small cases counted by hand: geometry, writes, then copies, programs and erases.
//!
//! Four logical blocks of 8 pages (n = 8) on one die; the last page of the last is not addressable. Costs as in
//! the FAST paper: switch 1 erase; partial n - k copies and 1 erase; full n copies and 2 erases; a random victim
//! with A distinct logical blocks A n copies and A + 1 erases.

use crate::block_map::device::Setup;
use nvlab_controller::block_map::{Cause, Log, Operations};
use nvlab_controller::{BlockMap, Controller};
use nvlab_units::{Extent, Lpa, Span, Time};

/// Writes every logical page once, in place, and begins counting.
fn filled(setup: &Setup) -> Run {
    let mut run = Run { device: setup.with(|_| ()), now: Time::ZERO };
    run.write(0, setup.config().logical_units);
    let counts = run.device.stats().data.total();
    assert_eq!(counts.programs, setup.config().logical_units as u64);
    assert_eq!((counts.reads, counts.erases), (0, 0), "first writes go in place");
    run.device.reset_stats();
    run
}

struct Run {
    device: BlockMap,
    now: Time,
}

impl Run {
    /// Writes pages one request after the other.
    fn write(&mut self, start: u32, count: u32) {
        for lpa in (Extent { start: Lpa(start), count }).units() {
            self.now = self.device.write(self.now, Extent::one(lpa), &[]).unwrap().end;
        }
        self.device.check();
    }
    /// Pages in one request.
    fn request(&mut self, start: u32, count: u32) {
        self.now = self.device.write(self.now, Extent { start: Lpa(start), count }, &[]).unwrap().end;
        self.device.check();
    }
    fn data(&self, cause: Cause) -> Operations {
        self.device.stats().data.of(cause)
    }
    fn log(&self, cause: Cause) -> Operations {
        self.device.stats().log.of(cause)
    }
    /// Copies are a read and a program each; they may be read from the log's array.
    fn merged(&self, cause: Cause) -> (u64, u64) {
        let (data, log) = (self.data(cause), self.log(cause));
        assert_eq!(data.reads + log.reads, data.programs, "every page copied was read once");
        (data.programs, data.erases)
    }
    /// Operations times datasheet time is what the media were busy with (Table II: 60, 800, 1500 us).
    fn check_time(&self) {
        let (counts, done) = (self.device.stats().data.total(), self.device.data().stats());
        let us = |count: u64, us: u64| (Span::from_us(us) * count).ps() as u128;
        assert_eq!(done.read_time.ps(), us(counts.reads, 60));
        assert_eq!(done.program_time.ps(), us(counts.programs, 800));
        assert_eq!(done.erase_time.ps(), us(counts.erases, 1500));
    }
}

const fn operations(reads: u64, programs: u64, erases: u64) -> Operations {
    Operations { reads, programs, erases }
}

#[test]
fn block_map_merges_the_block_on_every_overwrite() {
    let mut run = filled(&Setup::small(Log::None));
    // Page 3 again: 7 copies, 1 erase. Pages 4 to 6 in one request: 5 copies, 1 erase.
    run.write(3, 1);
    run.now = run.device.write(run.now, Extent { start: Lpa(4), count: 3 }, &[]).unwrap().end;
    assert_eq!(run.data(Cause::Full), operations(12, 12, 2));
    assert_eq!(run.data(Cause::Host), operations(0, 4, 0));
    // A whole block: no copy, 1 erase. The last logical block has 7 pages: overwriting one copies 6.
    run.now = run.device.write(run.now, Extent { start: Lpa(8), count: 8 }, &[]).unwrap().end;
    run.write(24, 1);
    assert_eq!(run.data(Cause::Full), operations(18, 18, 4));
    assert_eq!(run.device.stats().full_merges, 4);
    run.check_time();
}

#[test]
fn bast_switch_partial_full() {
    let mut run = filled(&Setup::small(Log::PerBlock { blocks: 1 }));
    // Block 0 in order: the log block fills. The next overwrite of the block finds it full: switch, 1 erase.
    run.write(0, 8);
    assert_eq!(run.device.stats().data.total(), operations(0, 8, 0));
    run.write(0, 3);
    assert_eq!((run.device.stats().switch_merges, run.merged(Cause::Switch)), (1, (0, 1)));
    // Block 1 wants the only log block: partial merge of block 0, whose log holds 0 1 2: 8 - 3 copies, 1 erase.
    run.write(9, 1);
    assert_eq!((run.device.stats().partial_merges, run.merged(Cause::Partial)), (1, (5, 1)));
    // Thrash. Block 2 wants it: block 1's log holds page 1 at place 0, a full merge: 8 copies, 2 erases. Then
    // block 1 again: block 2's log began with its page 5: full again.
    run.write(21, 1);
    run.write(9, 1);
    assert_eq!((run.device.stats().full_merges, run.merged(Cause::Full)), (2, (16, 4)));
    assert_eq!(run.device.stats().victims, 3);
    run.check_time();
}

#[test]
fn bast_thrashes_with_one_block_more_than_logs() {
    let mut run = filled(&Setup::small(Log::PerBlock { blocks: 2 }));
    // Page 1 of blocks 0 1 2 0 1 2 ...: the third and every later write merges the block that waits longest:
    // 9 - 2 merges of 8 copies and 2 erases.
    for i in 0..9 {
        run.write(i % 3 * 8 + 1, 1);
    }
    assert_eq!((run.device.stats().full_merges, run.merged(Cause::Full)), (7, (56, 14)));
}

#[test]
fn fast_sequential_log_block() {
    let mut run = filled(&Setup::small(Log::Shared { sequential: true, random_blocks: 2 }));
    // 0..7 of block 0 go to the sequential log block; offset 0 of block 1 ends it: switch, 1 erase.
    run.write(0, 8);
    run.write(8, 1);
    assert_eq!((run.device.stats().switch_merges, run.merged(Cause::Switch)), (1, (0, 1)));
    // 8 9 10 continue it; page 0 of block 2 ends it after k = 3: 5 copies, 1 erase.
    run.write(9, 2);
    run.write(16, 1);
    assert_eq!((run.device.stats().partial_merges, run.merged(Cause::Partial)), (1, (5, 1)));
    // Block 2 again, but not page 1: ended after k = 1 (7 copies, 1 erase), begun anew at offset 5, continued
    // with 6, and ended by page 2 (k = 2: 6 copies, 1 erase).
    run.write(21, 2);
    run.write(18, 1);
    assert_eq!((run.device.stats().partial_merges, run.merged(Cause::Partial)), (3, (5 + 7 + 6, 3)));
    // Nothing went to the random log.
    assert_eq!((run.device.stats().log_units, run.device.stats().sequential_units), (0, 15));
    run.check_time();
}

#[test]
fn fast_random_victim_costs_a_full_merge_for_each_distinct_block() {
    let setup = Setup { home_blocks: 5, ..Setup::small(Log::Shared { sequential: true, random_blocks: 2 }) };
    let mut run = filled(&setup);
    // First log block: pages of blocks 0 1 2 (3 distinct), page 1 of block 0 three times. Second: block 3 only.
    for lpa in [1, 9, 17, 1, 10, 18, 2, 1] {
        run.write(lpa, 1);
    }
    for _ in 0..2 {
        run.write(25, 4);
    }
    assert_eq!(run.device.stats().data.total(), operations(0, 16, 0), "the log takes 16 pages");
    // The 17th page needs room: A = 3 distinct blocks: 3 * 8 copies, 3 + 1 erases.
    run.write(34, 1);
    assert_eq!((run.device.stats().full_merges, run.device.stats().victims), (3, 1));
    assert_eq!(run.merged(Cause::Full), (24, 4));
    // Seven more fill that block; then the second is the victim, A = 1: 8 copies, 2 erases.
    run.write(33, 1);
    for _ in 0..6 {
        run.write(35, 1);
    }
    assert_eq!(run.device.stats().victims, 1);
    run.write(36, 1);
    assert_eq!(run.device.stats().victims, 2);
    assert_eq!(run.merged(Cause::Full), (24 + 8, 4 + 2));
    run.check_time();
}

#[test]
fn fast_victim_without_a_live_page_costs_its_erase() {
    let mut run = filled(&Setup::small(Log::Shared { sequential: true, random_blocks: 2 }));
    // Page 1 sixteen times: all in the first block are dead, A = 0.
    for _ in 0..17 {
        run.write(1, 1);
    }
    assert_eq!((run.device.stats().victims, run.merged(Cause::Full)), (1, (0, 1)));
}

#[test]
fn fast_merge_of_the_victim_ends_the_sequential_block_of_the_same_block() {
    let mut run = filled(&Setup::small(Log::Shared { sequential: true, random_blocks: 1 }));
    // Page 5 of block 0 in the random log, then its pages 0 1 in the sequential block, then seven of block 1.
    run.write(5, 1);
    run.write(0, 2);
    for _ in 0..7 {
        run.write(9, 1);
    }
    // The victim holds page 5 of block 0, newest, and page 1 of block 1: the sequential block takes the other
    // 6 pages of block 0 (one of them page 5, from the log): 1 erase. Block 1: full, 8 copies, 1 erase. Victim: 1.
    run.write(17, 1);
    assert_eq!(run.merged(Cause::Partial), (6, 1));
    assert_eq!(run.merged(Cause::Full), (8, 2));
}

/// System 002: SLC log of 4-page blocks, MLC data of 8-page blocks.
fn two_media(sequential: bool) -> Setup {
    Setup {
        home_blocks: 5,
        own_log: Some((1, 4)),
        ..Setup::small(Log::Shared { sequential, random_blocks: 3 })
    }
}

#[test]
fn slc_log_takes_overwrites_and_its_victim_merges_into_mlc() {
    let mut run = filled(&two_media(true));
    // Twelve pages fill the log. The first log block holds blocks 0 1 0 2: A = 3.
    for lpa in [1, 9, 3, 17, 25, 33, 25, 33, 25, 33, 25, 33] {
        run.write(lpa, 1);
    }
    assert_eq!(run.device.stats().data.total(), operations(0, 0, 0), "overwrites leave the MLC alone");
    assert_eq!(run.device.stats().log.total(), operations(0, 12, 0));
    // The 13th: three full merges. Of block 0, pages 1 and 3 come from SLC and 6 from MLC; of blocks 1 and 2 one
    // and 7: 24 programs and 3 erases of MLC, 1 erase of SLC.
    run.write(19, 1);
    assert_eq!(run.data(Cause::Full), operations(20, 24, 3));
    assert_eq!(run.log(Cause::Full), operations(4, 0, 1));
    assert_eq!(run.device.stats().log.total().programs, 13);
    run.check_time();
    let slc = run.device.log().unwrap().stats();
    assert_eq!(slc.program_time.ps(), (Span::from_us(200) * 13).ps() as u128);
}

#[test]
fn a_run_longer_than_a_quarter_of_an_mlc_block_is_merged_into_a_new_one() {
    let mut run = filled(&two_media(true));
    // A quarter is 2 pages: 10 and 11 go to SLC, 12 13 14 to a new MLC block.
    run.write(10, 5);
    assert_eq!((run.device.stats().log_units, run.device.stats().sequential_units), (2, 3));
    assert_eq!(run.data(Cause::Host), operations(0, 3, 0));
    // It goes on into block 2: page 15 completes block 1's new block, page 16 begins the next. The merge of
    // block 1 copies 8 and 9 from MLC, 10 and 11 from SLC, and erases the old block.
    run.write(15, 2);
    assert_eq!(
        (run.data(Cause::Sequential), run.log(Cause::Sequential)),
        (operations(2, 4, 1), operations(2, 0, 0))
    );
    // To the end of block 2, and one page elsewhere in it, which ends that run: nothing to be copied, 1 erase.
    run.write(17, 7);
    run.write(18, 1);
    assert_eq!(run.data(Cause::Sequential), operations(2, 4, 2));
    assert_eq!(run.device.stats().sequential_merges, 2);
    // No log block was merged: the SLC holds pages 10, 11 (dead) and 18.
    assert_eq!(run.device.stats().log.total(), operations(2, 3, 0));
    assert_eq!((run.device.stats().switch_merges, run.device.stats().partial_merges), (0, 0));
}

/// The length of a request is known at once: nothing of it goes to SLC only to be copied.
#[test]
fn a_request_longer_than_a_quarter_of_an_mlc_block_goes_to_mlc_from_its_first_page_on() {
    let mut run = filled(&two_media(true));
    // A whole block: eight programs of MLC, and the erase of the old block when the next run ends it.
    run.request(8, 8);
    run.request(24, 8);
    assert_eq!((run.device.stats().log_units, run.device.stats().sequential_units), (0, 16));
    assert_eq!(run.data(Cause::Host), operations(0, 16, 0));
    assert_eq!(run.data(Cause::Sequential), operations(0, 0, 1));
    // Three pages of another block, of which the other five are copied when it ends.
    run.request(18, 3);
    run.request(0, 8);
    assert_eq!(run.data(Cause::Sequential), operations(5, 5, 3));
    // Two pages are no more than a quarter, nor is the last one of a block of which the request has most in the next: a new block
    // for it would have seven copied.
    run.request(33, 2);
    assert_eq!(run.device.stats().log_units, 2);
    run.request(15, 5);
    assert_eq!((run.device.stats().log_units, run.device.stats().sequential_units), (3, 31));
}

#[test]
fn without_the_sequential_rule_a_run_goes_to_slc() {
    let mut run = filled(&two_media(false));
    run.write(10, 5);
    assert_eq!((run.device.stats().log_units, run.device.stats().sequential_units), (5, 0));
}

#[test]
fn a_write_waits_for_the_merge_that_makes_room_for_it() {
    let mut run = filled(&two_media(true));
    for lpa in [1, 1, 1, 9, 1, 1, 1, 1, 1, 1, 1, 1] {
        let before = run.now;
        run.write(lpa, 1);
        assert_eq!(run.now.since(before), Span::from_us(202) + transfer(), "overhead, transfer, SLC program");
    }
    // A = 1 (block 1): one SLC read and seven MLC reads before 8 programs; only then the erase of the victim and
    // the program. No request waits for the erase of the old MLC block.
    let before = run.now;
    run.write(1, 1);
    let slc_read_then_programs = Span::from_us(25 + 8 * 800).max(Span::from_us(7 * 60 + 8 * 800));
    let expected = Span::from_us(2) + slc_read_then_programs + Span::from_us(1500 + 200);
    assert_eq!(run.now.since(before), expected);
    assert_eq!(run.device.stats().merge_wait.ps(), (expected - Span::from_us(202)).ps().into());
}

/// A page of 32 B over 40 MB/s.
fn transfer() -> Span {
    Span::from_ns(800)
}

#[test]
fn a_trimmed_block_is_erased_and_written_in_place_again() {
    let mut run = filled(&Setup::small(Log::Shared { sequential: true, random_blocks: 2 }));
    run.now = run.device.trim(run.now, Extent { start: Lpa(6), count: 12 }).unwrap().end;
    run.device.check();
    assert_eq!(run.data(Cause::Trim), operations(0, 0, 1), "block 1 whole, 0 and 2 in part");
    // Block 1 goes to an erased block; page 6 of block 0 is programmed still, so it goes to the log.
    run.write(6, 10);
    assert_eq!((run.device.stats().in_place_units, run.device.stats().log_units), (8, 2));
    // A full merge copies only what holds data: of block 2 six pages.
    for _ in 0..14 {
        run.write(18, 1);
    }
    run.write(18, 1);
    assert_eq!(run.device.stats().victims, 1);
    let full = run.merged(Cause::Full);
    assert_eq!(full, (8, 2), "block 0 alone has live pages in the victim");
}

#[test]
fn map_memory_is_what_a_real_controller_needs() {
    // 5 logical blocks, 2 log blocks of 8 pages, a sequential block (2 entries), 5 + 2 + 2 erase counts.
    let shared = Setup { home_blocks: 5, ..Setup::small(Log::Shared { sequential: true, random_blocks: 2 }) };
    assert_eq!(shared.with(|_| ()).memory_bytes(), 4 * (5 + 2 * 8 + 2 + 9));
    // 4 logical blocks; each of 2 log blocks has an owner and 8 page entries; 4 + 2 + 2 erase counts.
    assert_eq!(Setup::small(Log::PerBlock { blocks: 2 }).with(|_| ()).memory_bytes(), 4 * (4 + 2 * 9 + 8));
    assert_eq!(Setup::small(Log::None).with(|_| ()).memory_bytes(), 4 * (4 + 6));
}

/// Fusion flash: log blocks of four pages in SLC mode, each in the room of a data block of eight.
fn fusion(second_chance: bool) -> Setup {
    let log = Log::Shared { sequential: false, random_blocks: 2 };
    Setup { home_blocks: 5, slc_log: true, second_chance, ..Setup::small(log) }
}

#[test]
fn fusion_log_blocks_are_small_and_fast() {
    let mut run = filled(&fusion(false));
    // Blocks 0 1 2 0 fill the first log block of four pages, block 3 the second.
    for lpa in [1, 9, 17, 1, 25, 25, 25, 25] {
        run.write(lpa, 1);
    }
    // A = 3: 24 copies, three of them read in SLC mode; 3 erases, and that of the victim in SLC mode.
    run.write(33, 1);
    assert_eq!(run.data(Cause::Full), operations(24, 24, 4));
    let (all, slc) = (run.device.data().stats(), run.device.data().cells().slc_operations());
    assert_eq!((slc.reads, slc.programs, slc.erases), (3, 9, 1));
    assert_eq!(all.read_time.ps(), (Span::from_us(60) * 21 + Span::from_us(25) * 3).ps() as u128);
    assert_eq!(all.program_time.ps(), (Span::from_us(800) * 24 + Span::from_us(200) * 9).ps() as u128);
}

#[test]
fn a_page_overwritten_in_the_log_stays_there_once() {
    let mut run = filled(&fusion(true));
    // Page 1 twice, 9 and 17 once; block 3 fills the second log block.
    for lpa in [1, 1, 9, 17, 25, 25, 25, 25] {
        run.write(lpa, 1);
    }
    // Blocks 1 and 2 are merged: 16 copies, 2 erases and the victim's. Page 1 moves on.
    run.write(33, 1);
    assert_eq!(run.data(Cause::Full), operations(16, 16, 3));
    assert_eq!(run.data(Cause::SecondChance), operations(1, 1, 0));
    assert_eq!(run.device.stats().second_chances, 1);
    // Two more fill that block. The next victim is block 3's: page 25 was overwritten there and moves on too.
    run.write(34, 2);
    run.write(36, 1);
    assert_eq!((run.device.stats().second_chances, run.data(Cause::Full)), (2, operations(16, 16, 4)));
    // Two more, and page 1's turn comes again: it was not overwritten, block 0 is merged. So is block 4, whose
    // last page is not addressable: 8 + 7 copies, 2 erases and the victim's.
    run.write(37, 2);
    run.write(36, 1);
    assert_eq!((run.device.stats().second_chances, run.data(Cause::Full)), (2, operations(31, 31, 7)));
}
