//! Write-through: log and segments lie in memory, and commits store to the segments themselves. At any moment the files, as a
//! killed program leaves them, hold what was committed.

use nvlab_rvm::log::battery_ram::BatteryRam;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::{Options, Part, Region, Restore, Rvm, Truncation};
use proptest::prelude::*;
use std::path::Path;

const MEMORY: &str = "/dev/shm";
const SEGMENT: usize = 3 * 4096;
const LOG: u64 = 4096;

/// What a program does.
#[derive(Clone, Debug)]
enum Step {
    /// Ranges of the two segments: which, where, how many bytes.
    Commit(Vec<(bool, usize, usize)>, Ending),
    Truncate,
    Flush,
    /// Lengthens the first segment.
    Grow,
    /// Maps a segment that does not lie in memory, and changes a byte of it.
    UseDisk,
    /// Goes on with a copy of the files as they are now.
    Kill,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Flush,
    NoFlush,
    Abort,
    NoRestore,
}

fn step() -> impl Strategy<Value = Step> {
    let range = (any::<bool>(), 0..SEGMENT - 700, prop_oneof![1usize..40, 600usize..700]);
    let ending = prop_oneof![
        4 => Just(Ending::Flush), 2 => Just(Ending::NoFlush), 1 => Just(Ending::Abort), 1 => Just(Ending::NoRestore)
    ];
    prop_oneof![
        16 => (prop::collection::vec(range, 0..5), ending).prop_map(|(ranges, ending)| Step::Commit(ranges, ending)),
        1 => Just(Step::Truncate),
        1 => Just(Step::Flush),
        1 => Just(Step::Grow),
        1 => Just(Step::UseDisk),
        3 => Just(Step::Kill),
    ]
}

/// The segments, as they should be.
type Model = [Vec<u8>; 2];

struct Program {
    folder: tempfile::TempDir,
    rvm: Rvm,
    regions: [Region; 2],
    /// After the last commit that is certainly durable, and after each later one.
    states: Vec<Model>,
}

fn open(folder: &Path) -> (Rvm, [Region; 2]) {
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let log = BatteryRam::open(&folder.join("log")).unwrap();
    let rvm = Rvm::open(log, SegmentFolder::new(folder), options).unwrap();
    let regions = ["a", "b"].map(|name| rvm.map(name, 0..rvm.segment_bytes(name).unwrap()).unwrap());
    (rvm, regions)
}

impl Program {
    fn new() -> Program {
        let folder = tempfile::tempdir_in(MEMORY).unwrap();
        drop(BatteryRam::create(&folder.path().join("log"), LOG).unwrap());
        for name in ["a", "b"] {
            SegmentFolder::new(folder.path()).create(name, SEGMENT as u64).unwrap();
        }
        let (rvm, regions) = open(folder.path());
        Program { folder, rvm, regions, states: vec![[vec![0; SEGMENT], vec![0; SEGMENT]]] }
    }

    fn now(&self) -> &Model {
        self.states.last().unwrap()
    }

    /// Everything so far is durable.
    fn is_durable(&mut self) {
        self.states.drain(..self.states.len() - 1);
    }

    fn commit(&mut self, ranges: &[(bool, usize, usize)], ending: Ending, mark: u8) {
        let mut model = self.now().clone();
        let [first, second] = &mut self.regions;
        let restore = if ending == Ending::NoRestore { Restore::No } else { Restore::Yes };
        let mut transaction = first.begin_with(restore);
        let other = transaction.include(second).unwrap();
        for &(is_second, at, bytes) in ranges {
            let part = if is_second { other } else { Part::FIRST };
            transaction.set_range_in(part, at..at + bytes).unwrap().fill(mark);
            model[usize::from(is_second)][at..at + bytes].fill(mark);
        }
        match ending {
            Ending::Abort => return transaction.abort().unwrap(),
            Ending::NoFlush => transaction.commit_no_flush().unwrap(),
            Ending::Flush | Ending::NoRestore => transaction.commit().unwrap(),
        }
        self.states.push(model);
        if ending != Ending::NoFlush {
            self.is_durable();
        }
    }

    fn take(&mut self, step: &Step, mark: u8, disk: &Path) {
        match step {
            Step::Commit(ranges, ending) => self.commit(ranges, *ending, mark),
            Step::Truncate => {
                self.rvm.truncate().unwrap();
                self.is_durable();
                for (name, model) in ["a", "b"].iter().zip(self.now()) {
                    assert!(std::fs::read(self.folder.path().join(name)).unwrap() == *model, "{name}");
                }
            }
            Step::Flush => {
                self.rvm.flush().unwrap();
                self.is_durable();
            }
            Step::Grow => {
                let bytes = self.regions[0].len() + 4096;
                self.regions[0].grow(bytes as u64).unwrap();
                // A commit before, found after a kill, does not make the file shorter.
                self.states.iter_mut().for_each(|model| model[0].resize(bytes, 0));
            }
            Step::UseDisk => {
                let Ok(mut region) = self.rvm.map(disk.to_str().unwrap(), 0..4096) else { return };
                let mut transaction = region.begin();
                transaction.set_range(0..1).unwrap()[0] = mark;
                transaction.commit().unwrap();
                self.is_durable();
                assert_eq!(region[0], mark);
            }
            Step::Kill => self.kill(),
        }
        assert!(self.regions.iter().zip(self.now()).all(|(region, model)| region[..] == model[..]));
    }

    fn kill(&mut self) {
        let copy = tempfile::tempdir_in(MEMORY).unwrap();
        for name in ["log", "a", "b"] {
            std::fs::copy(self.folder.path().join(name), copy.path().join(name)).unwrap();
        }
        // A segment on a disk has one opener.
        let old = std::mem::replace(self, Program::new());
        let states = old.states.clone();
        drop(old);
        let (rvm, regions) = open(copy.path());
        let found = [regions[0].to_vec(), regions[1].to_vec()];
        assert!(states.contains(&found), "none of {} states", states.len());
        (self.folder, self.rvm, self.regions, self.states) = (copy, rvm, regions, vec![found]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn the_files_hold_what_was_committed_at_any_moment(steps in prop::collection::vec(step(), 1..60)) {
        let disk = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        disk.as_file().set_len(4096).unwrap();
        let mut program = Program::new();
        for (number, step) in steps.iter().enumerate() {
            program.take(step, 1 + number as u8, disk.path());
        }
    }
}

#[test]
fn truncation_has_nothing_to_apply_and_reads_nothing() {
    let mut program = Program::new();
    program.commit(&[(false, 8, 8), (true, 40, 600)], Ending::Flush, 7);
    let before = program.rvm.statistics().applied_bytes;
    program.commit(&[(false, 100, 16)], Ending::Flush, 8);
    // The changes of the first are stored by the force of the second.
    assert_eq!(program.rvm.statistics().applied_bytes - before, 608);
    program.take(&Step::Truncate, 0, Path::new(""));
    assert_eq!(program.rvm.statistics().applied_bytes, 624);
    assert_eq!(program.rvm.statistics().live_bytes, 0);
    // The same where a segment was lengthened.
    program.take(&Step::Grow, 0, Path::new(""));
    program.commit(&[(false, SEGMENT + 50, 10)], Ending::Flush, 9);
    program.commit(&[], Ending::Flush, 10);
    program.commit(&[(true, 0, 1)], Ending::Flush, 11);
    assert_eq!(program.rvm.statistics().applied_bytes, 634);
    program.take(&Step::Truncate, 0, Path::new(""));
    assert_eq!(program.rvm.statistics().applied_bytes, 635);
}
