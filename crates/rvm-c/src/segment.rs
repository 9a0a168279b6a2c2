//! Segments that know their regions.
//!
//! # Format of the first page, version 1
//!
//! Integers little-endian: `nvlabseg`, version (4 B), number of regions (4 B), for each region offset, length and address (8 B
//! each), and the FNV-1a hash of all this (8 B).

use crate::failure::{self, Outcome, returned};
use crate::library::{self, Engine, engine};
use crate::mapping::{Request, file_bytes, map, segment_name, unmap};
use crate::offsets::{bytes, from_bytes, rvm_page_size};
use crate::types::{Code, rvm_length_t, rvm_offset_t, rvm_options_t, rvm_region_def_t};
use std::ffi::{c_char, c_int, c_ulong};
use std::fs::{File, OpenOptions};
use std::mem::size_of;
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAGIC: &[u8; 8] = b"nvlabseg";
const VERSION: u32 = 1;
/// Bytes before the regions, of each region, and after them.
const HEAD_BYTES: usize = 16;
const REGION_BYTES: usize = 24;
const HASH_BYTES: usize = 8;

fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// Encodes regions as a page.
fn encode(regions: &[rvm_region_def_t]) -> Vec<u8> {
    let mut page = MAGIC.to_vec();
    page.extend(VERSION.to_le_bytes());
    page.extend((regions.len() as u32).to_le_bytes());
    for region in regions {
        page.extend(region.offset.low.to_le_bytes());
        page.extend(region.length.to_le_bytes());
        page.extend((region.vmaddr.addr() as u64).to_le_bytes());
    }
    page.extend(hash(&page).to_le_bytes());
    page.resize(rvm_page_size() as usize, 0);
    page
}

/// Decodes the regions of a page.
fn decode(page: &[u8]) -> Result<Vec<rvm_region_def_t>, Code> {
    let word = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().expect("8 bytes"));
    let number = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().expect("4 bytes"));
    if &page[..8] != MAGIC {
        return Err(Code::ESEGMENT_HDR);
    }
    if number(8) != VERSION {
        return Err(Code::EVERSION_SKEW);
    }
    let regions = number(12) as usize;
    if regions > (page.len() - HEAD_BYTES - HASH_BYTES) / REGION_BYTES {
        return Err(Code::ESEGMENT_HDR);
    }
    let end = HEAD_BYTES + REGION_BYTES * regions;
    if word(end) != hash(&page[..end]) {
        return Err(Code::ESEGMENT_HDR);
    }
    let region = |index: usize| {
        let at = HEAD_BYTES + REGION_BYTES * index;
        let vmaddr = std::ptr::with_exposed_provenance_mut(word(at + 16) as usize);
        rvm_region_def_t { offset: from_bytes(word(at)), length: word(at + 8), vmaddr }
    };
    Ok((0..regions).map(region).collect())
}

/// Opens the log if the options name the first, and returns the segment's path and its usable bytes.
///
/// # Safety
/// Strings are strings, and records are records or null.
unsafe fn prepare<'a>(
    name: *const c_char,
    length: rvm_offset_t,
    options: *const rvm_options_t,
) -> Result<(&'a Path, u64), Code> {
    library::check_running()?;
    // SAFETY: as the caller promises.
    let path = unsafe {
        if !options.is_null() {
            library::change(options)?;
        }
        library::path(name, Code::EREGION_DEF)?
    };
    engine()?;
    let has = file_bytes(path)?;
    let most = bytes(length).ok_or(Code::EOFFSET)?;
    Ok((path, if most == 0 { has } else { most.min(has) }))
}

/// Sets the offset of each region.
fn lay_out(regions: &mut [rvm_region_def_t], has: u64) -> Outcome {
    let page = rvm_page_size();
    if HEAD_BYTES + REGION_BYTES * regions.len() + HASH_BYTES > page as usize {
        return Err(Code::ENO_MEMORY);
    }
    let mut offset = page;
    for region in &mut *regions {
        let address = region.vmaddr.addr() as u64;
        if region.length == 0 || !region.length.is_multiple_of(page) || !address.is_multiple_of(page) {
            return Err(Code::ERANGE);
        }
        region.offset = from_bytes(offset);
        offset = offset.checked_add(region.length).filter(|&end| end <= has).ok_or(Code::EOFFSET)?;
    }
    let mut fixed: Vec<_> = regions.iter().filter(|region| !region.vmaddr.is_null()).collect();
    fixed.sort_by_key(|region| region.vmaddr.addr());
    let overlap =
        |pair: &[&rvm_region_def_t]| pair[1].vmaddr.addr() - pair[0].vmaddr.addr() < pair[0].length as usize;
    if fixed.windows(2).any(overlap) { Err(Code::EVM_OVERLAP) } else { Ok(()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_create_segment(
    dev_name: *const c_char,
    dev_length: rvm_offset_t,
    options: *const rvm_options_t,
    n_regions: rvm_length_t,
    region_defs: *mut rvm_region_def_t,
) -> c_int {
    // SAFETY: the program passes a string, records or null, and as many regions as it says.
    let create = || unsafe {
        let (path, has) = prepare(dev_name, dev_length, options)?;
        if region_defs.is_null() || n_regions == 0 {
            return Err(Code::EREGION_DEF);
        }
        let regions = std::slice::from_raw_parts_mut(region_defs, n_regions as usize);
        lay_out(regions, has)?;
        // What the log holds of the segment's earlier contents must not be applied to the new ones.
        engine()?.rvm.truncate().map_err(|error| failure::of(&error))?;
        let written = OpenOptions::new().write(true).open(path).and_then(|file| {
            file.write_all_at(&encode(regions), 0)?;
            file.sync_data()
        });
        written.map_err(|error| failure::of_io(&format!("write the header of {}", path.display()), &error))
    };
    returned(create())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_load_segment(
    dev_name: *const c_char,
    dev_length: rvm_offset_t,
    options: *const rvm_options_t,
    n_regions: *mut c_ulong,
    regions: *mut *mut rvm_region_def_t,
) -> c_int {
    // SAFETY: the program passes a string, a record or null, and where to store the result.
    returned(unsafe { load(dev_name, dev_length, options, n_regions, regions) })
}

/// # Safety
/// `name` is null or a string, `options` null or a record, and the results can be stored.
pub(crate) unsafe fn load(
    name: *const c_char,
    length: rvm_offset_t,
    options: *const rvm_options_t,
    n_regions: *mut c_ulong,
    regions: *mut *mut rvm_region_def_t,
) -> Outcome {
    // SAFETY: as the caller promises.
    let (path, has) = unsafe { prepare(name, length, options)? };
    let engine = engine()?;
    if has < rvm_page_size() {
        return Err(Code::ESEGMENT_HDR);
    }
    let mut page = vec![0; rvm_page_size() as usize];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut page, 0));
    read.map_err(|error| failure::of_io(&format!("read the header of {}", path.display()), &error))?;
    let mut found = decode(&page)?;
    let segment = segment_name(path)?;
    let mut mapped = 0;
    let outcome = found.iter_mut().try_for_each(|region| {
        let offset = bytes(region.offset).ok_or(Code::ESEGMENT_HDR)?;
        let length = region.length as usize;
        if offset.checked_add(region.length).is_none_or(|end| end > has) {
            return Err(Code::EOFFSET);
        }
        let segment = segment.clone();
        let request = Request { segment, offset, length, address: region.vmaddr.cast(), replaces: false };
        region.vmaddr = map(&engine, request)?.cast();
        mapped += 1;
        Ok(())
    });
    // SAFETY: room for all regions, at least one byte.
    let array = unsafe { libc::malloc((found.len() * size_of::<rvm_region_def_t>()).max(1)) };
    if let Err(code) = outcome.and(if array.is_null() { Err(Code::ENO_MEMORY) } else { Ok(()) }) {
        release(&engine, &found[..mapped])?;
        // SAFETY: allocated above, or null.
        unsafe { libc::free(array) };
        return Err(code);
    }
    let array = array.cast::<rvm_region_def_t>();
    // SAFETY: as many as there is room for; the results can be stored, as the caller promises.
    unsafe {
        array.copy_from_nonoverlapping(found.as_ptr(), found.len());
        (*n_regions, *regions) = (found.len() as c_ulong, array);
    }
    Ok(())
}

/// Unmaps regions and gives their addresses back.
fn release(engine: &Engine, regions: &[rvm_region_def_t]) -> Outcome {
    let unmap =
        |region: &rvm_region_def_t| unmap(engine, region.vmaddr.addr(), region.length as usize, false);
    regions.iter().try_for_each(unmap)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_release_segment(
    n_regions: c_ulong,
    regions: *mut *mut rvm_region_def_t,
) -> c_int {
    // SAFETY: the program passes an array made by `rvm_load_segment`.
    returned(unsafe { release_loaded(n_regions, regions) })
}

/// # Safety
/// `regions` is null or points to an array made by [`load`], of so many regions.
pub(crate) unsafe fn release_loaded(n_regions: c_ulong, regions: *mut *mut rvm_region_def_t) -> Outcome {
    let engine = engine()?;
    // SAFETY: as the caller promises.
    unsafe {
        if regions.is_null() || (*regions).is_null() {
            return Err(Code::EREGION_DEF);
        }
        release(&engine, std::slice::from_raw_parts(*regions, n_regions as usize))?;
        libc::free((*regions).cast());
        *regions = std::ptr::null_mut();
    }
    Ok(())
}
