//! Initial placement under locality gathering: where pages go when they are written for the first time.
//!
//! Pages are assigned to the partitions in order of address, or, if a fill in random order is to scatter them, in
//! order of arrival ([`super::Envy::place_in_order_of_arrival`]). If the locality of the writes is known
//! beforehand, the free space is divided as the rule of equal products eventually divides it. Otherwise gathering
//! gets there through exchanges between neighbours, which takes thousands of overwrites of the array at 65,536 pages
//! per segment.
//!
//! The steady state of the rule. A zone of segments with the live share u is cleaned at the live share v
//! ([`live_at_clean`]): v = u in partitions of one segment, less in larger ones, whose segments have time to lose
//! pages. Frequency times cost of a segment is then writes / space x v / (1 - v)^2, equal for both zones. With
//! v = u, free space is proportional to the square root of writes x data, which is also the optimum.

use super::segments::Pool;
use crate::cleaning::SegmentCleaning;
use crate::cleaning::gathering::{Gathering, Locality};

/// Steps of a bisection: enough for every bit of an `f64` between 0 and 1.
const BISECTIONS: u32 = 60;

/// The first page of each pool, in an array with `pages_per_segment`.
pub(super) fn first_pages(
    cleaning: SegmentCleaning,
    logical_pages: u32,
    pools: &[Pool],
    pages_per_segment: u32,
) -> Vec<u32> {
    let (sorted, partition) = match cleaning {
        SegmentCleaning::Gathering(Gathering { sorted, partition_segments, .. }) => {
            (sorted, partition_segments)
        }
        _ => (None, 1),
    };
    let data = sorted.map_or(0.5, |locality| locality.data);
    let segments: u32 = pools.iter().map(|pool| pool.size).sum();
    let live = logical_pages as f64 / (segments as f64 * pages_per_segment as f64);
    let fullest = |pool: &Pool| pool.limit as f64 / (pool.size as f64 * pages_per_segment as f64);
    let fullest = pools.iter().map(fullest).fold(1.0, f64::min);
    let hot_space = match sorted {
        Some(locality) => hot_space(locality, live, fullest, partition),
        None => data,
    };
    let mut before = 0;
    let first = |pool: &Pool| {
        let space = before as f64 / segments as f64;
        before += pool.size;
        let pages = match space < hot_space {
            true => data * space / hot_space,
            false => data + (1.0 - data) * (space - hot_space) / (1.0 - hot_space),
        };
        (pages * logical_pages as f64) as u32
    };
    pools.iter().map(first).collect()
}

/// The share of the segments that the hot zone occupies, with its free space, in the steady state of the rule; `live`
/// is the live share of the array, `fullest` the maximum of a partition of `partition` segments.
fn hot_space(Locality { data, writes }: Locality, live: f64, fullest: f64, partition: u32) -> f64 {
    let product = |data: f64, writes: f64, space: f64| {
        let at_clean = live_at_clean(data * live / space, partition);
        writes / space * at_clean / (1.0 - at_clean).powi(2)
    };
    // The bounds: each zone at its fullest.
    let (mut low, mut high) = (data * live / fullest, 1.0 - (1.0 - data) * live / fullest);
    for _ in 0..BISECTIONS {
        let space = (low + high) / 2.0;
        match product(data, writes, space) > product(1.0 - data, 1.0 - writes, 1.0 - space) {
            true => low = space,
            false => high = space,
        }
    }
    (low + high) / 2.0
}

/// The live share of a segment when it is cleaned, in a partition with the live share `live` whose pages are all
/// written equally often; for many pages per segment.
///
/// A clean copies the share v to a new segment and (1 - v) is written to it, after which the next is cleaned: a segment
/// exists for `partition` such rounds, in each of which a page dies with the probability 1 - e^-a, a = (1 - v) /
/// (live x partition). So v = v e^(-a partition) + live x partition x e^(-a partition) (e^a - 1), whose other
/// solution, v = 1, is spurious.
fn live_at_clean(live: f64, partition: u32) -> f64 {
    if partition == 1 {
        return live;
    }
    let data = live * partition as f64;
    let remains = |at_clean: f64| {
        let age = (1.0 - at_clean) / data;
        (at_clean + data * age.exp_m1()) * (-age * partition as f64).exp()
    };
    let (mut low, mut high) = (0.0, live);
    for _ in 0..BISECTIONS {
        let at_clean = (low + high) / 2.0;
        if remains(at_clean) > at_clean { low = at_clean } else { high = at_clean }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envy::{EnvyConfig, segments};
    use nvlab_units::{Geometry, Span};

    fn pools(sorted: Option<Locality>) -> (u32, Vec<u32>) {
        let cleaning = SegmentCleaning::Gathering(Gathering { sorted, ..Gathering::new(1) });
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            blocks_per_die: 101,
            pages_per_block: 1000,
            units_per_page: 1,
            unit_bytes: 256,
        };
        let config = EnvyConfig {
            logical_pages: 80_000,
            buffer_pages: 0,
            flush_at: 0,
            cleaning,
            wear_spread: None,
            control: Span::ZERO,
            word_bytes: 8,
            path_bytes: 256,
            mapping_cache_entries: 0,
            transaction_pages: 0,
        };
        (
            config.logical_pages,
            first_pages(
                cleaning,
                config.logical_pages,
                &segments::pools(&config, &geometry),
                geometry.pages_per_block,
            ),
        )
    }

    /// Each pool of a zone gets as many pages, and the free space is divided by the rule: at 10/90 both
    /// zones have the same product of writes and data, so each gets half.
    #[test]
    fn free_space_follows_the_rule() {
        let (pages, even) = pools(None);
        assert_eq!((even[0], even[50]), (0, pages / 2));
        let (_, sorted) = pools(Some(Locality { data: 0.1, writes: 0.9 }));
        let shares: Vec<u32> = sorted.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // Of 100,000 pages 20,000 are free, the margin of cleaning too. 8,000 pages and half of those are 18
        // segments' worth, 72,000 and the other half 82.
        assert!(shares[..18].iter().all(|share| share.abs_diff(444) <= 1), "{shares:?}");
        assert!(shares[18..].iter().all(|share| share.abs_diff(878) <= 1), "{shares:?}");
    }

    /// The cost of FIFO in pools of few segments, against a simulation of 512 pages a segment at 80 %.
    #[test]
    fn larger_partitions_are_cleaned_emptier() {
        for (partition, simulated) in [(1, 4.0), (2, 2.74), (4, 2.18), (8, 1.93), (16, 1.81)] {
            let at_clean = live_at_clean(0.8, partition);
            let cost = at_clean / (1.0 - at_clean);
            assert!((cost / simulated - 1.0).abs() < 0.01, "{partition}: {cost}, simulated {simulated}");
        }
        // Very many: (v - 1) / ln v = 0.8.
        assert!((live_at_clean(0.8, 4096) - 0.6287).abs() < 0.001, "{}", live_at_clean(0.8, 4096));
    }

    /// No zone is dealt more than its partitions can hold, however the writes are spread.
    #[test]
    fn no_zone_is_fuller_than_full() {
        for (data, writes) in [(0.01, 0.99), (0.5, 0.999), (0.9, 0.1)] {
            let space = hot_space(Locality { data, writes }, 0.97, 0.98, 4);
            let (hot, cold) = (data * 0.97 / space, (1.0 - data) * 0.97 / (1.0 - space));
            assert!(hot <= 0.98 + 1e-9 && cold <= 0.98 + 1e-9, "{data}/{writes}: {hot}, {cold}");
        }
    }
}
