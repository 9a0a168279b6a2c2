//! The logs on flash and on sectors: power cuts, wear and damage.

mod harness;

use harness::{Draws, Model, Subject, run, run_every_cut};
use nvlab_rvm::flash::{MemoryFlash, Shape};
use nvlab_rvm::log::flash::FlashLog;
use nvlab_rvm::{Error, Log, Result};

const IDENTITY: u64 = 0x1234_5678_9abc_def0;
const SPARES: u32 = 2;

/// A log of four blocks of 192 B: the status has room for four values in a block.
fn shape() -> Shape {
    Shape { block_bytes: 192, blocks: 6 + 4 + SPARES }
}

struct OnFlash(MemoryFlash);

impl Subject for OnFlash {
    fn create(&self) -> Result<Box<dyn Log>> {
        Ok(Box::new(FlashLog::create(self.0.clone(), IDENTITY, SPARES)?))
    }
    fn open(&self) -> Result<Box<dyn Log>> {
        Ok(Box::new(FlashLog::open(self.0.clone())?))
    }
    fn operations(&self) -> u64 {
        self.0.operations()
    }
    fn cut_at(&self, operation: u64) {
        self.0.cut_at(operation);
    }
    fn is_off(&self) -> bool {
        self.0.is_off()
    }
    fn power_on(&self) {
        self.0.power_on();
    }
}

/// Runs a history without cuts and returns the bytes appended.
fn fill(log: &mut dyn Log, payload_max: u64, steps: u32) -> u64 {
    let mut model = Model::new(log.status(), payload_max);
    assert!(model.drive(log, &mut Draws(1), steps));
    model.appended
}

#[test]
fn flash_is_cut_at_every_operation_and_again_in_recovery() {
    let flash = MemoryFlash::new(shape(), 1);
    let mut log = FlashLog::create(flash, IDENTITY, SPARES).unwrap();
    assert_eq!(log.capacity(), 3 * 192);
    assert!(fill(&mut log, 90, 180) > 4 * 4 * 192, "the log did not wrap");
    let runs = run_every_cut(|seed| Box::new(OnFlash(MemoryFlash::new(shape(), seed))), 5, 90, 180);
    assert!(runs > 5_000, "{runs} runs");
}

#[test]
fn flash_is_cut_anywhere_in_long_histories_while_blocks_wear_out() {
    let mut cuts_done = 0;
    for seed in 0..3_000 {
        let mut draws = Draws(seed);
        let flash = MemoryFlash::new(shape(), seed);
        // Any but the first three, which hold the table of spare blocks; a spare may be among them.
        for _ in 0..draws.below(3) {
            flash.wear_out(3 + draws.below(9) as u32);
        }
        let cuts = (draws.below(900), draws.below(12));
        let (first, second) = run(&OnFlash(flash), seed, 1 + draws.below(400), 500, cuts);
        cuts_done += u32::from(first) + u32::from(second);
    }
    assert!(cuts_done > 3_000, "{cuts_done} cuts");
}

#[test]
fn worn_out_blocks_are_retired_until_no_spare_is_left_and_nothing_is_lost() {
    let flash = MemoryFlash::new(shape(), 7);
    let mut log = FlashLog::create(flash.clone(), IDENTITY, SPARES).unwrap();
    // One of the status, one of the log.
    flash.wear_out(4);
    flash.wear_out(7);
    fill(&mut log, 90, 400);
    assert_eq!(log.spares_used(), 2);
    log.reset(0).unwrap();
    flash.wear_out(8);
    let mut model = Model::new(log.status(), 90);
    assert!(!model.drive(&mut log, &mut Draws(2), 400));
    assert!(matches!(log.force(), Err(Error::Failed(_))));
    for _ in 0..2 {
        let mut log = FlashLog::open(flash.clone()).unwrap();
        model.adopt(&mut log, "no spare left");
        let error = log.reset(0).unwrap_err().to_string();
        assert!(error.contains("worn out, and no spare is left"), "{error}");
        model.expect_reset();
    }
}

#[test]
fn every_flipped_bit_is_refused_or_leaves_a_prefix_of_the_records() {
    const SEED: u64 = 7;
    let written = || {
        let flash = MemoryFlash::new(shape(), 7);
        let mut log = FlashLog::create(flash.clone(), IDENTITY, SPARES).unwrap();
        let mut model = Model::new(log.status(), 60);
        assert!(model.drive(&mut log, &mut Draws(SEED), 70));
        (flash, model)
    };
    let (_, model) = written();
    assert!(model.records() > 3, "{} records", model.records());
    let (mut refused, mut shorter) = (0, 0);
    for bit in 0..shape().bytes() * 8 {
        let (flash, model) = written();
        flash.damage(bit / 8, 1 << (bit % 8));
        match FlashLog::open(flash) {
            Ok(mut log) => shorter += u32::from(!model.holds_prefix(&mut log, &format!("bit {bit}"))),
            Err(Error::Format { .. } | Error::Damaged { .. }) => refused += 1,
            Err(error) => panic!("bit {bit}: {error}"),
        }
    }
    assert!(refused > 500 && shorter > 500, "{refused} refused, {shorter} shorter");
}

#[test]
fn what_is_no_log_is_refused_with_the_offset_and_calls_out_of_order_too() {
    let flash = MemoryFlash::new(shape(), 7);
    let empty = "flash in memory at byte 0: this is no log: it does not begin with \"nvlabrvm\"";
    assert_eq!(FlashLog::open(flash.clone()).unwrap_err().to_string(), empty);
    let error = FlashLog::create(flash.clone(), IDENTITY, 5).unwrap_err().to_string();
    assert_eq!(error, "4 erase blocks for status and log: at least 5 are needed");
    let mut log = FlashLog::create(flash.clone(), IDENTITY, SPARES).unwrap();
    log.append(0, &[1; 300]).unwrap();
    for result in [
        log.append(299, &[1]),
        log.append(300, &[1; 4 * 192]),
        log.truncate(301),
        log.read(1, &mut [0; 3 * 192]),
    ] {
        assert!(matches!(result, Err(Error::Invalid(_))), "{result:?}");
    }
    // Block 1 of the log is that of the device behind six of status and table.
    assert_eq!(log.offset(200), 7 * 192 + 8);
    log.truncate(300).unwrap();
    log.append(300, &[2; 3 * 192]).unwrap();
    let mut log = FlashLog::open(flash).unwrap();
    assert!(matches!(log.append(300, &[1]), Err(Error::Invalid(_))), "before the reset");
    assert_eq!(log.reset(876).unwrap(), 960);
    log.append(960, &[3; 4 * 192]).unwrap();
}
