//! Applies the modifiers to a trace's rows before it is replayed.

use super::{ReplayReport, ReplaySpec};
use crate::{Op, Request, Span, Time};
use nvlab_trace::Columns;
use nvlab_units::quantity::{display_bytes, told_bytes};

/// Volumes begin at multiples of this when several are laid out.
pub(super) const VOLUME_UNIT_BYTES: u64 = 1 << 20;
/// Tenants' parts are multiples of this.
const PART_UNIT_BYTES: u64 = 4096;

/// The bytes of one tenant's part of the device.
pub(super) fn part_bytes(capacity: u64, copies: u32, align: Option<u64>) -> u64 {
    let unit = match (copies, align) {
        (1, None) => 1,
        (1, Some(align)) => align,
        (_, align) => align.unwrap_or(PART_UNIT_BYTES),
    };
    capacity / copies as u64 / unit * unit
}

/// Steps 1 to 5 of [`super`]. The error names the modifier that helps.
pub(super) fn prepare(
    columns: &mut Columns,
    spec: &ReplaySpec,
    part_bytes: u64,
    copies: u32,
    report: &mut ReplayReport,
) -> Result<(), String> {
    cut_and_scale(columns, spec, report)?;
    lay_out(columns)?;
    report.recorded_bytes = end_of(columns);
    if let Some(extent) = spec.compact {
        if spec.clips_trims {
            clip_trims(columns, extent, report);
        }
        compact(columns, extent)?;
    }
    if let Some(unit) = spec.align {
        align(columns, unit, report)?;
    }
    report.footprint_bytes = end_of(columns);
    if report.footprint_bytes <= part_bytes {
        return Ok(());
    }
    if !spec.wrap {
        return Err(too_large(columns, spec, part_bytes, copies, report.footprint_bytes));
    }
    wrap(columns, part_bytes, spec.align.unwrap_or(1), report)?;
    report.footprint_bytes = end_of(columns);
    Ok(())
}

fn cut_and_scale(columns: &mut Columns, spec: &ReplaySpec, report: &mut ReplayReport) -> Result<(), String> {
    if let Some(first) = spec.first {
        let kept = columns.at_ps().partition_point(|&at| at < first.ps());
        report.too_late = (columns.len() - kept) as u64;
        columns.truncate(kept);
    }
    if spec.scale_time != 1.0 {
        // In units of 2^-32: exact for 0.5, and monotonic for any factor.
        let factor = (spec.scale_time * (1u64 << 32) as f64).round() as u128;
        columns.update(|_, request| -> Result<(), String> {
            let scaled = u64::try_from((request.at.ps() as u128 * factor) >> 32);
            request.at =
                Time::from_ps(scaled.map_err(|_| "with scale-time it lasts more than 213 days".to_owned())?);
            Ok(())
        })?;
    }
    Ok(())
}

/// The end of the last byte accessed.
fn end_of(columns: &Columns) -> u64 {
    let places = columns.offsets().iter().zip(columns.lengths());
    places.map(|(&offset, &bytes)| offset + bytes as u64).max().unwrap_or(0)
}

/// Lays the volumes out one after another.
fn lay_out(columns: &mut Columns) -> Result<(), String> {
    if columns.volumes().len() < 2 {
        return Ok(());
    }
    let mut ends = vec![0u64; columns.volumes().len()];
    for request in columns.iter() {
        let end = &mut ends[request.volume as usize];
        *end = (*end).max(request.end());
    }
    let mut next = 0u64;
    let mut starts = Vec::with_capacity(ends.len());
    for end in ends {
        starts.push(next);
        next = end
            .checked_next_multiple_of(VOLUME_UNIT_BYTES)
            .and_then(|length| next.checked_add(length))
            .ok_or("its volumes together exceed 2^64 bytes")?;
    }
    columns.update(|_, request| {
        if request.bytes > 0 {
            request.offset += starts[request.volume as usize];
        }
        Ok(())
    })
}

/// The numbers of the extents accessed, ascending.
fn touched(columns: &Columns, extent: u64) -> Vec<u64> {
    const SORT_AT: usize = 1 << 20;
    let (mut extents, mut sort_at, mut last) = (Vec::new(), SORT_AT, u64::MAX);
    let places = columns.offsets().iter().zip(columns.lengths());
    for (&offset, &bytes) in places.filter(|(_, bytes)| **bytes > 0) {
        for number in offset / extent..=(offset + bytes as u64 - 1) / extent {
            if number != last {
                extents.push(number);
                last = number;
            }
        }
        // Keeps memory in proportion to the footprint, not to the requests.
        if extents.len() >= sort_at {
            extents.sort_unstable();
            extents.dedup();
            sort_at = SORT_AT.max(extents.len() * 2);
        }
    }
    extents.sort_unstable();
    extents.dedup();
    extents
}

/// Clips trims to the extents that are read or written, so that extents only trimmed do not count as accessed. (A
/// formatter discards the whole device first.)
fn clip_trims(columns: &mut Columns, extent: u64, report: &mut ReplayReport) {
    let mut used = columns.clone();
    used.retain(|request| request.op != Op::Trim);
    let used = touched(&used, extent);
    let mut clipped = columns.emptied();
    for (row, request) in columns.iter().enumerate() {
        let mut push = |offset, bytes| {
            let piece = Request { offset, bytes, ..request };
            match columns.response_ps() {
                Some(responses) => clipped.push_answered(piece, Span::from_ps(responses[row])),
                None => clipped.push(piece),
            }
        };
        if request.op != Op::Trim {
            push(request.offset, request.bytes);
            continue;
        }
        let (mut from, end) = (request.offset, request.end());
        let mut next = used.partition_point(|&number| number < from / extent);
        let mut kept = 0;
        while from < end && used.get(next).is_some_and(|&number| number * extent < end) {
            from = from.max(used[next] * extent);
            // Adjacent extents form one piece.
            let first = next;
            while used.get(next + 1) == Some(&(used[first] + (next + 1 - first) as u64)) {
                next += 1;
            }
            let to = end.min((used[next] + 1) * extent);
            push(from, (to - from) as u32);
            kept += to - from;
            (from, next) = (to, next + 1);
        }
        report.dropped_trims += u64::from(kept == 0);
        report.narrowed_trims += u64::from(0 < kept && kept < request.bytes as u64);
    }
    *columns = clipped;
}

fn compact(columns: &mut Columns, extent: u64) -> Result<(), String> {
    let extents = touched(columns, extent);
    let mut last = (u64::MAX, 0);
    columns.update(|_, request| {
        let number = request.offset / extent;
        if request.bytes > 0 && number != last.0 {
            let place = extents.binary_search(&number).expect("every extent of a request is touched");
            last = (number, place as u64);
        }
        if request.bytes > 0 {
            // All extents of a request are kept, so they stay adjacent.
            request.offset = last.1 * extent + request.offset % extent;
        }
        Ok(())
    })
}

fn align(columns: &mut Columns, unit: u64, report: &mut ReplayReport) -> Result<(), String> {
    let mut empty = false;
    columns.update(|row, request| {
        let (offset, bytes, end) = (request.offset, request.bytes as u64, request.end());
        if bytes == 0 || (offset.is_multiple_of(unit) && end.is_multiple_of(unit)) {
            return Ok(());
        }
        if request.op == Op::Trim {
            let (start, end) = (offset.next_multiple_of(unit), end / unit * unit);
            let left = end.saturating_sub(start);
            (request.offset, request.bytes) = (start, left as u32);
            empty |= left == 0;
            *(if left == 0 { &mut report.dropped_trims } else { &mut report.narrowed_trims }) += 1;
            return Ok(());
        }
        let start = offset / unit * unit;
        let wide = end
            .checked_next_multiple_of(unit)
            .map(|end| end - start)
            .and_then(|wide| u32::try_from(wide).ok());
        let Some(wide) = wide else {
            return Err(format!("request {row} of {bytes} bytes cannot be widened to {}", told_bytes(unit)));
        };
        (request.offset, request.bytes) = (start, wide);
        report.widened += 1;
        report.widened_bytes += wide as u64 - bytes;
        Ok(())
    })?;
    if empty {
        columns.retain(|request| request.bytes > 0 || request.op == Op::Flush);
    }
    Ok(())
}

fn wrap(columns: &mut Columns, part_bytes: u64, unit: u64, report: &mut ReplayReport) -> Result<(), String> {
    columns.update(|row, request| {
        let bytes = request.bytes as u64;
        if bytes > part_bytes {
            let sizes = (told_bytes(bytes), told_bytes(part_bytes));
            return Err(format!("request {row} of {} is larger than the room of {}", sizes.0, sizes.1));
        }
        if request.end() > part_bytes {
            report.wrapped += 1;
            // A request that would exceed the end is moved down until it fits.
            let last_start = (part_bytes - bytes) / unit * unit;
            request.offset = (request.offset % part_bytes).min(last_start);
        }
        Ok(())
    })
}

/// The advice in an error: which modifier would help.
fn too_large(columns: &Columns, spec: &ReplaySpec, part_bytes: u64, copies: u32, end: u64) -> String {
    let room = match copies {
        1 => format!("the device has {}", display_bytes(part_bytes)),
        _ => format!("each of {copies} copies has {}", display_bytes(part_bytes)),
    };
    let reach = format!("its requests extend to {}, but {room}", display_bytes(end));
    if spec.compact.is_some() {
        return format!("{reach}, even compacted; add wrap (addresses modulo the capacity) or first=TIME");
    }
    let squeezed = touched(columns, VOLUME_UNIT_BYTES).len() as u64 * VOLUME_UNIT_BYTES;
    if squeezed <= part_bytes {
        let size = display_bytes(squeezed);
        return format!(
            "{reach}; add compact (only {size} of it is touched) or wrap (addresses modulo the capacity)"
        );
    }
    let size = display_bytes(squeezed);
    format!("{reach}; add wrap (addresses modulo the capacity); compact would still need {size}")
}
