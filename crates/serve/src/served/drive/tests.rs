//! The end of the model's time: every request is refused, nothing waits, and the next start begins anew.

use super::*;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

/// One of every kind of controller, small.
const DESIGNS: [(&str, &[&str]); 9] = [
    ("ssd-tlc", &["media.tlc.blocks=20", "ftl.spare=55%", "ftl.buffer.size=8MiB", "array.channels=1"]),
    ("tlc-pslc", &["media.tlc.blocks=60", "ftl.spare=50%", "ftl.buffer.size=8MiB", "array.channels=1"]),
    ("bench-4g", &["media.nand.blocks=48", "ftl.spare=30%"]),
    ("envy-128m", &[]),
    ("fusion-fast", &["media.mlc.blocks=12"]),
    ("hftl", &["media.nand.blocks=48", "ftl.capacity=8MiB", "media.pram.size=1MiB"]),
    ("moneta", &[]),
    ("disk-2010", &[]),
    ("nvramdisk", &["media.dram.size=16MiB"]),
];
const UNIT: usize = 4096;
/// No request takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

fn drive((name, sets): (&str, &[&str]), time: TimeMode, state: Option<&Path>) -> Drive {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    let design = Design::load(name, &sets).unwrap_or_else(|errors| panic!("{name}: {errors}"));
    let options = DriveOptions { time, state: state.map(Path::to_path_buf), ..DriveOptions::default() };
    Drive::open(name, &design, &options).unwrap()
}

/// Writes until the time is over; then everything is refused, and what shows the device still does. Returns what was written.
fn over(drive: &Drive) -> u64 {
    drive.inner().clock = Clock::new(drive.time, Time::MAX.before(Span::from_ms(1)));
    let (session, mut written) = (drive.session(), 0);
    let place = |nth: u64| nth * 7919 % 1024 * UNIT as u64;
    let error = loop {
        match drive.write(session, place(written), &[written as u8; UNIT], true) {
            Ok(due) => assert!(due.is_none_or(|due| due < Instant::now() + Duration::from_secs(3600))),
            Err(error) => break error,
        }
        written += 1;
        assert!(written < 100_000, "its time does not end");
    };
    assert_eq!(error, DriveError::TimeIsOver);
    assert!(error.to_string().contains("213 days"), "{error}");
    let mut page = [0; UNIT];
    assert_eq!(drive.read(session, 0, &mut page), Err(DriveError::TimeIsOver));
    assert_eq!(drive.write(session, 0, &page, false), Err(DriveError::TimeIsOver));
    assert_eq!(drive.flush(session), Err(DriveError::TimeIsOver));
    assert_eq!(drive.trim(session, 0, UNIT as u64, false), Err(DriveError::TimeIsOver));
    assert_eq!(drive.cut(), Err(DriveError::TimeIsOver));
    drive.counts();
    drive.view();
    drive.result();
    written
}

#[test]
fn a_drive_whose_time_is_over_says_so() {
    for of in DESIGNS {
        for time in [TimeMode::Fast, TimeMode::Real, TimeMode::Slower(100)] {
            let (done, wait) = channel();
            std::thread::spawn(move || {
                let drive = drive(of, time, None);
                over(&drive);
                drive.close().unwrap();
                let _ = done.send(());
            });
            let waited = wait.recv_timeout(PATIENCE);
            waited.unwrap_or_else(|error| panic!("{}, {time:?}: {error}", of.0));
        }
    }
}

/// What was written before, and acknowledged, is there at the next start.
#[test]
fn the_next_start_begins_anew() {
    let folder = std::env::temp_dir().join(format!("nvlab-serve-over-{}", std::process::id()));
    for of in DESIGNS.into_iter().filter(|of| of.0 != "disk-2010") {
        let _ = std::fs::remove_dir_all(&folder);
        let first = drive(of, TimeMode::Fast, Some(&folder));
        let written = over(&first);
        first.close().unwrap();
        drop(first);
        let again = drive(of, TimeMode::Fast, Some(&folder));
        assert_eq!(again.start(), Start::Closed);
        let mut page = [0; UNIT];
        for nth in written.saturating_sub(100)..written {
            again.read(again.session(), nth * 7919 % 1024 * UNIT as u64, &mut page).unwrap();
            assert_eq!(page, [nth as u8; UNIT], "{}: write {nth} of {written}", of.0);
        }
        again.write(again.session(), 0, &page, true).unwrap();
    }
    let _ = std::fs::remove_dir_all(&folder);
}
