//! Tests of the text of a run: whole texts of small cases.

use super::*;
use nvlab_run::result::{Lifetime, RESULTS_VERSION};
use nvlab_run::sample;

#[test]
fn a_run_at_100_columns() {
    let text = run_text(&sample::run("ssd-tlc", 1), Style::default());
    let wanted = "\
ssd-tlc · 114 GiB of 129 GiB raw · A small NVMe drive of today
zipf theta=0.99 read=70% bs=4KiB qd=32 · seed 1                   simulated 60.0 s in 3.10 s (19.4x)
29.8 M units of 4 KiB, 32 requests at a time

  Prepared        filled once in order, then 4.1 capacities of the workload's own writes, steady at
                  WA 2.97
  Requests        1 800 000 issued, all served
  Throughput      30 000 IOPS   read 86.0 MB/s   write 36.9 MB/s
  Latency            mean      p50      p95      p99    p99.9   p99.99      max
    read          61.0 us  58.0 us  95.0 us   183 us  1.24 ms  4.20 ms  12.7 ms
    write          122 us   116 us   190 us   366 us  2.48 ms  8.40 ms  25.4 ms
  Write amp.      2.97   = 1 host + 1.92 cleaning + 0.03 wear levelling + 0.02 map
  Cleaning        12 001 blocks cleaned, 65.7 % live on average
  Device busy     dies 41 %: read 9, program 22, erase 10   channels 31 %
  Flash           1 400 000 reads, 61 875 programs, 12 345 erases
  Wear            cycles mean 5.88, min 1, max 12, deviation 3.20; rated 3 000
  Lifetime        240 TB can be written; 1.13 drive writes per day for 5 years;
                  8.40 years at this speed (6.12 years by the most worn block)
  Price           62.3 USD (tlc 55.2, dram 7.10)   0.546 USD/GiB
  Memory          240 MiB of tables in the controller

  key 3f9c01ab · nvlab 0.1.0 · results version #
";
    assert_eq!(text, wanted.replace('#', &RESULTS_VERSION.to_string()));
}

#[test]
fn the_software_says_where_time_goes() {
    let mut run = sample::run("ssd-tlc", 1);
    run.software = Some(sample::software());
    let text = run_text(&run, Style::default());
    let wanted = "
  Software        mine: 8 threads, 10.0 us above the device, 1 lock, 5.00 % of the latency spent
                  waiting for them
  Processor       4.00 us a request, 2.00 us at locks, 1.25 of 4 cores used
  Time goes to    issue 5.00 us, device 30.0 us, wake-up 4.50 us, waiting for thread or core 500 ns
";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn a_narrow_terminal_and_what_went_wrong() {
    let mut run = sample::run("ssd-tlc", 1);
    run.precondition.converged = false;
    run.requests_asked = Some(2_000_000);
    run.flash.as_mut().unwrap().failures = [2, 1, 0];
    run.write_amplification.unaligned = 1.75;
    run.lifetime = Lifetime { rated_cycles: 3000, ..Lifetime::default() };
    run.buffer_wait_s = 1.5e-3 * run.write.count as f64;
    let text = run_text(&run, Style { color: false, width: 80 });
    let wanted = "  Prepared        ! filled once in order, then 4.1 capacities of the workload's
                  own writes, not steady: WA still changed from 2.96 to 2.97
  Requests        ! 2 000 000 issued, 1 800 000 served
";
    assert!(text.contains(wanted), "{text}");
    assert!(text.contains("\n  Faults          ! 2 reads lost, 1 program failed\n"), "{text}");
    assert!(text.contains("\n  Lifetime        undetermined: no host data has been programmed"), "{text}");
    assert!(
        text.contains("\n  Buffer          writes waited 1.50 ms on average for room in the write buffer"),
        "{text}"
    );
    assert!(text.contains("\n                  1.75 bytes of units touched"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn colours_change_nothing_but_colours() {
    let mut run = sample::run("ssd-tlc", 1);
    run.precondition.converged = false;
    let plain = run_text(&run, Style { color: false, width: 70 });
    let mut colored = run_text(&run, Style { color: true, width: 70 });
    assert!(colored.contains("\x1b[33m! filled once in order"));
    for code in ["0", "1", "2", "33", "36"] {
        colored = colored.replace(&format!("\x1b[{code}m"), "");
    }
    assert_eq!(colored, plain);
}

#[test]
fn preconditions_are_said_in_words() {
    let mut run = sample::run("ssd-tlc", 1);
    run.precondition.kind = "fresh".to_string();
    assert_eq!(precondition(&run).0, "new, every block erased");
    run.precondition.kind = "full".to_string();
    assert_eq!(precondition(&run).0, "filled once in order");
    run.requests_asked = None;
    assert_eq!(requests(&run), ("1 800 000 served".to_string(), false));
    run.write_amplification.total = 0.0;
    assert!(run_text(&run, Style::default()).contains("  Write amp.      none: the host wrote nothing\n"));
}
