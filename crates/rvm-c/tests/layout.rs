//! The records of the headers have the same sizes and offsets in Rust as a C compiler gives them, and the same codes.

mod compiler;

use rvm::types::*;
use std::fmt::Write;
use std::mem::{offset_of, size_of};

/// Lines `name number`, in Rust, and the C statements that print the same.
#[derive(Default)]
struct Lines {
    rust: String,
    c: String,
}

impl Lines {
    fn number(&mut self, name: &str, value: usize, expression: &str) {
        writeln!(self.rust, "{name} {value}").unwrap();
        writeln!(self.c, "    printf(\"%s %lu\\n\", \"{name}\", (unsigned long)({expression}));").unwrap();
    }
}

macro_rules! record {
    ($lines:ident, $record:ident: $($field:ident),* $(,)?) => {
        let name = stringify!($record);
        $lines.number(name, size_of::<$record>(), &format!("sizeof({name})"));
        $(
            let field = stringify!($field);
            $lines.number(
                &format!("{name}.{field}"),
                offset_of!($record, $field),
                &format!("offsetof({name}, {field})"),
            );
        )*
    };
}

fn records(lines: &mut Lines) {
    record!(lines, rvm_offset_t: high, low);
    record!(lines, rvm_tid_t: struct_id, from_heap, uname, tid, reserved);
    record!(
        lines,
        rvm_options_t: struct_id, from_heap, log_dev, truncate, recovery_buf_len, flush_buf_len, max_read_len, log_empty,
        pager, n_uncommit, tid_array, flags, create_log_file, create_log_size, create_log_mode,
    );
    record!(
        lines,
        rvm_region_t: struct_id, from_heap, data_dev, dev_length, offset, vmaddr, length, no_copy,
    );
    record!(lines, rvm_region_def_t: offset, length, vmaddr);
    record!(lines, intentionList_t: size, count, table);
    record!(
        lines,
        rds_stats_t: malloc, prealloc, free, coalesce, hits, misses, large_list, large_hits, large_misses, merged,
        unmerged, freebytes, mallocbytes,
    );
    record!(
        lines,
        rvm_statistics_t: struct_id, from_heap, n_abort, n_flush_commit, n_no_flush_commit, n_uncommit, n_no_flush,
        n_truncation_wait, no_flush_length, n_split, n_flush, n_rvm_flush, n_special, n_wrap, log_dev_cur, log_written,
        range_overlap, trans_overlap, n_range_elim, n_trans_elim, n_trans_coalesced, flush_time, last_flush_time,
        last_truncation_time, last_tree_build_time, last_tree_apply_time, flush_times, range_lengths, range_elims,
        trans_elims, range_overlaps, trans_overlaps, tot_abort, tot_flush_commit, tot_no_flush_commit, tot_split,
        tot_flush, tot_rvm_flush, tot_special, tot_wrap, log_dev_max, tot_log_written, tot_range_overlap,
        tot_trans_overlap, tot_range_elim, tot_trans_elim, tot_trans_coalesced, tot_rvm_truncate, tot_async_truncation,
        tot_sync_truncation, tot_truncation_wait, tot_recovery, tot_flush_time, tot_truncation_time, tot_tree_build_times,
        tot_tree_apply_times, tot_truncation_times, tot_flush_times, tot_range_lengths, tot_range_elims, tot_trans_elims,
        tot_range_overlaps, tot_trans_overlaps, tot_trans_coalesces,
    );
}

fn constants(lines: &mut Lines) {
    for (name, value) in Code::ALL {
        let name = name.to_str().unwrap();
        lines.number(name, *value as usize, name);
    }
    let enumerators = [
        ("rvm_region_id", REGION_ID),
        ("rvm_options_id", OPTIONS_ID),
        ("rvm_tid_id", TID_ID),
        ("rvm_statistics_id", STATISTICS_ID),
        ("restore", RESTORE),
        ("no_restore", NO_RESTORE),
        ("flush", FLUSH),
        ("no_flush", NO_FLUSH),
        ("rvm_false", RVM_FALSE),
        ("rvm_true", RVM_TRUE),
    ];
    for (name, value) in enumerators {
        lines.number(name, value as usize, name);
    }
    lines.number("sizeof enum", size_of::<rvm_mode_t>(), "sizeof(rvm_mode_t)");
    lines.number(
        "flags",
        (COALESCE_RANGES | COALESCE_TRANS | MAP_PRIVATE) as usize,
        "RVM_ALL_OPTIMIZATIONS | RVM_MAP_PRIVATE",
    );
}

#[test]
fn records_and_codes_are_those_of_c() {
    let mut lines = Lines::default();
    records(&mut lines);
    constants(&mut lines);
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("layout.c");
    let head = "#include <rvm/rds.h>\n#include <rvm/rvm_segment.h>\n#include <rvm/rvm_statistics.h>\n#include <stddef.h>\n";
    std::fs::write(&source, format!("{head}int main(void) {{\n{}    return 0;\n}}\n", lines.c)).unwrap();
    let program = compiler::compile(&source, folder.path(), compiler::Library::Static);
    assert_eq!(compiler::run(&program, &[]), lines.rust);
}
