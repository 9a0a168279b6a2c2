//! Where pages go when they are written for the first time, under locality gathering.
//!
//! Pages are dealt to the partitions in the order of their addresses. Where the locality of the writes is known
//! beforehand, the free space is dealt as the rule of equal products divides it in the end: proportional to
//! the square root of (writes x data) of each zone. Left to itself gathering gets there by what neighbours
//! give each other, which takes thousands of overwrites of the array at 65,536 pages in a segment.

use super::config::{Cleaning, Gathering, Locality};
use super::segments::Pool;

/// The first page of each pool.
pub(super) fn first_pages(cleaning: Cleaning, logical_pages: u32, pools: &[Pool]) -> Vec<u32> {
    let sorted = match cleaning {
        Cleaning::Gathering(Gathering { sorted, .. }) => sorted,
        _ => None,
    };
    let Locality { data, writes } = sorted.unwrap_or(Locality { data: 0.5, writes: 0.5 });
    let segments: u32 = pools.iter().map(|pool| pool.size).sum();
    let full: f64 = pools.iter().map(|pool| pool.limit as f64).sum();
    let live = logical_pages as f64 / full;
    let (hot, cold) = ((data * writes).sqrt(), ((1.0 - data) * (1.0 - writes)).sqrt());
    // Shares of the segments: what the hot zone takes with its free space.
    let hot_space = live * data + (1.0 - live) * hot / (hot + cold);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envy::{EnvyConfig, segments};
    use nvlab_units::{Geometry, Span};

    fn pools(sorted: Option<Locality>) -> (u32, Vec<u32>) {
        let cleaning = Cleaning::Gathering(Gathering { sorted, ..Gathering::new(1) });
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
            first_pages(cleaning, config.logical_pages, &segments::pools(&config, &geometry)),
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
        // Segments hold 985 pages, the rest is the margin of cleaning: of 98,500, 18,500 are free. 8,000 pages and
        // half of those are 17.5 segments' worth, 72,000 and the other half 82.5.
        assert!(shares[..17].iter().all(|share| share.abs_diff(457) <= 1), "{shares:?}");
        assert!(shares[18..].iter().all(|share| share.abs_diff(873) <= 1), "{shares:?}");
    }
}
