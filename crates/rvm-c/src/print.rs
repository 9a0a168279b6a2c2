//! Statistics as text, on C streams.

use crate::offsets::bytes;
use crate::rds::{for_each_block, statistics};
use crate::records::is_record;
use crate::trace::{line, print};
use crate::types::{Code, rvm_offset_t, rvm_statistics_t};
use std::ffi::c_int;

unsafe extern "C" {
    /// The C library's.
    static stdout: *mut libc::FILE;
}

fn number(offset: rvm_offset_t) -> u64 {
    bytes(offset).unwrap_or(u64::MAX)
}

/// What is counted, now and before the last truncation, with its unit.
fn lines(of: &rvm_statistics_t) -> Vec<(&'static str, u64, u64)> {
    let milliseconds = |time: libc::timeval| time.tv_sec as u64 * 1000 + time.tv_usec as u64 / 1000;
    vec![
        ("committed with flush", of.n_flush_commit, of.tot_flush_commit),
        ("committed without", of.n_no_flush_commit, of.tot_no_flush_commit),
        ("aborted", of.n_abort, of.tot_abort),
        ("not ended", of.n_uncommit, 0),
        ("committed, not durable", of.n_no_flush, 0),
        ("  bytes of these", number(of.no_flush_length), 0),
        ("flushes by commits", of.n_flush, of.tot_flush),
        ("flushes asked for", of.n_rvm_flush, of.tot_rvm_flush),
        ("time in flushes, ms", milliseconds(of.flush_time), milliseconds(of.tot_flush_time)),
        ("last flush, ms", of.last_flush_time, 0),
        ("truncations asked for", 0, of.tot_rvm_truncate),
        ("truncations by themselves", 0, of.tot_async_truncation + of.tot_sync_truncation),
        ("recoveries", 0, of.tot_recovery),
        ("time in truncations, ms", 0, milliseconds(of.tot_truncation_time)),
        ("log in use, percent (most)", of.log_dev_cur, of.log_dev_max),
        ("log in use, bytes (written)", number(of.log_written), number(of.tot_log_written)),
        ("bytes declared twice", number(of.range_overlap), number(of.tot_range_overlap)),
        ("ranges joined", of.n_range_elim, of.tot_range_elim),
    ]
}

fn histograms(of: &rvm_statistics_t) -> [(&'static str, &[u64], &[u64]); 5] {
    [
        ("flushes by ms", &of.flush_times, &of.tot_flush_times),
        ("truncations by s", &[], &of.tot_truncation_times),
        ("ranges by bytes", &of.range_lengths, &of.tot_range_lengths),
        ("transactions by ranges joined", &of.range_elims, &of.tot_range_elims),
        ("transactions by bytes declared twice", &of.range_overlaps, &of.tot_range_overlaps),
    ]
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_print_statistics(
    of: *const rvm_statistics_t,
    out_stream: *mut libc::FILE,
) -> c_int {
    // SAFETY: the program passes a record and an open stream.
    unsafe {
        if !is_record(of) {
            return Code::ESTATISTICS as c_int;
        }
        let of = &*of;
        let mut works = print(out_stream, format_args!("{:36} {:>12} {:>12}", "RVM", "current", "before"));
        for (name, now, before) in lines(of).into_iter().filter(|(_, now, before)| now + before > 0) {
            works &= print(out_stream, format_args!("{name:36} {now:12} {before:12}"));
        }
        for (name, now, before) in histograms(of) {
            for (title, counts) in [("current", now), ("before", before)] {
                if counts.iter().any(|&count| count > 0) {
                    works &= print(out_stream, format_args!("{name}, {title}: {counts:?}"));
                }
            }
        }
        if works { 0 } else { Code::EIO as c_int }
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn rds_print_stats() -> c_int {
    match statistics() {
        // SAFETY: the C library's stream is open.
        Ok(now) => match unsafe { print(stdout, format_args!("{now:#?}")) } {
            true => 0,
            false => Code::EIO as c_int,
        },
        Err(code) => code,
    }
}

/// Traces every block of the heap.
#[unsafe(no_mangle)]
pub extern "C" fn rds_trace_dump_heap() -> c_int {
    for_each_block(|address, bytes, is_used| {
        let state = if is_used { "used" } else { "free" };
        line(format_args!("rdstrace: block addr {address:#x} size {bytes:x} {state}"));
    })
}
