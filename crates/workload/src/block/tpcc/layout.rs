//! The layout of rows and index entries on pages, and the database of a number of warehouses.
//!
//! A page has a header of 24 B, a row or index entry a slot of 4 B, an index entry 8 B besides its key for the address
//! of its row: the page of PostgreSQL (its manual, chapter "Database Physical Storage"), without its row header of 23
//! B, which other products do not have. Rows do not straddle pages. The rows of new-order consist of their key only, so
//! they are stored in the tree; all other tables are heaps with a separate index.

use super::fixed::{FixedTable, FixedTree};
use super::grown::{Ascending, DISTRICT_SHIFT, Sorted};
use super::orders::Orders;
use super::space::{Heap, Segment, Space};
use super::standard::*;

const PAGE_HEADER_BYTES: u32 = 24;
const SLOT_BYTES: u32 = 4;
const ENTRY_BYTES: u32 = 8;
/// How full random insertions leave a leaf: ln 2 (Yao, "On random 2-3 trees", 1978), in thousandths.
const RANDOM_FILL: u32 = 693;
/// Segments that grow: history, orders, lines and the four trees of those.
const GROWING: u32 = 7;
/// Lines of a district beyond 30,000, so that random variation does not exceed [`Database::pages_for`]: their standard
/// deviation is 173 (3000 orders of variance 10) in one district, less in the mean of all.
const LINES_SPREAD: u32 = 200;
/// The ring of the log.
const LOG_BYTES: u64 = 64 << 20;

/// Rows of `row_bytes` on a page.
pub fn rows_per_page(page_bytes: u32, row_bytes: u32) -> u32 {
    (page_bytes - PAGE_HEADER_BYTES) / (row_bytes + SLOT_BYTES)
}

/// Index entries with keys of `key_bytes` on a page.
pub fn fanout(page_bytes: u32, key_bytes: u32) -> u32 {
    rows_per_page(page_bytes, key_bytes + ENTRY_BYTES)
}

/// Orders by customer on a loaded leaf.
fn loaded_fanout(fanout: u32) -> u32 {
    fanout * RANDOM_FILL / 1000
}

/// The key of the index of orders by customer.
#[inline]
pub fn customer_order_key(district: u32, customer: u32, number: u32) -> u64 {
    (district as u64) << DISTRICT_SHIFT | (customer as u64) << 32 | number as u64
}

#[derive(Clone, Debug)]
pub struct Database {
    pub(super) space: Space,
    pub(super) log: Segment,
    pub(super) warehouse: FixedTable,
    pub(super) district: FixedTable,
    pub(super) customer: FixedTable,
    pub(super) customer_name: FixedTree,
    pub(super) item: FixedTable,
    pub(super) stock: FixedTable,
    pub(super) history: Heap,
    pub(super) order: Heap,
    pub(super) order_tree: Ascending,
    pub(super) customer_order: Sorted,
    pub(super) new_order: Ascending,
    pub(super) line: Heap,
    pub(super) line_tree: Ascending,
    /// The size of the initial database.
    pub(super) loaded_pages: u32,
}

impl Database {
    /// The most pages `warehouses` need initially, with room to grow by one extent per segment.
    pub fn pages_for(warehouses: u32, page_bytes: u32, has_log: bool) -> u64 {
        let (rows, keys) = (warehouses as u64, |bytes: u32| fanout(page_bytes, bytes));
        let (districts, customers) = (rows * DISTRICTS as u64, rows * (DISTRICTS * CUSTOMERS) as u64);
        let heap = |rows: u64, table: Table| rows.div_ceil(rows_per_page(page_bytes, table.row_bytes) as u64);
        let fixed =
            |rows: u64, table: Table| heap(rows, table) + FixedTree::pages_for(rows, keys(table.key_bytes));
        let above = |leaves: u64, fanout: u32| leaves + FixedTree::pages_for(leaves, fanout);
        let by_district = |rows: u64, fanout: u32| above(districts * rows.div_ceil(fanout as u64), fanout);
        let lines = (ORDERS * (LINES.start() + LINES.end()) / 2 + LINES_SPREAD) as u64;
        let by_customer = keys(CUSTOMER_ORDER_KEY_BYTES);
        let log = if has_log { LOG_BYTES / page_bytes as u64 } else { 0 };
        log + fixed(rows, WAREHOUSE)
            + fixed(districts, DISTRICT)
            + fixed(customers, CUSTOMER)
            + FixedTree::pages_for(customers, keys(CUSTOMER_NAME_KEY_BYTES))
            + fixed(ITEMS as u64, ITEM)
            + fixed(rows * ITEMS as u64, STOCK)
            + heap(customers, HISTORY)
            + heap(customers, ORDER)
            + by_district(ORDERS as u64, keys(ORDER.key_bytes))
            + above(customers.div_ceil(loaded_fanout(by_customer) as u64), by_customer)
            + by_district(UNDELIVERED as u64, rows_per_page(page_bytes, NEW_ORDER.row_bytes))
            + heap(districts * lines, ORDER_LINE)
            + by_district(lines, keys(ORDER_LINE.key_bytes))
            + (GROWING * super::space::EXTENT_PAGES) as u64
    }

    /// The initial database of `warehouses` with `orders` on a device of `pages` pages.
    pub fn load(warehouses: u32, page_bytes: u32, has_log: bool, orders: &Orders, pages: u32) -> Database {
        let mut space = Space::new(pages);
        let space = &mut space;
        let log_pages = if has_log { LOG_BYTES / page_bytes as u64 } else { 0 };
        let log = Segment::new(space, log_pages as u32);
        let (districts, customers) = (warehouses * DISTRICTS, warehouses * DISTRICTS * CUSTOMERS);
        let keys = |bytes: u32| fanout(page_bytes, bytes);
        let per_page = |table: Table| rows_per_page(page_bytes, table.row_bytes);
        let mut fixed =
            |rows: u32, table: Table| FixedTable::new(space, rows, per_page(table), keys(table.key_bytes));
        let warehouse = fixed(warehouses, WAREHOUSE);
        let district = fixed(districts, DISTRICT);
        let customer = fixed(customers, CUSTOMER);
        let item = fixed(ITEMS, ITEM);
        let stock = fixed(warehouses * ITEMS, STOCK);
        let customer_name = FixedTree::new(space, customers as u64, keys(CUSTOMER_NAME_KEY_BYTES));
        let history = Heap::new(space, customers, per_page(HISTORY));
        let order = Heap::new(space, customers, per_page(ORDER));
        let states = || orders.districts.iter();
        let numbers = |_| 0..ORDERS as u64;
        let order_tree = Ascending::load(space, keys(ORDER.key_bytes), states().map(numbers));
        let fanout = keys(CUSTOMER_ORDER_KEY_BYTES);
        let by_customer = orders_by_customer(orders);
        let customer_order = Sorted::load(space, fanout, loaded_fanout(fanout), &by_customer);
        let waiting = |_| (ORDERS - UNDELIVERED) as u64..ORDERS as u64;
        let new_order = Ascending::load(space, per_page(NEW_ORDER), states().map(waiting));
        let lines = states().map(|state| state.next_line).sum();
        let line = Heap::new(space, lines, per_page(ORDER_LINE));
        let lines = states().map(|state| 0..state.next_line as u64);
        let line_tree = Ascending::load(space, keys(ORDER_LINE.key_bytes), lines);
        let (space, loaded_pages) = (space.clone(), space.used_pages());
        Database {
            space,
            log,
            warehouse,
            district,
            customer,
            customer_name,
            item,
            stock,
            history,
            order,
            order_tree,
            customer_order,
            new_order,
            line,
            line_tree,
            loaded_pages,
        }
    }

    /// True if every segment can still take an extent: more than a transaction needs.
    #[inline]
    pub fn can_grow(&self) -> bool {
        self.space.free_extents() >= GROWING
    }
}

fn orders_by_customer(orders: &Orders) -> Vec<u64> {
    let customers = (0..).zip(&orders.newest_of);
    let key = |(customer, &order): (u32, &u32)| {
        let number = orders.all[order as usize].number;
        customer_order_key(customer / CUSTOMERS, customer % CUSTOMERS, number)
    };
    customers.map(key).collect()
}
