//! Regions: mapping and unmapping.

use crate::failure::{self, Outcome, returned};
use crate::library::{self, Engine, Region, engine, full_path};
use crate::offsets::{bytes, from_bytes, rvm_page_size};
use crate::records::is_record;
use crate::types::{Code, rvm_length_t, rvm_options_t, rvm_region_t};
use std::ffi::c_int;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What is to be mapped: part of a segment, and where.
#[derive(Debug)]
pub(crate) struct Request {
    pub segment: String,
    pub offset: u64,
    pub length: usize,
    /// Where to map it; null: anywhere.
    pub address: *mut u8,
    /// Whether what is mapped at the address now may be replaced.
    pub replaces: bool,
}

/// Bytes of a file or device.
pub(crate) fn file_bytes(path: &Path) -> Result<u64, Code> {
    let measured = std::fs::File::open(path).and_then(|mut file| {
        let end = std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0))?;
        // A directory can be opened but not read.
        file.read_at(&mut [0], 0).map(|_| end)
    });
    measured.map_err(|error| failure::of_io(&format!("open {}", path.display()), &error))
}

/// The name under which a segment is known.
pub(crate) fn segment_name(path: &Path) -> Result<String, Code> {
    full_path(path)?.into_os_string().into_string().map_err(|_| {
        failure::set_errno(libc::EILSEQ);
        Code::EIO
    })
}

/// The part of a segment that a record asks for, in whole pages but at its end.
///
/// # Safety
/// The strings of `region` are strings.
unsafe fn requested(region: &rvm_region_t) -> Result<Request, Code> {
    // SAFETY: as the caller promises.
    let path = unsafe { library::path(region.data_dev, Code::EREGION)? };
    let has = file_bytes(path)?;
    let limit = match bytes(region.dev_length).ok_or(Code::EOFFSET)? {
        0 => has,
        most => most.min(has),
    };
    let page = rvm_page_size();
    let asked = bytes(region.offset).filter(|&offset| offset < limit).ok_or(Code::EOFFSET)?;
    let end = match region.length {
        0 => limit,
        length => {
            let end = asked.checked_add(length).ok_or(Code::EOFFSET)?;
            end.checked_next_multiple_of(page).ok_or(Code::EOFFSET)?.min(limit)
        }
    };
    let offset = asked / page * page;
    let length = usize::try_from(end - offset).map_err(|_| Code::ERANGE)?;
    let address: *mut u8 = region.vmaddr.cast();
    if !address.addr().is_multiple_of(page as usize) || address.addr().checked_add(length).is_none() {
        return Err(Code::ERANGE);
    }
    Ok(Request { segment: segment_name(path)?, offset, length, address, replaces: true })
}

/// Fails if something is mapped there, and reserves it otherwise.
fn reserve(address: *mut u8, length: usize) -> Outcome {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: nothing that is mapped is replaced.
    let got = unsafe { libc::mmap(address.cast(), length, libc::PROT_NONE, flags, -1, 0) };
    if got.cast() == address {
        return Ok(());
    }
    if got != libc::MAP_FAILED {
        // SAFETY: just mapped; an old kernel took the address for a wish.
        unsafe { libc::munmap(got, length) };
    }
    Err(Code::ERANGE)
}

/// Maps a region and returns its address.
pub(crate) fn map(engine: &Engine, request: Request) -> Result<*mut u8, Code> {
    let Request { segment, offset, length, address, replaces } = request;
    let range = offset..offset + length as u64;
    let mut regions = engine.regions_mut();
    let wanted = address.addr()..address.addr() + length;
    for (&start, region) in regions.iter() {
        let (mapped, has) = (region.memory.range(), start..start + region.memory.bytes());
        if !address.is_null() && has.start < wanted.end && wanted.start < has.end {
            return Err(Code::EVM_OVERLAP);
        }
        if region.segment == segment && mapped.start < range.end && range.start < mapped.end {
            return Err(Code::EOVERLAP);
        }
    }
    if !address.is_null() && !replaces {
        reserve(address, length)?;
    }
    let memory = if address.is_null() {
        engine.rvm.map_raw(&segment, range)
    } else {
        // SAFETY: the program supplied the address, or it has just been reserved.
        unsafe { engine.rvm.map_raw_at(&segment, range, address) }
    };
    let memory = match memory {
        Ok(memory) => memory,
        Err(error) => {
            if !address.is_null() && !replaces {
                // SAFETY: what was reserved above.
                unsafe { libc::munmap(address.cast(), length) };
            }
            return Err(match error {
                nvlab_rvm::Error::Busy(_) => {
                    failure::set_errno(libc::EBUSY);
                    Code::EIO
                }
                error => failure::of(&error),
            });
        }
    };
    let start = memory.start();
    regions.insert(start.addr(), Region { memory, segment });
    Ok(start)
}

/// Unmaps the region with exactly these bytes. If its memory stays, it may be replaced by whatever is mapped there next.
pub(crate) fn unmap(engine: &Engine, address: usize, length: usize, stays: bool) -> Outcome {
    let mut regions = engine.regions_mut();
    let (&start, region) = regions.range(..=address).next_back().ok_or(Code::ENOT_MAPPED)?;
    let has = region.memory.bytes();
    match (address - start).checked_add(length) {
        Some(end) if end <= has && length > 0 => {}
        _ => return Err(Code::ENOT_MAPPED),
    }
    if !engine.uncommitted(Some(start)).is_empty() {
        return Err(Code::EUNCOMMIT);
    }
    if (start, has) != (address, length) {
        return Err(Code::ERANGE);
    }
    let region = regions.remove(&start).expect("the region found above");
    engine.rvm.unmap_raw(&region.memory);
    if stays {
        std::mem::forget(region.memory);
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_map(region: *mut rvm_region_t, options: *const rvm_options_t) -> c_int {
    // SAFETY: the program passes records, or null, and may have what is at the region's address replaced.
    let map = || unsafe {
        library::check_running()?;
        if !is_record(region) {
            return Err(Code::EREGION);
        }
        if !options.is_null() {
            library::change(options)?;
        }
        let engine = engine()?;
        let request = requested(&*region)?;
        let (offset, length) = (request.offset, request.length);
        let address = map(&engine, request)?;
        (*region).vmaddr = address.cast();
        ((*region).offset, (*region).length) = (from_bytes(offset), length as rvm_length_t);
        Ok(())
    };
    returned(map())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn rvm_unmap(region: *mut rvm_region_t) -> c_int {
    // SAFETY: the program passes a record, or null.
    let unmap = || unsafe {
        library::check_running()?;
        if !is_record(region) {
            return Err(Code::EREGION);
        }
        unmap(&*engine()?, (*region).vmaddr.addr(), (*region).length as usize, true)
    };
    returned(unmap())
}
