//! The records and codes of the headers, laid out as a C compiler does: `tests/layout.rs` compares every size and offset.
//!
//! Names are those of C. Enumerations are integers here: a C program may pass any.

#![allow(non_camel_case_types, missing_docs)]

use libc::timeval;
use std::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};

pub type rvm_length_t = c_ulong;
pub type rvm_bool_t = c_uint;
pub type rvm_mode_t = c_uint;
pub type rvm_struct_id_t = c_uint;

pub const RVM_FALSE: rvm_bool_t = 0;
pub const RVM_TRUE: rvm_bool_t = 1;

/// Defines each return code once, with its name in C.
macro_rules! codes {
    ($($name:ident = $value:literal),* $(,)?) => {
        /// The return codes of `rvm.h`.
        #[repr(i32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($name = $value),* }

        impl Code {
            /// Every code with its name in C and its value.
            pub const ALL: &[(&std::ffi::CStr, c_int)] = &[$((
                match std::ffi::CStr::from_bytes_with_nul(concat!("RVM_", stringify!($name), "\0").as_bytes()) {
                    Ok(name) => name,
                    Err(_) => unreachable!(),
                },
                $value,
            )),*];
        }
    };
}

codes! {
    SUCCESS = 0, EINIT = 200, EINTERNAL = 201, EIO = 202, ELOG = 204, ELOG_VERSION_SKEW = 205, EMODE = 206,
    ENAME_TOO_LONG = 207, ENO_MEMORY = 208, ENOT_MAPPED = 209, EOFFSET = 210, EOPTIONS = 211, EOVERLAP = 212,
    EPAGER = 213, ERANGE = 214, EREGION = 215, EREGION_DEF = 216, ESRC = 217, ESTATISTICS = 218,
    ESTAT_VERSION_SKEW = 219, ETERMINATED = 220, ETHREADS = 221, ETID = 222, ETOO_BIG = 223, EUNCOMMIT = 224,
    EVERSION_SKEW = 225, EVM_OVERLAP = 226, ESEGMENT_HDR = 2000,
}

pub const REGION_ID: rvm_struct_id_t = 40;
pub const OPTIONS_ID: rvm_struct_id_t = 41;
pub const TID_ID: rvm_struct_id_t = 42;
pub const STATISTICS_ID: rvm_struct_id_t = 43;

pub const RESTORE: rvm_mode_t = 140;
pub const NO_RESTORE: rvm_mode_t = 141;
pub const FLUSH: rvm_mode_t = 142;
pub const NO_FLUSH: rvm_mode_t = 143;

pub const COALESCE_RANGES: rvm_length_t = 1;
pub const COALESCE_TRANS: rvm_length_t = 2;
pub const MAP_PRIVATE: rvm_length_t = 8;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct rvm_offset_t {
    pub high: rvm_length_t,
    pub low: rvm_length_t,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rvm_tid_t {
    pub struct_id: rvm_struct_id_t,
    pub from_heap: rvm_bool_t,
    pub uname: timeval,
    pub tid: *mut c_void,
    pub reserved: rvm_length_t,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rvm_options_t {
    pub struct_id: rvm_struct_id_t,
    pub from_heap: rvm_bool_t,
    pub log_dev: *mut c_char,
    pub truncate: c_long,
    pub recovery_buf_len: rvm_length_t,
    pub flush_buf_len: rvm_length_t,
    pub max_read_len: rvm_length_t,
    pub log_empty: rvm_bool_t,
    pub pager: *mut c_char,
    pub n_uncommit: c_long,
    pub tid_array: *mut rvm_tid_t,
    pub flags: rvm_length_t,
    pub create_log_file: rvm_bool_t,
    pub create_log_size: rvm_offset_t,
    pub create_log_mode: c_long,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rvm_region_t {
    pub struct_id: rvm_struct_id_t,
    pub from_heap: rvm_bool_t,
    pub data_dev: *mut c_char,
    pub dev_length: rvm_offset_t,
    pub offset: rvm_offset_t,
    pub vmaddr: *mut c_char,
    pub length: rvm_length_t,
    pub no_copy: rvm_bool_t,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rvm_region_def_t {
    pub offset: rvm_offset_t,
    pub length: rvm_length_t,
    pub vmaddr: *mut c_char,
}

#[repr(C)]
pub struct intentionList_t {
    pub size: c_ulong,
    pub count: c_ulong,
    pub table: *mut *mut c_char,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct rds_stats_t {
    pub malloc: c_uint,
    pub prealloc: c_uint,
    pub free: c_uint,
    pub coalesce: c_uint,
    pub hits: c_uint,
    pub misses: c_uint,
    pub large_list: c_uint,
    pub large_hits: c_uint,
    pub large_misses: c_uint,
    pub merged: c_uint,
    pub unmerged: c_uint,
    pub freebytes: c_uint,
    pub mallocbytes: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rvm_statistics_t {
    pub struct_id: rvm_struct_id_t,
    pub from_heap: rvm_bool_t,
    pub n_abort: rvm_length_t,
    pub n_flush_commit: rvm_length_t,
    pub n_no_flush_commit: rvm_length_t,
    pub n_uncommit: rvm_length_t,
    pub n_no_flush: rvm_length_t,
    pub n_truncation_wait: rvm_length_t,
    pub no_flush_length: rvm_offset_t,
    pub n_split: rvm_length_t,
    pub n_flush: rvm_length_t,
    pub n_rvm_flush: rvm_length_t,
    pub n_special: rvm_length_t,
    pub n_wrap: rvm_length_t,
    pub log_dev_cur: rvm_length_t,
    pub log_written: rvm_offset_t,
    pub range_overlap: rvm_offset_t,
    pub trans_overlap: rvm_offset_t,
    pub n_range_elim: rvm_length_t,
    pub n_trans_elim: rvm_length_t,
    pub n_trans_coalesced: rvm_length_t,
    pub flush_time: timeval,
    pub last_flush_time: rvm_length_t,
    pub last_truncation_time: rvm_length_t,
    pub last_tree_build_time: rvm_length_t,
    pub last_tree_apply_time: rvm_length_t,
    pub flush_times: [rvm_length_t; 10],
    pub range_lengths: [rvm_length_t; 13],
    pub range_elims: [rvm_length_t; 6],
    pub trans_elims: [rvm_length_t; 6],
    pub range_overlaps: [rvm_length_t; 13],
    pub trans_overlaps: [rvm_length_t; 13],
    pub tot_abort: rvm_length_t,
    pub tot_flush_commit: rvm_length_t,
    pub tot_no_flush_commit: rvm_length_t,
    pub tot_split: rvm_length_t,
    pub tot_flush: rvm_length_t,
    pub tot_rvm_flush: rvm_length_t,
    pub tot_special: rvm_length_t,
    pub tot_wrap: rvm_length_t,
    pub log_dev_max: rvm_length_t,
    pub tot_log_written: rvm_offset_t,
    pub tot_range_overlap: rvm_offset_t,
    pub tot_trans_overlap: rvm_offset_t,
    pub tot_range_elim: rvm_length_t,
    pub tot_trans_elim: rvm_length_t,
    pub tot_trans_coalesced: rvm_length_t,
    pub tot_rvm_truncate: rvm_length_t,
    pub tot_async_truncation: rvm_length_t,
    pub tot_sync_truncation: rvm_length_t,
    pub tot_truncation_wait: rvm_length_t,
    pub tot_recovery: rvm_length_t,
    pub tot_flush_time: timeval,
    pub tot_truncation_time: timeval,
    pub tot_tree_build_times: [rvm_length_t; 5],
    pub tot_tree_apply_times: [rvm_length_t; 5],
    pub tot_truncation_times: [rvm_length_t; 5],
    pub tot_flush_times: [rvm_length_t; 10],
    pub tot_range_lengths: [rvm_length_t; 13],
    pub tot_range_elims: [rvm_length_t; 6],
    pub tot_trans_elims: [rvm_length_t; 6],
    pub tot_range_overlaps: [rvm_length_t; 13],
    pub tot_trans_overlaps: [rvm_length_t; 13],
    pub tot_trans_coalesces: [rvm_length_t; 6],
}
