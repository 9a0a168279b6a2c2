//! kill -9 of a real program on real files, again and again on what it left: nothing acknowledged is missing, nothing else
//! is there, and the books balance.

use nvlab_rvm::log::battery_ram::BatteryRam;
use nvlab_rvm::log::file::FileLog;
use nvlab_rvm::store::SegmentFolder;
use nvlab_rvm::{Options, Region, Rvm, Truncation};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

const SEGMENT: u64 = 1 << 20;
const THREADS: usize = 2;
const ACCOUNTS: usize = 1000;
/// The counters of the threads come first, a page each.
const BALANCES: usize = THREADS * 4096;
/// The log of a folder in here is one in battery-backed memory.
const MEMORY: &str = "/dev/shm";
const FOLDER: &str = "NVLAB_RVM_KILLED";

fn open(folder: &Path) -> (Rvm, Region) {
    let options = Options { truncation: Truncation::Background { at_percent: 30 }, ..Options::default() };
    let (log, segments) = (folder.join("log"), SegmentFolder::new(folder));
    let rvm = match folder.starts_with(MEMORY) {
        true => Rvm::open(BatteryRam::open(&log).unwrap(), segments, options).unwrap(),
        false => Rvm::open(FileLog::open(&log).unwrap(), segments, options).unwrap(),
    };
    let region = rvm.map("data", 0..SEGMENT).unwrap();
    (rvm, region)
}

/// The program that is killed: two threads move money, count their transfers and say each number once it is durable.
#[test]
fn program_that_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let (_rvm, region) = open(Path::new(&folder));
    let region = &Mutex::new(region);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                loop {
                    let mut region = region.lock().unwrap();
                    let mut transaction = region.begin();
                    let counter = transaction.get_mut::<u64>(thread * 4096).unwrap();
                    *counter += 1;
                    let (number, amount) = (*counter, *counter as i64 % 97);
                    for (account, change) in [(number * 7919, amount), (number * 104_729 + 1, -amount)] {
                        let at = BALANCES + account as usize % ACCOUNTS * 8;
                        *transaction.get_mut::<i64>(at).unwrap() += change;
                    }
                    let pending = transaction.commit_later().unwrap();
                    drop(region);
                    pending.wait().unwrap();
                    // One write, so that lines of two threads are not mixed.
                    std::io::stdout().write_all(format!("durable {thread} {number}\n").as_bytes()).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_killed_program_loses_nothing_it_acknowledged() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    FileLog::create(&folder.path().join("log"), 1 << 15).unwrap();
    kill_again_and_again(folder.path(), 25);
}

#[test]
fn a_killed_program_with_its_log_in_memory_loses_nothing_it_acknowledged() {
    let folder = tempfile::tempdir_in(MEMORY).unwrap();
    drop(BatteryRam::create(&folder.path().join("log"), 1 << 15).unwrap());
    kill_again_and_again(folder.path(), 25);
}

fn kill_again_and_again(folder: &Path, rounds: u64) {
    SegmentFolder::new(folder).create("data", SEGMENT).unwrap();
    let mut before = [0; THREADS];
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::program_that_is_killed", "--nocapture"])
            .env(FOLDER, folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut last = [0; THREADS];
            for line in BufReader::new(said).lines().map_while(|line| line.ok()) {
                let Some((_, words)) = line.split_once("durable ") else { continue };
                let (thread, number) = words.split_once(' ').unwrap();
                last[thread.parse::<usize>().unwrap()] = number.parse().unwrap();
            }
            last
        });
        std::thread::sleep(Duration::from_millis(20 + round * 13 % 70));
        child.kill().unwrap();
        child.wait().unwrap();
        let last: [u64; THREADS] = reader.join().unwrap();
        let (_rvm, region) = open(folder);
        for thread in 0..THREADS {
            let found = *region.get::<u64>(thread * 4096).unwrap();
            // One more may have been durable and not yet said.
            let least = last[thread].max(before[thread]);
            assert!(
                found >= least && (last[thread] == 0 || found <= last[thread] + 1),
                "round {round}: {found}, {last:?}"
            );
            before[thread] = found;
        }
        let sum: i64 = (0..ACCOUNTS).map(|account| region.get::<i64>(BALANCES + account * 8).unwrap()).sum();
        assert_eq!(sum, 0, "round {round}");
    }
    assert!(before.iter().sum::<u64>() > 50, "only {before:?} transactions were made");
}
