//! A window of this process against a plain array: random loads and stores with little resident, several threads,
//! reopening.

use crate::common::{Folder, PAGE, options, permitted};
use nvlab_serve::{Found, ServeError, TimeMode, Window, WindowOptions};
use nvlab_units::Rng;
use std::time::Instant;

fn open(options: &WindowOptions) -> Option<Window> {
    permitted(Window::open(options))
}

/// Loads and stores of 1 to 300 bytes anywhere, the same in both; every load is compared.
fn churn(window: &mut Window, model: &mut [u8], rng: &mut Rng, operations: u32) {
    for _ in 0..operations {
        let bytes = 1 + rng.below(300) as usize;
        let at = rng.below((model.len() - bytes) as u64) as usize;
        if rng.chance(0.5) {
            let value = rng.bits() as u8;
            window.as_mut_slice()[at..at + bytes].fill(value);
            model[at..at + bytes].fill(value);
        } else {
            assert!(window.as_slice()[at..at + bytes] == model[at..at + bytes], "{bytes} B at {at} differ");
        }
    }
}

#[test]
fn a_window_is_an_array() {
    for seed in 0..4 {
        let options = WindowOptions { evict_pages: 1 + 10 * seed as u32, ..options(256, 64, None) };
        let Some(mut window) = open(&options) else { return };
        let mut model = vec![0; window.len()];
        churn(&mut window, &mut model, &mut Rng::stream(seed, "window"), 20_000);
        assert!(window.as_slice() == &model[..], "seed {seed}");
        let stats = window.stats();
        assert!(stats.resident_pages <= 64, "{} pages are resident", stats.resident_pages);
        assert!(stats.misses > 5_000 && stats.evictions > 5_000 && stats.first_stores > 100, "{stats:?}");
        assert_eq!(stats.misses - stats.evictions, stats.resident_pages);
        assert_eq!(stats.controller.loads, stats.misses);
        assert_eq!(stats.controller.stores, stats.written_back);
    }
}

/// A page that nobody stored to is not written back.
#[test]
fn clean_pages_are_dropped() {
    let Some(window) = open(&options(256, 16, None)) else { return };
    assert!(window.as_slice().iter().all(|&byte| byte == 0));
    let stats = window.stats();
    assert_eq!((stats.misses, stats.written_back, stats.first_stores), (256, 0, 0));
    window.close().unwrap();
}

#[test]
fn a_closed_window_is_found_again() {
    let folder = Folder::new("reopen");
    let mut rng = Rng::stream(7, "window");
    let mut model = vec![0; (256 * PAGE) as usize];
    for round in 0..4 {
        let Some(mut window) = open(&options(256, 64, Some(&folder.0))) else { return };
        assert_eq!(*window.found(), if round == 0 { Found::Fresh } else { Found::Closed });
        assert!(window.as_slice() == &model[..], "round {round}");
        churn(&mut window, &mut model, &mut rng, 5_000);
        let stats = window.close().unwrap();
        assert_eq!(stats.dirty_pages, 0);
    }
    let error = Window::open(&options(128, 64, Some(&folder.0))).unwrap_err();
    assert!(matches!(error, ServeError::Size { found, .. } if found == 256 * PAGE), "{error}");
}

#[test]
fn a_state_has_one_owner() {
    let folder = Folder::new("owner");
    let Some(window) = open(&options(64, 16, Some(&folder.0))) else { return };
    let error = Window::open(&options(64, 16, Some(&folder.0))).unwrap_err();
    assert!(matches!(error, ServeError::Busy(_)), "{error}");
    window.close().unwrap();
    open(&options(64, 16, Some(&folder.0))).unwrap();
}

/// After `sync` the resident file may be lost, and nothing is.
#[test]
fn what_was_synced_survives_without_the_resident_pages() {
    let folder = Folder::new("synced");
    let Some(mut window) = open(&options(64, 32, Some(&folder.0))) else { return };
    window.as_mut_slice()[..200_000].fill(7);
    window.sync().unwrap();
    assert_eq!(window.stats().dirty_pages, 0);
    // A store after `sync` is noticed.
    window.as_mut_slice()[5] = 8;
    assert_eq!(window.stats().dirty_pages, 1);
    window.sync().unwrap();
    // As if the process were killed, and the file removed by a restart of the machine.
    let record = std::fs::read_to_string(folder.0.join("state.json")).unwrap();
    window.close().unwrap();
    std::fs::write(folder.0.join("state.json"), record).unwrap();
    let window = open(&options(64, 32, Some(&folder.0))).unwrap();
    assert_eq!(*window.found(), Found::Lost { restarted: false });
    assert!(window.as_slice()[..200_000].iter().enumerate().all(|(i, &b)| b == if i == 5 { 8 } else { 7 }));
}

/// Threads store to words of their own on shared pages, while a quarter of them is resident: no store is lost.
#[test]
fn stores_of_threads_to_shared_pages_are_not_lost() {
    const THREADS: usize = 4;
    let options = WindowOptions { evict_pages: 8, ..options(256, 64, None) };
    let Some(window) = open(&options) else { return };
    let words = window.len() / 8;
    let start = window.as_mut_ptr().expose_provenance();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let mut rng = Rng::stream(thread as u64, "thread");
                let mut model = vec![0u64; words / THREADS];
                for round in 1..=20_000 {
                    let i = rng.below(model.len() as u64) as usize;
                    let word = std::ptr::with_exposed_provenance_mut::<u64>(start)
                        .wrapping_add(i * THREADS + thread);
                    // SAFETY: the word lies inside the window, and only this thread uses it.
                    let found = unsafe { word.read_volatile() };
                    assert_eq!(found, model[i], "thread {thread}, word {i}, round {round}");
                    model[i] = round << 8 | thread as u64;
                    // SAFETY: as above.
                    unsafe { word.write_volatile(model[i]) };
                }
            });
        }
    });
    assert!(window.stats().misses > 10_000, "{:?}", window.stats());
}

/// In real time a store waits for the device where the model says so; in fast time it does not.
#[test]
fn faults_take_the_time_of_the_model() {
    let [mut real, mut fast] = [TimeMode::Real, TimeMode::Fast].map(|time| {
        let mut window = open(&WindowOptions { time, evict_pages: 1, ..options(256, 16, None) })?;
        let begun = Instant::now();
        for page in 0..420 {
            window.as_mut_slice()[(page * 101 % 256) * PAGE as usize] = 1;
        }
        // In this order: room is made ahead, and that too must be over.
        let wait = window.stats().controller.buffer_wait.seconds();
        Some((begun.elapsed().as_secs_f64(), wait))
    });
    let (Some((elapsed, wait)), Some((elapsed_fast, wait_fast))) = (real.take(), fast.take()) else { return };
    eprintln!(
        "real: {elapsed} s, of which {wait} s of waiting; fast: {elapsed_fast} s instead of {wait_fast} s"
    );
    assert!(wait > 0.1 && elapsed >= wait, "{elapsed} s took what waits {wait} s");
    assert!(
        wait_fast > 0.1 && elapsed_fast < wait_fast / 2.0,
        "{elapsed_fast} s took what waits {wait_fast} s"
    );
}

#[test]
fn a_window_that_cannot_be_opened_says_why() {
    let why = |options: &WindowOptions| Window::open(options).unwrap_err().to_string();
    if open(&options(64, 16, None)).is_none() {
        return;
    }
    let odd = WindowOptions { bytes: Some(5000), ..WindowOptions::default() };
    assert!(why(&odd).contains("a multiple of 4096 B"), "{}", why(&odd));
    let little = WindowOptions { resident_bytes: Some(100), ..options(64, 16, None) };
    assert!(why(&little).contains("at least 65536 B"), "{}", why(&little));
}

/// A state of another design is refused with both values, and nothing of it is touched.
#[test]
fn another_design_is_refused_and_loses_nothing() {
    let folder = Folder::new("design");
    let Some(mut window) = open(&options(256, 64, Some(&folder.0))) else { return };
    window.as_mut_slice()[4096 * 200 + 5] = 9;
    window.close().unwrap();
    let sram = folder.0.join("sram");
    let (found, nor) = (std::fs::read(&sram).unwrap(), std::fs::read(folder.0.join("nor")).unwrap());
    // Behind the name: logical pages, bytes of a page, pages of a segment, segments, dies, partitions, buffer.
    let mut other = found.clone();
    other[32..36].copy_from_slice(&77u32.to_le_bytes());
    std::fs::write(&sram, &other).unwrap();
    let ServeError::Recovery(why) = Window::open(&options(256, 64, Some(&folder.0))).unwrap_err() else {
        panic!("another error");
    };
    assert!(why.ends_with("another design: pages of the buffer: stored 77, given 8"), "{why}");
    assert!(std::fs::read(&sram).unwrap() == other && std::fs::read(folder.0.join("nor")).unwrap() == nor);
    std::fs::write(&sram, &found).unwrap();
    let window = Window::open(&options(256, 64, Some(&folder.0))).unwrap();
    assert_eq!(window.as_slice()[4096 * 200 + 5], 9);
    window.close().unwrap();
}
