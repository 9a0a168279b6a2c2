//! The state of orders, 20 B each, and the order queue of each district.
//!
//! Rows have no content. A transaction needs the customer of an order, the number of its lines and their position; for
//! the newest 20 orders of a district also the items of their lines, for the stock-level transaction.

use super::standard::{CUSTOMERS, DISTRICTS, ITEMS, LINES, NAMES, ORDERS, UNDELIVERED};
use super::standard::{NonUniform, RECENT_ORDERS};
use nvlab_units::Rng;

/// Stands for no order.
pub const NONE: u32 = u32::MAX;
const LINES_MAX: usize = *LINES.end() as usize;
const RECENT: usize = RECENT_ORDERS as usize;

/// An order. Its index is its row in the heap.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub number: u32,
    /// The number of its first line in its district.
    pub first_line: u32,
    /// The row of that line in the heap; the others follow.
    pub first_row: u32,
    /// The next order of the district.
    pub next: u32,
    /// The number of its customer in the district.
    pub customer: u16,
    pub lines: u8,
}

const _: () = assert!(size_of::<Order>() == 20);

#[derive(Clone, Debug)]
pub struct District {
    /// The number of its next order.
    pub next_number: u32,
    /// The number of its next line.
    pub next_line: u32,
    /// The oldest order that is not delivered.
    pub oldest: u32,
    /// The newest order.
    pub newest: u32,
    pub undelivered: u32,
    /// The newest orders, by their number modulo 20.
    pub recent: [u32; RECENT],
    /// The items of their lines.
    pub items: [[u32; LINES_MAX]; RECENT],
}

impl District {
    /// The orders that the stock-level transaction examines, oldest first.
    pub fn recent(&self) -> impl Iterator<Item = (u32, &[u32; LINES_MAX])> {
        let numbers = self.next_number.saturating_sub(RECENT_ORDERS)..self.next_number;
        numbers.map(|number| {
            let slot = number as usize % RECENT;
            (self.recent[slot], &self.items[slot])
        })
    }
}

/// All orders, and the last names by which customers are found.
#[derive(Clone, Debug)]
pub struct Orders {
    /// Indexed by row.
    pub all: Vec<Order>,
    /// Indexed by warehouse and district.
    pub districts: Vec<District>,
    /// The newest order of each customer.
    pub newest_of: Vec<u32>,
    /// Customers of each district in order of last and first name.
    by_name: Vec<u16>,
    /// Per district: where each name begins, and the end.
    name_begins: Vec<u16>,
}

impl Orders {
    /// The orders and names of the initial database (clause 4.3.3.1), district after district.
    pub fn populate(warehouses: u32, names: &NonUniform, rng: &mut Rng) -> Orders {
        let district_count = warehouses * DISTRICTS;
        let orders = district_count as usize * ORDERS as usize;
        let mut populated = Orders {
            all: Vec::with_capacity(orders),
            districts: Vec::with_capacity(district_count as usize),
            newest_of: vec![NONE; district_count as usize * CUSTOMERS as usize],
            by_name: Vec::with_capacity(district_count as usize * CUSTOMERS as usize),
            name_begins: Vec::with_capacity(district_count as usize * (NAMES as usize + 1)),
        };
        let mut row = 0;
        for district in 0..district_count {
            populated.add_names(names, rng);
            row = populated.add_orders(district, row, rng);
        }
        populated
    }

    /// The first 1000 customers have every name once, the others by NURand; first names are random, so that
    /// customers of one name come in random order.
    fn add_names(&mut self, names: &NonUniform, rng: &mut Rng) {
        let named = |customer: u32, rng: &mut Rng| match customer {
            0..NAMES => customer,
            _ => names.draw(rng),
        };
        let mut sorted: Vec<(u32, u32, u32)> =
            (0..CUSTOMERS).map(|customer| (named(customer, rng), rng.bits() as u32, customer)).collect();
        sorted.sort_unstable();
        for name in 0..=NAMES {
            self.name_begins.push(sorted.partition_point(|customer| customer.0 < name) as u16);
        }
        self.by_name.extend(sorted.iter().map(|customer| customer.2 as u16));
    }

    /// One order for each customer, in random order, with 5 to 15 lines; returns the next row of lines.
    fn add_orders(&mut self, district: u32, first_row: u32, rng: &mut Rng) -> u32 {
        let mut customers: Vec<u16> = (0..CUSTOMERS as u16).collect();
        for last in (1..customers.len()).rev() {
            customers.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let base = self.all.len() as u32;
        let mut state = District {
            next_number: 0,
            next_line: 0,
            oldest: base + ORDERS - UNDELIVERED,
            newest: base + ORDERS - 1,
            undelivered: UNDELIVERED,
            recent: [NONE; RECENT],
            items: [[0; LINES_MAX]; RECENT],
        };
        for customer in customers {
            let lines = lines_of_order(rng);
            let (number, first_line) = (state.next_number, state.next_line);
            let id = base + number;
            let next = if number + 1 < ORDERS { id + 1 } else { NONE };
            let first_row = first_row + first_line;
            self.all.push(Order { number, first_line, first_row, next, customer, lines: lines as u8 });
            self.newest_of[(district * CUSTOMERS + customer as u32) as usize] = id;
            // Only the newest are needed; the items of the others are not stored.
            if number >= ORDERS - RECENT_ORDERS {
                let slot = number as usize % RECENT;
                state.recent[slot] = id;
                state.items[slot][..lines as usize].fill_with(|| rng.below(ITEMS as u64) as u32);
            }
            (state.next_number, state.next_line) = (number + 1, first_line + lines);
        }
        let lines = state.next_line;
        self.districts.push(state);
        first_row + lines
    }

    pub fn add(&mut self, district: u32, order: Order, items: &[u32]) {
        let id = self.all.len() as u32;
        let state = &mut self.districts[district as usize];
        assert_eq!(order.number, state.next_number, "order of district {district}");
        self.all[state.newest as usize].next = id;
        if state.undelivered == 0 {
            state.oldest = id;
        }
        let slot = order.number as usize % RECENT;
        state.recent[slot] = id;
        state.items[slot][..items.len()].copy_from_slice(items);
        state.newest = id;
        state.undelivered += 1;
        state.next_number += 1;
        state.next_line += order.lines as u32;
        self.newest_of[(district * CUSTOMERS + order.customer as u32) as usize] = id;
        self.all.push(order);
    }

    /// Removes the oldest undelivered order of a district from the queue; returns its row and the order.
    pub fn deliver(&mut self, district: u32) -> Option<(u32, Order)> {
        let state = &mut self.districts[district as usize];
        if state.undelivered == 0 {
            return None;
        }
        let row = state.oldest;
        let order = self.all[row as usize];
        state.oldest = order.next;
        state.undelivered -= 1;
        Some((row, order))
    }

    /// The positions of the customers with a last name in the order of names.
    pub fn named(&self, district: u32, name: u32) -> std::ops::Range<u32> {
        let base = (district * (NAMES + 1) + name) as usize;
        self.name_begins[base] as u32..self.name_begins[base + 1] as u32
    }

    /// The number, in the district, of the customer at a position in the order of names.
    pub fn customer_at(&self, district: u32, place: u32) -> u32 {
        self.by_name[(district * CUSTOMERS + place) as usize] as u32
    }
}

/// How many lines an order has (clause 2.4.1.3).
pub fn lines_of_order(rng: &mut Rng) -> u32 {
    LINES.start() + rng.below((LINES.end() - LINES.start() + 1) as u64) as u32
}
