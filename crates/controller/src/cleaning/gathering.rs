//! Locality gathering: pages move between neighbouring partitions until the product of cleaning frequency and
//! cleaning cost is the same for all (section 4.3), which is the optimum of the constant-utilisation model.
//!
//! At each clean the partition's product is compared with the average of all. Above it, pages move out: the first
//! live ones of the victim (cold) to the next partition, the last ones (hot) to the previous one. Below it, pages
//! move in: from the hot end of the next partition and the cold beginning of the previous one. "To bring their
//! products closer to the average" applies to both: pages move out only to a neighbour whose product is lower and in
//! only from one whose product is higher. (Moving to and from either neighbour, a mixed start took several times as
//! long: 2.9 instead of 2.2 after 500 overwrites, 10/90, partitions of one segment of 128 pages.) How many: the
//! free space the clean gains, times [`Gathering::step`], times the relative excess, divided among the neighbours;
//! never more than [`Gathering::step_max`] of a segment, nor than fits. The larger the step, the sooner a mixed start is
//! sorted, and the more pages move back and forth for noise in the products once it is. The hybrid of 16 segments
//! from a sorted start, segments of 512 pages, cost at 20/80, 10/90 and 5/95 (ideal split 1.07, 0.52 and 0.22):
//! 1/2: 1.158, 0.726, 0.354; 1/4: 1.148, 0.719, 0.280; 1/8: 1.153, 0.795, 0.246; 1/16: 1.166, 0.836, 0.236. A quarter
//! costs less in small segments, but in those of the paper, of 65,536 pages, it sorts so slowly that partitions of 8
//! segments come out best at 10/90 and not the paper's 16, which are best with a half. So it is a half; who has little data
//! that is very hot sets less. (A longer memory of the products, 0.9 or 0.95, lets them oscillate at 5/95: 0.30 to 0.40.)
//!
//! The order matters: pages from the next partition are colder than the rest and are put in front of the victim's
//! pages, all others are appended.
//!
//! Self-start. All partitions begin equal, and only noise in the products breaks the symmetry; with large
//! segments there is little noise, and a dead band of 5 % suppresses it. The default is no dead band: gathering
//! then starts by itself even at 65,536 pages per segment (16 segments per partition, 10/90, from a scrambled start:
//! cost 2.53 at first, 2.31 after 20 overwrites of the space, 2.23 after 40, 2.10 after 100, 2.00 after 140, still
//! falling). At 1024 pages it has converged after 600 overwrites (0.73). [`Gathering::exchange`] moves pages
//! regardless of the products; at one segment per partition it cost more than it gained (4.5 instead of 4 at
//! 50/50 with 1 %), so it is 0 by default.
//!
//! Frequency is one over the smoothed interval between cleans, or over the time since the last one if that is
//! longer, per segment of the partition. A partition cleaned less than twice has no interval yet: its product counts
//! in the average as anything between zero and its maximum, and pages move only if the direction is certain.
//! Counted as zero, as in an earlier version, every partition that is cleaned early is above the average and loses
//! pages: that undid a sorted start (5/95, partitions of one segment: 6 to 11 % above the ideal split for hundreds
//! of overwrites).

/// How pages move between partitions. The paper states the rule (equal products of cleaning frequency and
/// cost) but none of these numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gathering {
    /// Adjoining segments that form a partition.
    pub partition_segments: u32,
    /// Weight of the past in the smoothed interval between cleans and in the smoothed cost.
    pub smoothing: f64,
    /// Pages moved at a clean: this share of the free space gained, times the relative excess over the
    /// average product.
    pub step: f64,
    /// At most this share of a segment moves at a clean.
    pub step_max: f64,
    /// Relative excess below which nothing moves.
    pub dead_band: f64,
    /// Share of a segment that every clean exchanges with each neighbour regardless of the products, so that
    /// gathering starts when all products are equal (see `cleaning::gathering`).
    pub exchange: f64,
    /// The known locality of the writes: the free space starts divided as the rule would eventually divide it,
    /// which otherwise takes thousands of overwrites (see `start`). `None`: unknown, every segment starts equally
    /// full.
    pub sorted: Option<Locality>,
}

/// How writes are distributed: the share `data` of the pages, the first ones, receives the share `writes` of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Locality {
    /// Share of the pages, more than 0 and less than 1.
    pub data: f64,
    /// Share of the writes, more than 0 and less than 1.
    pub writes: f64,
}

impl Gathering {
    /// The defaults: 0.8, half, an eighth, no dead band, no exchange.
    pub const fn new(partition_segments: u32) -> Gathering {
        Gathering {
            partition_segments,
            smoothing: 0.8,
            step: 0.5,
            step_max: 0.125,
            dead_band: 0.0,
            exchange: 0.0,
            sorted: None,
        }
    }
}

/// The cleaning history of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct History {
    /// Smoothed flushes, of the whole array, between two cleans; 0 before the second.
    pub interval: f64,
    /// Smoothed u / (1 - u) at a clean.
    pub cost: f64,
    /// Flushes at the last clean.
    pub cleaned_at: u64,
}

/// A partition as the rule sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partition {
    /// Its number of segments.
    pub size: u32,
    /// Live pages in its segments, and pages in the buffer that will return to it.
    pub occupied: u32,
    /// The maximum of `occupied`.
    pub limit: u32,
    /// Pages that fit into the segment being filled; 0 if there is none.
    pub room: u32,
    pub history: History,
}

/// Pages that move to another partition at a clean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    /// To the previous partition (hotter), from the end of the victim.
    pub to_lower: u32,
    /// To the next partition (colder), from the beginning of the victim.
    pub to_higher: u32,
    /// From the beginning of the previous partition.
    pub from_lower: u32,
    /// From the end of the next partition.
    pub from_higher: u32,
}

/// Frequency times cost, per segment of a partition.
fn product(partition: &Partition, now: u64) -> f64 {
    let History { interval, cost, cleaned_at } = partition.history;
    if interval == 0.0 {
        return 0.0;
    }
    cost / interval.max((now - cleaned_at) as f64) / partition.size as f64
}

/// The maximum of the product, which is all that is known of a partition cleaned less than twice in `now` flushes.
fn product_max(partition: &Partition, pages: u32, now: u64) -> f64 {
    if partition.history.interval > 0.0 {
        return product(partition, now);
    }
    let cost = partition.occupied as f64 / (partition.size * pages - partition.occupied) as f64;
    2.0 * cost / now.max(1) as f64 / partition.size as f64
}

/// How far the product of a partition is from the average, relative to it; 0 if partitions with unknown products could
/// reverse the sign.
fn excess(partitions: &[Partition], own: usize, pages: u32, now: u64) -> f64 {
    let average = |product: &dyn Fn(&Partition) -> f64| {
        partitions.iter().map(product).sum::<f64>() / partitions.len() as f64
    };
    let least = average(&|partition| product(partition, now));
    let most = average(&|partition| product_max(partition, pages, now));
    match product(&partitions[own], now) {
        0.0 => 0.0,
        mine if mine > most => mine / most - 1.0,
        mine if mine < least => mine / least - 1.0,
        _ => 0.0,
    }
}

/// Records in the history of a partition that a segment with `live` of `pages` was cleaned after `now` flushes.
pub(crate) fn note_clean(gathering: &Gathering, history: &mut History, (live, pages): (u32, u32), now: u64) {
    let smooth = |old: f64, new: f64| match old {
        0.0 => new,
        old => gathering.smoothing * old + (1.0 - gathering.smoothing) * new,
    };
    if history.cleaned_at > 0 {
        history.interval = smooth(history.interval, (now - history.cleaned_at) as f64);
    }
    history.cost = smooth(history.cost, live as f64 / (pages - live) as f64);
    history.cleaned_at = now;
}

/// What moves when a segment of partition `own` with `live` of `pages` is cleaned after `now` flushes.
pub(crate) fn plan(
    gathering: &Gathering,
    partitions: &[Partition],
    own: usize,
    (live, pages): (u32, u32),
    now: u64,
) -> Moves {
    let mut moves = Moves::default();
    if partitions.len() == 1 {
        return moves;
    }
    let excess = excess(partitions, own, pages, now);
    let (before, after) = (own.checked_sub(1).map(|lower| &partitions[lower]), partitions.get(own + 1));
    let neighbours = before.is_some() as u32 + after.is_some() as u32;
    let gain = (pages - live) as f64;
    let wanted = if excess.abs() > gathering.dead_band { gathering.step * gain * excess.abs() } else { 0.0 };
    let each = wanted.min(gathering.step_max * pages as f64) as u32 / neighbours;
    let exchange = (gathering.exchange * pages as f64) as u32;
    let mine = product(&partitions[own], now);
    let out = |partition: &Partition| {
        let eased = excess > 0.0 && product_max(partition, pages, now) < mine;
        exchange + if eased { each } else { 0 }
    };
    let into = |partition: &Partition| {
        let eased = excess < 0.0 && product(partition, now) > mine;
        exchange + if eased { each } else { 0 }
    };
    let room_in = |other: &Partition| other.room.min(other.limit.saturating_sub(other.occupied));
    moves.to_lower = before.map_or(0, |partition| out(partition).min(room_in(partition)).min(live / 2));
    moves.to_higher = after.map_or(0, |partition| out(partition).min(room_in(partition)).min(live / 2));
    // Pages moving in must fit, and the clean must still gain space.
    let left = partitions[own].occupied - moves.to_lower - moves.to_higher;
    let stays = live - moves.to_lower - moves.to_higher;
    let room = partitions[own].limit.saturating_sub(left).min((pages - stays) / 2);
    moves.from_lower = before.map_or(0, |partition| into(partition).min(room / neighbours));
    moves.from_higher = after.map_or(0, |partition| into(partition).min(room / neighbours));
    moves
}
