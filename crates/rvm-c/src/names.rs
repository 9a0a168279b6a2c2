//! Names of codes, modes and record kinds.

use crate::types::{
    Code, FLUSH, NO_FLUSH, NO_RESTORE, OPTIONS_ID, REGION_ID, RESTORE, STATISTICS_ID, TID_ID, rvm_mode_t,
    rvm_struct_id_t,
};
use std::ffi::{CStr, c_char, c_int};

#[unsafe(no_mangle)]
pub extern "C" fn rvm_return(code: c_int) -> *const c_char {
    let found = Code::ALL.iter().find(|(_, value)| *value == code);
    found.map_or(c"Invalid return code", |(name, _)| name).as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn rvm_mode(mode: rvm_mode_t) -> *const c_char {
    let name: &CStr = match mode {
        RESTORE => c"restore",
        NO_RESTORE => c"no_restore",
        FLUSH => c"flush",
        NO_FLUSH => c"no_flush",
        _ => c"Invalid transaction mode",
    };
    name.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn rvm_type(id: rvm_struct_id_t) -> *const c_char {
    let name: &CStr = match id {
        REGION_ID => c"rvm_region_t",
        OPTIONS_ID => c"rvm_options_t",
        TID_ID => c"rvm_tid_t",
        STATISTICS_ID => c"rvm_statistics_t",
        _ => c"Invalid structure identifier",
    };
    name.as_ptr()
}
