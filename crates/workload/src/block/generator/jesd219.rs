//! JESD219, the workload by which data sheets state the endurance of enterprise drives (TBW, DWPD).
//!
//! Sizes and places as in "Solid-State Drive (SSD) Endurance Workloads" (JEDEC JESD219A, 2012): half of the accesses go to
//! the first 5 % of the space, 30 % to the next 15 %, 20 % to the rest. Requests begin at multiples of 4 KiB, as in
//! `jesd219.fio` of fio's examples. Endurance is a matter of writes, so there are no reads unless they are asked for (fio's
//! example reads 40 %).
//!
//! 1. A write of less than the device's unit costs a read of the unit and a program of all of it. 10 % of the writes are below
//!    4 KiB and carry 2 % of the bytes; on a device with 4 KiB units they program 3.2 % more than the host wrote.
//! 2. The mean request is 7818.24 B.

use super::Sizes;
use crate::addresses::Zone;

/// Its name as a kind of generator.
pub(super) const KIND: &str = "jesd219";
/// Requests begin at multiples of this many bytes.
pub(super) const ALIGN_BYTES: u32 = 4096;
/// Bytes of a request, and percent of the requests.
const SIZES: [(u32, f64); 12] = [
    (512, 4.0),
    (1024, 1.0),
    (1536, 1.0),
    (2048, 1.0),
    (2560, 1.0),
    (3072, 1.0),
    (3584, 1.0),
    (4096, 67.0),
    (8192, 10.0),
    (16_384, 7.0),
    (32_768, 3.0),
    (65_536, 3.0),
];
/// Percent of the accesses, and percent of the space that receives them.
const ZONES: [(f64, f64); 3] = [(50.0, 5.0), (30.0, 15.0), (20.0, 80.0)];

/// What a user may want to know of a run's lifetime.
pub(super) const NOTE: &str = "JESD219: the host bytes of the lifetime are the TBW of data sheets, and the drive writes per day \
                               for 5 years their DWPD";

pub(super) fn sizes() -> Sizes {
    Sizes::Split(SIZES.to_vec())
}

pub(super) fn zones() -> Vec<Zone> {
    ZONES.map(|(accesses, space)| Zone { accesses, space }).to_vec()
}
