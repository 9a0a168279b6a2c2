//! Completion times of the requests in flight, earliest first.
//!
//! Requests often end in the order in which they began: behind a link or a bank that serves them one after the other. Then a
//! ring holds them. Otherwise a tree of losers does (Knuth, volume 3, section 5.4.1): replacing the earliest costs one
//! comparison per level and no unpredictable branch, five times as much as in the ring with 32 requests in flight.
//!
//! Invariants
//! 1. In order: from the leaf of the earliest round all leaves, ends do not decrease; inner nodes mean nothing.
//! 2. Otherwise: an inner node holds the leaf that ends later of the two that met there.

use nvlab_units::Time;

/// The requests in flight.
#[derive(Clone, Debug)]
pub struct Outstanding {
    /// Node 1 is the root, the children of `n` are `2 n` and `2 n + 1`. A leaf holds the end of its request in picoseconds.
    /// One vector, since two tables, or losers with their ends beside them, take more instructions per level.
    nodes: Vec<u64>,
    earliest: Entry,
    /// The node of the first leaf, and of the one after the last.
    leaves: (usize, usize),
    latest: Time,
    /// How many were added since one ended before another that began earlier.
    in_order: usize,
    is_ring: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    end: Time,
    leaf: usize,
}

/// So many times the requests in flight must end in order before the ring is used again: sorting them must be rare.
const ORDERLY: usize = 4;

impl Outstanding {
    /// At most `depth` requests, at least one. Initially all of them ended at `origin`.
    pub fn new(depth: u32, origin: Time) -> Outstanding {
        let depth = depth.max(1) as usize;
        let first = depth.next_power_of_two();
        // Leaves beyond the depth never win.
        let mut nodes = vec![Time::MAX.ps(); 2 * first];
        nodes[first..][..depth].fill(origin.ps());
        let earliest = Entry { end: origin, leaf: first };
        Outstanding {
            nodes,
            earliest,
            leaves: (first, first + depth),
            latest: origin,
            in_order: 0,
            is_ring: true,
        }
    }

    /// When another request may begin.
    #[inline]
    pub fn room_at(&self) -> Time {
        self.earliest.end
    }

    /// Adds a request that ends at `end`, in the place of the one that ended first.
    #[inline]
    pub fn add(&mut self, end: Time) {
        // The first leaf is node 1, so there is no other. Of one request nothing is kept: the next begins when it ends, and must
        // not wait for the memory.
        if self.leaves.0 == 1 {
            self.earliest.end = end;
            return;
        }
        if self.is_ring && end >= self.latest {
            self.latest = end;
            self.nodes[self.earliest.leaf] = end.ps();
            let next = self.earliest.leaf + 1;
            let leaf = if next == self.leaves.1 { self.leaves.0 } else { next };
            self.earliest = Entry { end: Time::from_ps(self.nodes[leaf]), leaf };
            return;
        }
        self.add_to_tree(end);
    }

    /// [`Outstanding::add`] if requests do not end in order.
    fn add_to_tree(&mut self, end: Time) {
        if self.is_ring {
            self.plant();
        }
        let mut winner = Entry { end, leaf: self.earliest.leaf };
        self.nodes[winner.leaf] = end.ps();
        let mut node = winner.leaf / 2;
        while node > 0 {
            let leaf = self.nodes[node] as usize;
            let met = Entry { end: Time::from_ps(self.nodes[leaf]), leaf };
            let beaten = met.end < winner.end;
            self.nodes[node] = if beaten { winner.leaf } else { met.leaf } as u64;
            winner = if beaten { met } else { winner };
            node /= 2;
        }
        self.earliest = winner;
        self.in_order = if end < self.latest { 0 } else { self.in_order + 1 };
        self.latest = self.latest.max(end);
        if self.in_order >= ORDERLY * self.depth() {
            self.close_ring();
        }
    }

    /// Makes a tree of the ring: the ends ascend from the first leaf on, so the leftmost leaf wins every match, and the loser
    /// at a node is the leftmost leaf of its right child.
    #[cold]
    fn plant(&mut self) {
        let (first, end) = self.leaves;
        self.nodes[first..end].rotate_left(self.earliest.leaf - first);
        for (node, loser) in self.nodes[..first].iter_mut().enumerate().skip(1) {
            let mut leaf = 2 * node + 1;
            while leaf < first {
                leaf *= 2;
            }
            *loser = leaf as u64;
        }
        self.earliest.leaf = first;
        (self.is_ring, self.in_order) = (false, 0);
    }

    /// Makes a ring of the tree.
    #[cold]
    fn close_ring(&mut self) {
        let (first, end) = self.leaves;
        self.nodes[first..end].sort_unstable();
        self.earliest.leaf = first;
        self.is_ring = true;
    }

    fn depth(&self) -> usize {
        self.leaves.1 - self.leaves.0
    }

    /// When the last one is done.
    #[inline]
    pub fn last(&self) -> Time {
        self.latest.max(self.earliest.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_units::Rng;

    /// Against a sorted list, with ends in order, nearly in order and in any order by turns, so that rings become trees and
    /// trees become rings.
    #[test]
    fn the_earliest_completion_makes_room() {
        let mut rng = Rng::new(2);
        for depth in [1, 2, 3, 7, 32, 100] {
            let mut outstanding = Outstanding::new(depth, Time::ZERO);
            let mut plain: Vec<Time> = Vec::new();
            let mut rings = [0; 2];
            for nth in 0..20_000u64 {
                let room = outstanding.room_at();
                if plain.len() >= depth as usize {
                    plain.sort();
                    assert_eq!(room, plain.remove(0), "depth {depth}, request {nth}");
                } else {
                    assert_eq!(room, Time::ZERO);
                }
                let spread = [1, 1, 2000][(nth / 2000 % 3) as usize];
                let late = if nth / 2000 % 3 == 1 && rng.below(500) == 0 { 0 } else { 5 * nth };
                // No request ends before it begins.
                let end = room.max(Time::from_ns(late + rng.below(spread)));
                outstanding.add(end);
                plain.push(end);
                rings[outstanding.is_ring as usize] += 1;
                assert_eq!(Some(&outstanding.last()), plain.iter().max());
            }
            assert!(depth == 1 || rings[0] > 1000 && rings[1] > 1000, "{rings:?}");
        }
    }
}
