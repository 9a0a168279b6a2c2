//! Numbers of the TPC-C standard (revision 5.11): cardinalities, row lengths, shares and the distribution NURand.
//!
//! All values start at 0 here; the standard starts at 1.

use nvlab_units::Rng;
use std::ops::RangeInclusive;

/// Districts of a warehouse (clause 1.2.1).
pub(crate) const DISTRICTS: u32 = 10;
/// Customers of a district.
pub(crate) const CUSTOMERS: u32 = 3000;
/// Items, and rows of stock per warehouse.
pub(crate) const ITEMS: u32 = 100_000;
/// Initial orders of a district, one per customer (clause 4.3.3.1).
pub(crate) const ORDERS: u32 = 3000;
/// The newest of them, not yet delivered: rows of the table new-order.
pub(crate) const UNDELIVERED: u32 = 900;
/// Last names (clause 4.3.2.3).
pub const NAMES: u32 = 1000;
/// Lines of an order (clause 2.4.1.3).
pub(crate) const LINES: RangeInclusive<u32> = 5..=15;
/// Orders whose lines the stock-level transaction examines (clause 2.8.2.2).
pub(crate) const RECENT_ORDERS: u32 = 20;

/// Lines supplied by another warehouse (clause 2.4.1.5).
pub(crate) const REMOTE_LINES: f64 = 0.01;
/// New-orders with an item that does not exist, which are rolled back (clause 2.4.1.4).
pub(crate) const ROLLBACKS: f64 = 0.01;
/// Payments by customers of another warehouse (clause 2.5.1.2).
pub(crate) const REMOTE_PAYMENTS: f64 = 0.15;
/// Payments and order-statuses that select the customer by last name (clauses 2.5.1.2 and 2.6.1.2).
pub(crate) const BY_NAME: f64 = 0.60;

/// A table of the standard: its rows and its primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// As the standard calls it, in lower case.
    pub name: &'static str,
    /// Bytes of a row (clause 4.2.2: typical length, without the overhead of a database).
    pub row_bytes: u32,
    /// Bytes of its primary key, 4 for each column; 0 if it has none.
    pub key_bytes: u32,
}

const fn table(name: &'static str, row_bytes: u32, key_columns: u32) -> Table {
    Table { name, row_bytes, key_bytes: key_columns * 4 }
}

pub(crate) const WAREHOUSE: Table = table("warehouse", 89, 1);
pub(crate) const DISTRICT: Table = table("district", 95, 2);
pub(crate) const CUSTOMER: Table = table("customer", 655, 3);
/// Payments that were made.
pub(crate) const HISTORY: Table = table("history", 46, 0);
/// Orders that are not delivered.
pub(crate) const NEW_ORDER: Table = table("new-order", 8, 3);
pub(crate) const ORDER: Table = table("order", 24, 3);
pub(crate) const ORDER_LINE: Table = table("order-line", 54, 4);
pub(crate) const ITEM: Table = table("item", 82, 1);
/// Stock of every item in every warehouse.
pub(crate) const STOCK: Table = table("stock", 306, 2);
/// Key of the index of customers by warehouse, district, last name and first name (4 + 4 + 16 + 16 B).
pub(crate) const CUSTOMER_NAME_KEY_BYTES: u32 = 40;
/// Key of the index of orders by warehouse, district, customer and number.
pub(crate) const CUSTOMER_ORDER_KEY_BYTES: u32 = 16;

/// The five transactions, in the order in which counts are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// An order is entered (clause 2.4).
    NewOrder,
    /// A customer pays (clause 2.5).
    Payment,
    /// A customer queries the newest order (clause 2.6).
    OrderStatus,
    /// The oldest order of each district is delivered (clause 2.7).
    Delivery,
    /// The stock of recently sold items is examined (clause 2.8).
    StockLevel,
}

impl Transaction {
    /// All five, in the order of [`Counts`](super::Counts).
    pub const ALL: [Transaction; 5] = [
        Transaction::NewOrder,
        Transaction::Payment,
        Transaction::OrderStatus,
        Transaction::Delivery,
        Transaction::StockLevel,
    ];

    /// Its share of the full mix in percent: the minimum that clause 5.2.3 allows, and for new-order the rest.
    pub const fn percent(self) -> u64 {
        match self {
            Transaction::NewOrder => 45,
            Transaction::Payment => 43,
            _ => 4,
        }
    }

    /// The transaction at `percent` (0 to 99) of the full mix.
    pub(super) fn at(percent: u64) -> Transaction {
        let mut end = 0;
        let holds = |kind: &Transaction| {
            end += kind.percent();
            percent < end
        };
        Transaction::ALL.into_iter().find(holds).unwrap_or_else(|| panic!("{percent} of 100 %"))
    }
}

/// NURand (clause 2.1.6): `((random(0, A) | random(x, y)) + C) % (y - x + 1) + x`, less `x`.
#[derive(Clone, Copy, Debug)]
pub struct NonUniform {
    /// `A`: one less than a power of two.
    mask: u64,
    /// `x`, the smallest value.
    first: u64,
    /// `y - x + 1`, the number of values.
    count: u64,
    /// `C`, drawn once per run.
    constant: u64,
}

impl NonUniform {
    /// Customers of a district: A = 1023 over 1 to 3000.
    pub(crate) fn customers(constant: u64) -> NonUniform {
        NonUniform { mask: 1023, first: 1, count: CUSTOMERS as u64, constant }
    }

    /// Items: A = 8191 over 1 to 100,000.
    pub fn items(constant: u64) -> NonUniform {
        NonUniform { mask: 8191, first: 1, count: ITEMS as u64, constant }
    }

    /// Last names: A = 255 over 0 to 999.
    pub fn names(constant: u64) -> NonUniform {
        NonUniform { mask: 255, first: 0, count: NAMES as u64, constant }
    }

    /// The next value, from 0 although the standard counts from `x`.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u32 {
        let uniform = self.first + rng.below(self.count);
        (((rng.below(self.mask + 1) | uniform) + self.constant) % self.count) as u32
    }
}

/// The constants C of a run (clause 2.1.6.1): those for loaded and for queried names must differ by 65 to 119, but
/// not by 96 or 112.
#[derive(Clone, Copy, Debug)]
pub struct Constants {
    /// For last names, at loading.
    pub name_load: u64,
    /// For last names, in queries.
    pub name_run: u64,
    /// For customer numbers.
    pub customer: u64,
    /// For item numbers.
    pub item: u64,
}

impl Constants {
    /// Draws until the two for names differ as clause 2.1.6.1 demands.
    pub fn draw(rng: &mut Rng) -> Constants {
        let (customer, item) = (rng.below(1024), rng.below(8192));
        loop {
            let (name_load, name_run) = (rng.below(256), rng.below(256));
            if is_allowed_difference(name_load.abs_diff(name_run)) {
                return Constants { name_load, name_run, customer, item };
            }
        }
    }
}

fn is_allowed_difference(difference: u64) -> bool {
    (65..=119).contains(&difference) && difference != 96 && difference != 112
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clauses 1.2.1 and 4.2.2.
    #[test]
    fn rows_are_as_long_as_the_standard_says() {
        let tables = [WAREHOUSE, DISTRICT, CUSTOMER, HISTORY, NEW_ORDER, ORDER, ORDER_LINE, ITEM, STOCK];
        assert_eq!(tables.map(|table| table.row_bytes), [89, 95, 655, 46, 8, 24, 54, 82, 306]);
        assert_eq!([DISTRICTS, CUSTOMERS, ORDERS, UNDELIVERED, ITEMS], [10, 3000, 3000, 900, 100_000]);
    }

    #[test]
    fn the_full_mix_is_100_percent() {
        let mut counts = [0; 5];
        (0..100).for_each(|percent| counts[Transaction::at(percent) as usize] += 1);
        assert_eq!(counts, [45, 43, 4, 4, 4]);
    }

    /// Against the exact distribution, by going through every pair of the two random numbers.
    #[test]
    fn nurand_is_distributed_as_defined() {
        let draws = 1_000_000u32;
        for (name, distribution) in [
            ("customers", NonUniform::customers(777)),
            ("items", NonUniform::items(7911)),
            ("names", NonUniform::names(123)),
        ] {
            let NonUniform { mask, first, count, constant } = distribution;
            let (buckets, width) = (100, count.div_ceil(100));
            let mut pairs = vec![0u64; buckets];
            for uniform in first..first + count {
                for low in 0..=mask {
                    pairs[(((low | uniform) + constant) % count / width) as usize] += 1;
                }
            }
            let mut rng = Rng::new(11);
            let mut drawn = vec![0u64; buckets];
            (0..draws).for_each(|_| drawn[distribution.draw(&mut rng) as usize / width as usize] += 1);
            let scale = draws as f64 / ((mask + 1) * count) as f64;
            for (bucket, (&drawn, &pairs)) in drawn.iter().zip(&pairs).enumerate() {
                let expected = pairs as f64 * scale;
                let deviation = (drawn as f64 - expected) / expected.sqrt();
                assert!(
                    deviation.abs() < 5.0,
                    "{name}, bucket {bucket}: {drawn} drawn, {expected:.0} expected"
                );
            }
            let most = *pairs.iter().max().unwrap() as f64 * buckets as f64;
            assert!(most / pairs.iter().sum::<u64>() as f64 > 1.5, "{name} is not skewed");
        }
    }

    #[test]
    fn names_that_are_asked_for_differ_from_those_loaded_as_prescribed() {
        let mut rng = Rng::new(5);
        for _ in 0..10_000 {
            let constants = Constants::draw(&mut rng);
            let difference = constants.name_load.abs_diff(constants.name_run);
            assert!(
                (65..=119).contains(&difference) && difference != 96 && difference != 112,
                "{constants:?}"
            );
            assert!(constants.customer <= 1023 && constants.item <= 8191, "{constants:?}");
        }
    }
}
