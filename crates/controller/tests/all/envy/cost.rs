//! Cleaning costs: against u / (1 - u), the FIFO closed form and the table of figure 8.

use crate::envy::device::Setup;
use nvlab_controller::envy::{Gathering, Locality, SegmentCleaning};
use nvlab_controller::{Controller, Envy};
use nvlab_units::{Extent, Lpa, Rng, Span, Time};

/// An array of one die at 80 % of the segments in service, filled in order, without a buffer.
pub fn array(cleaning: SegmentCleaning, segments: u32, pages: u32) -> (Setup, Envy<()>) {
    let setup = Setup {
        cleaning,
        dies: 1,
        segments: segments + 1,
        pages,
        page_bytes: 256,
        buffer: 0,
        flush_at: 0,
        wear_spread: None,
        utilization: 0.8,
        transaction_pages: 0,
    };
    let mut device = setup.timing_only();
    for lpa in 0..device.capacity_units() {
        device.write(Time::ZERO, Extent::one(Lpa(lpa)), &[]).unwrap();
    }
    (setup, device)
}

/// `share` of the writes go to `1 - share` of the pages, uniformly (10/90: 0.9). Pages are hot by a scrambled
/// number, so that nothing is sorted at the beginning; or, in order of address, the first ones are.
pub struct Host {
    rng: Rng,
    pages: u64,
    hot: u64,
    share: f64,
    scrambled: bool,
    now: Time,
}

impl Host {
    pub fn new(pages: u32, share: f64) -> Host {
        let hot = (pages as f64 * (1.0 - share)) as u64;
        Host { rng: Rng::new(11), pages: pages as u64, hot, share, scrambled: true, now: Time::ZERO }
    }

    fn in_order_of_address(self) -> Host {
        Host { scrambled: false, ..self }
    }

    pub fn page(&mut self) -> u32 {
        let number = if self.rng.chance(self.share) {
            self.rng.below(self.hot)
        } else {
            self.hot + self.rng.below(self.pages - self.hot)
        };
        // An odd factor that shares no divisor with the number of pages scrambles without a table.
        match self.scrambled {
            true => (number * 2_654_435_761 % self.pages) as u32,
            false => number as u32,
        }
    }

    /// Writes pages; returns the cleaning cost meanwhile.
    pub fn write(&mut self, device: &mut Envy<()>, pages: u64) -> f64 {
        device.reset_stats();
        let mut batch = [0; 32];
        for _ in 0..pages / 32 {
            batch.fill_with(|| self.page());
            batch.iter().for_each(|&page| device.prefetch(Lpa(page)));
            for lpa in batch {
                self.now = device.write(self.now, Extent::one(Lpa(lpa)), &[]).unwrap().end;
            }
        }
        device.stats().cleaning_cost()
    }
}

impl Host {
    /// Writes pages until so many segments were cleaned; returns the cleaning cost meanwhile.
    fn write_until(&mut self, device: &mut Envy<()>, cleans: u64) -> f64 {
        device.reset_stats();
        while device.stats().cleans < cleans {
            let lpa = self.page();
            self.now = device.write(self.now, Extent::one(Lpa(lpa)), &[]).unwrap().end;
        }
        device.stats().cleaning_cost()
    }
}

/// The cost after `warm` overwrites of the space, over the next `measured`.
fn cost(cleaning: SegmentCleaning, segments: u32, pages: u32, share: f64, warm: u64, measured: u64) -> f64 {
    let (_, mut device) = array(cleaning, segments, pages);
    let mut host = Host::new(device.capacity_units(), share);
    let space = device.capacity_units() as u64;
    host.write(&mut device, space * warm);
    let cost = host.write(&mut device, space * measured);
    device.check();
    cost
}

/// FIFO, uniform: rho = (u - 1) / ln u at the moment of cleaning; the cost is u / (1 - u).
fn fifo_closed_form(rho: f64) -> f64 {
    let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
    for _ in 0..200 {
        let u: f64 = (low + high) / 2.0;
        if (u - 1.0) / u.ln() < rho { low = u } else { high = u }
    }
    low / (1.0 - low)
}

#[test]
fn fifo_costs_what_the_closed_form_says() {
    let expected = fifo_closed_form(0.8);
    assert!((expected - 1.693).abs() < 0.001, "{expected}");
    let found = cost(SegmentCleaning::Fifo, 128, 1024, 0.5, 8, 6);
    assert!((found / expected - 1.0).abs() < 0.02, "{found}, expected {expected}");
    let greedy = cost(SegmentCleaning::Greedy, 128, 1024, 0.5, 8, 6);
    assert!((greedy / expected - 1.0).abs() < 0.02, "{greedy}, expected {expected}");
}

#[test]
fn pure_gathering_under_uniform_writes_costs_4() {
    let found = cost(SegmentCleaning::gathering(1), 128, 1024, 0.5, 20, 20);
    assert!((found / 4.0 - 1.0).abs() < 0.02, "{found}");
}

/// The cost of gathering that starts sorted, over overwrites `warm` to `warm + measured` of the space.
fn sorted_cost(partition: u32, share: f64, warm: u64, measured: u64) -> f64 {
    let sorted = Some(Locality { data: 1.0 - share, writes: share });
    let cleaning = SegmentCleaning::Gathering(Gathering { sorted, ..Gathering::new(partition) });
    let (_, mut device) = array(cleaning, 128, 512);
    let mut host = Host::new(device.capacity_units(), share).in_order_of_address();
    let space = device.capacity_units() as u64;
    host.write(&mut device, space * warm);
    let cost = host.write(&mut device, space * measured);
    device.check();
    cost
}

/// A sorted start is where the rule ends: from then on the cost is that of the ideal split, 16 x (1 - x) for
/// partitions of one segment at 80 %. An independent simulation of the rule is 1 % above it at 512 pages a
/// segment, with what still moves: 2.56, 1.45 and 0.77 at these localities. Started 4 % away from the rule's
/// split, or moving pages before all partitions are known, it is 5 to 12 % above it for hundreds of overwrites.
#[test]
fn a_sorted_start_costs_the_ideal_split_at_once() {
    for share in [0.8, 0.9, 0.95] {
        let expected = 16.0 * share * (1.0 - share);
        let found = sorted_cost(1, share, 10, 10);
        assert!((found / expected - 1.0).abs() < 0.025, "{share}: {found}, expected {expected}");
    }
}

/// From a start where hot and cold pages are mixed, a transfer must bring the products of both partitions closer to
/// the average (section 4.3): pages go to a neighbour with a lower product and come from one with a higher. An
/// independent simulation of that rule costs 2.21, 2.22 and 2.24 with three seeds after 400 to 500 overwrites (128
/// pages a segment, 10/90), falling; one that moves pages to and from either neighbour costs 2.9.
#[test]
fn transfers_bring_both_products_closer() {
    let found = cost(SegmentCleaning::gathering(1), 128, 128, 0.9, 400, 100);
    assert!((found / 2.22 - 1.0).abs() < 0.05, "{found}");
}

/// Where nothing moves between partitions of one segment, every segment keeps its share of live pages: the
/// cost is u / (1 - u) (figure 6).
#[test]
fn segments_of_fixed_utilization_cost_u_over_1_minus_u() {
    for percent in [10, 30, 50, 70, 80, 90] {
        let u = percent as f64 / 100.0;
        let fixed = Gathering { step: 0.0, ..Gathering::new(1) };
        let setup = Setup {
            cleaning: SegmentCleaning::Gathering(fixed),
            dies: 1,
            segments: 17,
            pages: 2000,
            page_bytes: 256,
            buffer: 0,
            flush_at: 0,
            wear_spread: None,
            utilization: u,
            transaction_pages: 0,
        };
        let mut device = setup.timing_only();
        let mut host = Host::new(device.capacity_units(), 0.5);
        for lpa in 0..device.capacity_units() {
            device.write(Time::ZERO, Extent::one(Lpa(lpa)), &[]).unwrap();
        }
        // Segments filled in order are cleaned in step: whole rounds of cleans are counted.
        host.write_until(&mut device, 16 * 10);
        let found = host.write_until(&mut device, 16 * 100);
        let expected = u / (1.0 - u);
        assert!((found / expected - 1.0).abs() < 0.01, "{percent} %: {found}, expected {expected}");
    }
}

/// Gathering pays under locality and greedy does not (section 4.3, figure 8).
#[test]
fn curves_cross_as_in_figure_8() {
    let greedy = cost(SegmentCleaning::Greedy, 128, 256, 0.9, 10, 5);
    let hybrid = cost(SegmentCleaning::gathering(16), 128, 256, 0.9, 300, 20);
    assert!(greedy > 2.3 && hybrid < 1.0, "greedy {greedy}, hybrid {hybrid}");
}

#[test]
fn the_time_split_adds_up() {
    let (_, mut device) = array(SegmentCleaning::gathering(16), 128, 256);
    let mut host = Host::new(device.capacity_units(), 0.8);
    let space = device.capacity_units() as u64;
    host.write(&mut device, space * 5);
    let before = host.now;
    host.write(&mut device, space * 5);
    let stats = device.stats();
    let long = stats.flush_time.seconds()
        + stats.clean_time.seconds()
        + stats.transfer_time.seconds()
        + stats.erase_time.seconds();
    let all = long + stats.store_time.seconds();
    let elapsed = host.now.since(before).seconds();
    // One lane does everything, one thing at a time; the resume wait after every store comes on top.
    let resumes = stats.stores as f64 * Span::from_us(4).seconds();
    assert!(all <= elapsed * 1.001 && elapsed <= (all + resumes) * 1.001, "{all} of {elapsed}");
}
