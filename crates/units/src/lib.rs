//! The types every other crate uses: time, lanes, geometry, quantities, random numbers, histograms.
//!
//! Nothing here knows about flash chips, and nothing reads a clock: time is a number passed as an argument
//! ([`Time`]), and a resource that can be busy is a [`Lane`] that computes when its work will be done.
//!
//! | module | what |
//! |---|---|
//! | [`time`] | [`Time`] and [`Span`] in picoseconds, [`Served`]: when something began and ended |
//! | [`lane`] | [`Lane`]: a resource with foreground work and suspendable background work (decision 0001) |
//! | [`bus`] | [`Bus`]: a channel or link that may be booked ahead |
//! | [`geometry`] | [`Geometry`] of a flash array, [`Extent`], address types |
//! | [`bits`] | ranges of bits as masks of 64-bit words |
//! | [`checksum`] | [`checksum::crc32c`], for everything nvlab stores |
//! | [`rng`] | [`Rng`], a fixed algorithm with fixed distributions: results do not change with a library's version |
//! | [`histogram`] | [`Histogram`]: latencies in logarithmic buckets, one increment per request |
//! | [`plain`] | long lists of numbers, serialized as bytes |
//! | [`quantity`] | "16 MiB", "4 us", "80 %": the one parser of numbers with units |
//! | [`suggest`] | "did you mean ...?" |

pub mod bits;
pub mod bus;
pub mod checksum;
pub mod geometry;
pub mod histogram;
pub mod lane;
pub mod plain;
pub mod quantity;
pub mod rng;
pub mod suggest;
pub mod time;

pub use bus::Bus;
pub use geometry::{BlockId, Die, Extent, Geometry, Layout, Lpa, Ppa};
pub use histogram::{Histogram, PackedHistogram};
pub use lane::{Interruption, Lane, Ticket};
pub use rng::Rng;
pub use time::{Rate, Served, Span, Time, Total};
