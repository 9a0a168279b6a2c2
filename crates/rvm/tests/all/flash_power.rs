//! Transactions with their log on flash, or on flash and a disk, and power cuts at every operation of either device: what is
//! found is the state after some commit, not earlier than the last one acknowledged.

use nvlab_rvm::flash::{MemoryFlash, Shape};
use nvlab_rvm::log::flash::FlashLog;
use nvlab_rvm::log::hybrid::HybridLog;
use nvlab_rvm::store::disk::{Disk, Failure};
use nvlab_rvm::{Flash, Options, Region, Result, Rvm, Truncation};

/// Several pages, so that applying an epoch takes several writes.
const SEGMENT: usize = 32768;
const SPARES: u32 = 1;
const THRESHOLD: usize = 300;

struct Devices {
    flash: MemoryFlash,
    disk: Disk,
    is_hybrid: bool,
}

fn fresh(seed: u64, is_hybrid: bool) -> Devices {
    let shape = Shape { block_bytes: 512, blocks: 6 + 5 + SPARES };
    let (flash, disk) = (MemoryFlash::new(shape, seed), Disk::default());
    disk.create("data", SEGMENT);
    disk.create("log", 8192 + 8192);
    let log = FlashLog::create(flash.clone(), 7, SPARES).unwrap();
    if is_hybrid {
        HybridLog::create(log, disk.store("log"), "log", THRESHOLD).unwrap();
    }
    Devices { flash, disk, is_hybrid }
}

fn open(devices: &Devices) -> Result<(Rvm, Region)> {
    let options = Options { truncation: Truncation::WhenFull, ..Options::default() };
    let rvm = match devices.is_hybrid {
        true => {
            let flash = FlashLog::open(devices.flash.clone())?;
            let log = HybridLog::open(flash, devices.disk.store("log"), "log", THRESHOLD)?;
            Rvm::open(log, devices.disk.clone(), options)?
        }
        false => Rvm::open(FlashLog::open(devices.flash.clone())?, devices.disk.clone(), options)?,
    };
    let region = rvm.map("data", 0..SEGMENT as u64)?;
    Ok((rvm, region))
}

/// Commits until an error or the last; the states after each, and how many are acknowledged.
fn run(devices: &Devices, commits: u64) -> (Vec<Vec<u8>>, usize) {
    let (mut states, mut acknowledged) = (vec![vec![0; SEGMENT]], 0);
    let Ok((_rvm, mut region)) = open(devices) else { return (states, acknowledged) };
    for commit in 0..commits {
        let bytes = if commit % 4 == 3 { 700 } else { 40 + commit as usize % 30 };
        let at = commit as usize * 5531 % (SEGMENT - bytes);
        let mut next = states.last().unwrap().clone();
        next[at..at + bytes].fill(commit as u8 + 1);
        let mut transaction = region.begin();
        if transaction.write(at, &next[at..at + bytes]).is_err() {
            break;
        }
        states.push(next);
        if transaction.commit().is_err() {
            break;
        }
        acknowledged = states.len() - 1;
    }
    (states, acknowledged)
}

/// Cuts one device at an operation counted from now.
fn cut(devices: &Devices, is_disk: bool, operation: u64, seed: u64) {
    match is_disk {
        true => devices.disk.plan(Some((operation, Failure::Power)), seed),
        false => devices.flash.cut_at(devices.flash.operations() + operation),
    }
}

/// The power comes back after a cut at that operation; false if there was none.
fn power_on(devices: &mut Devices, is_disk: bool, operation: u64) -> bool {
    let is_cut = if is_disk { devices.disk.operations() >= operation } else { devices.flash.is_off() };
    devices.disk = devices.disk.restart();
    devices.flash.power_on();
    is_cut
}

/// A history with a cut at an operation, and another at one of the recovery; whether each happened.
fn run_with_cuts(is_hybrid: bool, is_disk: bool, operation: u64, again: u64) -> (bool, bool) {
    const COMMITS: u64 = 120;
    let mut devices = fresh(operation + again, is_hybrid);
    cut(&devices, is_disk, operation, operation);
    let (states, acknowledged) = run(&devices, COMMITS);
    if !power_on(&mut devices, is_disk, operation) {
        assert_eq!(acknowledged as u64, COMMITS);
        return (false, false);
    }
    cut(&devices, is_disk, again, operation);
    drop(open(&devices));
    let is_again = power_on(&mut devices, is_disk, again);
    for _ in 0..2 {
        let (_rvm, region) = open(&devices).unwrap();
        let found = states.iter().rposition(|state| *state == region.to_vec());
        let what = format!("hybrid {is_hybrid}, disk {is_disk}, operation {operation}, then {again}");
        let found = found.unwrap_or_else(|| panic!("{what}: the state after no commit"));
        assert!(found >= acknowledged, "{what}: commit {found}, {acknowledged} were acknowledged");
    }
    (true, is_again)
}

#[test]
fn every_cut_of_flash_or_disk_and_again_in_recovery_leaves_the_state_after_a_commit() {
    for (is_hybrid, is_disk) in [(false, false), (false, true), (true, false), (true, true)] {
        let (mut cuts, mut cuts_again) = (0, 0);
        for operation in 1.. {
            let again =
                (1..).take_while(|&again| run_with_cuts(is_hybrid, is_disk, operation, again).1).count();
            let (is_cut, _) = run_with_cuts(is_hybrid, is_disk, operation, u64::MAX / 2);
            if !is_cut {
                break;
            }
            cuts += 1;
            cuts_again += again;
        }
        assert!(cuts > 60 && cuts_again > 500, "{cuts} cuts, {cuts_again} again");
    }
}

#[test]
fn the_log_on_flash_is_filled_several_times_while_blocks_wear_out() {
    let devices = fresh(1, false);
    devices.flash.wear_out(7);
    let (states, acknowledged) = run(&devices, 200);
    assert_eq!(acknowledged, 200);
    let wear = devices.flash.wear();
    let most = wear.iter().map(|wear| wear.erases).max().unwrap();
    assert!(most > 10, "{wear:?}");
    // The spare has been used.
    assert!(wear[devices.flash.shape().blocks as usize - 1].bytes_programmed > 0);
    let (_rvm, region) = open(&devices).unwrap();
    assert_eq!(Some(&region.to_vec()), states.last());
}
