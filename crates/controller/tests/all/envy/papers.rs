//! Hybrid cleaning against a small model written from the paper (section 4.4): the same writes, then the same cost of cleaning.
//!
//! The model knows segments, partitions and pages, but no media, no time and no recovery. The paper states the rule and no numbers;
//! the model has those of [`Gathering`], and nothing moves before each partition was cleaned twice.

use crate::envy::cost::{Host, array};
use nvlab_controller::Controller;
use nvlab_controller::envy::{Gathering, SegmentCleaning};
use std::collections::VecDeque;

const SEGMENTS: usize = 64;
const N: usize = 128;

#[derive(Default)]
struct Partition {
    full: VecDeque<usize>,
    active: Option<usize>,
    cleaned_at: f64,
    interval: f64,
    cost: f64,
}

struct Model {
    rule: Gathering,
    /// The pages of a segment, in the order in which they were programmed, and where each page is.
    segments: Vec<Vec<u32>>,
    place: Vec<(usize, usize)>,
    partitions: Vec<Partition>,
    partition_of: Vec<usize>,
    spare: usize,
    flushed: f64,
    copied: u64,
}

impl Model {
    /// Pages in order, each segment as full as any other.
    fn new(rule: Gathering, pages: usize) -> Model {
        let size = rule.partition_segments as usize;
        let partition_of = (0..=SEGMENTS).map(|segment| segment.min(SEGMENTS - 1) / size).collect();
        let full = |number| (number * size..(number + 1) * size).collect();
        let partition = |number| Partition { full: full(number), ..Partition::default() };
        let mut model = Model {
            rule,
            segments: vec![Vec::new(); SEGMENTS + 1],
            place: vec![(0, 0); pages],
            partitions: (0..SEGMENTS / size).map(partition).collect(),
            partition_of,
            spare: SEGMENTS,
            flushed: 0.0,
            copied: 0,
        };
        (0..pages).for_each(|page| model.append(page * SEGMENTS / pages, page as u32));
        model
    }

    fn append(&mut self, segment: usize, page: u32) {
        self.place[page as usize] = (segment, self.segments[segment].len());
        self.segments[segment].push(page);
    }

    fn live(&self, segment: usize) -> Vec<u32> {
        let pages = self.segments[segment].iter().enumerate();
        pages
            .filter(|&(at, &page)| self.place[page as usize] == (segment, at))
            .map(|(_, &page)| page)
            .collect()
    }

    fn occupied(&self, partition: usize) -> usize {
        let Partition { full, active, .. } = &self.partitions[partition];
        full.iter().chain(active).map(|&segment| self.live(segment).len()).sum()
    }

    /// Pages that fit into the segment that a partition fills.
    fn room(&self, partition: usize) -> usize {
        let active = self.partitions[partition].active.map_or(0, |active| N - self.segments[active].len());
        active.min(self.most().saturating_sub(self.occupied(partition)))
    }

    /// Pages that a partition may hold, so that a clean of it gains space.
    fn most(&self) -> usize {
        self.rule.partition_segments as usize * N - 2
    }

    /// A page is written to the partition that it came from.
    fn write(&mut self, page: u32) {
        let own = self.partition_of[self.place[page as usize].0];
        self.place[page as usize] = (usize::MAX, 0);
        if self.partitions[own].active.is_none_or(|active| self.segments[active].len() == N) {
            self.clean(own);
        }
        self.append(self.partitions[own].active.expect("one that was cleaned"), page);
        self.flushed += 1.0;
    }

    /// Frequency times cost of a partition, per segment; none if it was cleaned less than twice.
    fn product(&self, partition: usize) -> Option<f64> {
        let Partition { interval, cost, cleaned_at, .. } = self.partitions[partition];
        let since = interval.max(self.flushed - cleaned_at);
        (interval > 0.0).then(|| cost / since / self.rule.partition_segments as f64)
    }

    /// Copies the live pages of the oldest segment to the spare, in order; some go to a neighbour with a lower product, or
    /// come from one with a higher.
    fn clean(&mut self, own: usize) {
        let active = self.partitions[own].active.take();
        self.partitions[own].full.extend(active);
        let victim = self.partitions[own].full.pop_front().expect("a segment");
        let live = self.live(victim);
        self.note(own, live.len());
        let target = std::mem::replace(&mut self.spare, victim);
        self.partition_of[target] = own;
        self.partitions[own].active = Some(target);

        let [(out_lower, in_lower), (out_higher, in_higher)] = self.moves(own, live.len());
        let (last, first) = (live.len() - out_lower, out_higher);
        let mut here = self.hottest(own + 1, in_higher);
        here.extend(&live[first..last]);
        here.extend(self.coldest(own, in_lower));
        let targets = [(own + 1, &live[..first]), (own, &here[..]), (own.wrapping_sub(1), &live[last..])];
        for (partition, pages) in targets {
            self.copied += pages.len() as u64;
            pages.iter().for_each(|&page| self.append(self.partitions[partition].active.unwrap(), page));
        }
        self.segments[victim].clear();
    }

    fn note(&mut self, own: usize, live: usize) {
        let (now, weight) = (self.flushed, self.rule.smoothing);
        let smooth = |old: f64, new: f64| if old == 0.0 { new } else { weight * old + (1.0 - weight) * new };
        let partition = &mut self.partitions[own];
        if partition.cleaned_at > 0.0 {
            partition.interval = smooth(partition.interval, now - partition.cleaned_at);
        }
        partition.cost = smooth(partition.cost, live as f64 / (N - live) as f64);
        partition.cleaned_at = now;
    }

    /// Pages that leave for the previous partition and come from it, and so for the next one.
    fn moves(&self, own: usize, live: usize) -> [(usize, usize); 2] {
        let count = self.partitions.len();
        let products: Option<Vec<f64>> = (0..count).map(|partition| self.product(partition)).collect();
        let Some(products) = products else { return [(0, 0); 2] };
        let average = products.iter().sum::<f64>() / count as f64;
        let excess = products[own] / average - 1.0;
        let neighbours = [own.checked_sub(1), Some(own + 1).filter(|&next| next < count)];
        let beside = neighbours.iter().flatten().count();
        let pages = (self.rule.step * (N - live) as f64 * excess.abs()).min(self.rule.step_max * N as f64);
        let each = pages as usize / beside.max(1);
        neighbours.map(|neighbour| match neighbour {
            Some(other) if excess > 0.0 && products[other] < products[own] => {
                (each.min(self.room(other)).min(live / 2), 0)
            }
            Some(other) if excess < 0.0 && products[other] > products[own] => {
                let room = (self.most() - self.occupied(own)).min((N - live) / 2) / beside;
                (0, each.min(room))
            }
            _ => (0, 0),
        })
    }

    /// The last live pages of the segment that a partition fills, which are its hottest.
    fn hottest(&self, partition: usize, count: usize) -> Vec<u32> {
        if count == 0 {
            return Vec::new();
        }
        let live = self.live(self.partitions[partition].active.unwrap());
        live[live.len().saturating_sub(count)..].to_vec()
    }

    /// The first live pages of the oldest segment of the partition before, which are its coldest.
    fn coldest(&self, own: usize, count: usize) -> Vec<u32> {
        if count == 0 {
            return Vec::new();
        }
        let before = &self.partitions[own - 1];
        let oldest = before.full.front().or(before.active.as_ref());
        self.live(*oldest.unwrap()).into_iter().take(count).collect()
    }
}

/// Costs of the device and of the model over the same writes, after the same overwrites of the space.
fn costs(partition_segments: u32, share: f64, warm: u64, measured: u64) -> [f64; 2] {
    let rule = Gathering::new(partition_segments);
    let (_, mut device) = array(SegmentCleaning::Gathering(rule), SEGMENTS as u32, N as u32);
    let pages = device.capacity_units();
    let mut model = Model::new(rule, pages as usize);
    let [mut host, mut same] = [(); 2].map(|()| Host::new(pages, share));
    host.write(&mut device, pages as u64 * warm);
    let found = host.write(&mut device, pages as u64 * measured);
    let expected = [warm, measured].map(|overwrites| {
        let (writes, copied) = (pages as u64 * overwrites / 32 * 32, model.copied);
        (0..writes).for_each(|_| model.write(same.page()));
        (model.copied - copied) as f64 / writes as f64
    });
    [found, expected[1]]
}

/// Within the noise of what still moves: the largest difference of these is .8 %. Partitions of one segment and of four are not
/// sorted after 400 overwrites at 10/90, and differ by 7 %.
#[test]
fn hybrid_cleaning_costs_what_its_paper_says() {
    for (size, share) in [(1, 0.5), (4, 0.5), (4, 0.8), (8, 0.9), (16, 0.9), (16, 0.95)] {
        let [found, expected] = costs(size, share, 400, 60);
        assert!(
            (found / expected - 1.0).abs() < 0.015,
            "{size} segments, {share}: {found}, the model {expected}"
        );
    }
}
