//! The five transactions, with the steps in the order of the standard (clauses 2.4.2 to 2.8.2).
//!
//! A row that is selected and then updated is searched once. Customers by name are fetched up to the middle one, as in
//! the standard's sample programs (appendix A). Transactions run one after another.

use super::counts::Counts;
use super::layout::{Database, customer_order_key};
use super::log::Log;
use super::orders::{NONE, Order, Orders, lines_of_order};
use super::pool::{Pool, Touch};
use super::space::{Heap, Space};
use super::standard::*;
use nvlab_units::Rng;

/// Random numbers, one stream per purpose.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    kinds: Rng,
    places: Rng,
    customers: Rng,
    orders: Rng,
    items: Rng,
    customer_numbers: NonUniform,
    customer_names: NonUniform,
    item_numbers: NonUniform,
}

impl Draws {
    pub fn new(constants: &Constants, seed: u64) -> Draws {
        Draws {
            kinds: Rng::stream(seed, "transactions"),
            places: Rng::stream(seed, "warehouses"),
            customers: Rng::stream(seed, "customers"),
            orders: Rng::stream(seed, "orders"),
            items: Rng::stream(seed, "items"),
            customer_numbers: NonUniform::customers(constants.customer),
            customer_names: NonUniform::names(constants.name_run),
            item_numbers: NonUniform::items(constants.item),
        }
    }

    /// A transaction of the full mix.
    pub fn kind(&mut self) -> Transaction {
        Transaction::at(self.kinds.below(100))
    }
}

/// The database at work.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    pub warehouses: u32,
    pub database: Database,
    pub orders: Orders,
    pub pool: Pool,
    pub log: Log,
    pub counts: Counts,
    pub draws: Draws,
    /// Items of the stock-level transaction.
    pub sold: Vec<u32>,
}

impl Engine {
    /// Runs a transaction; its requests to the device are in the pool's queue.
    #[inline]
    pub fn run(&mut self, kind: Transaction) {
        self.counts.begin(kind);
        let warehouse = self.draws.places.below(self.warehouses as u64) as u32;
        let is_committed = match kind {
            Transaction::NewOrder => self.new_order(warehouse),
            Transaction::Payment => self.payment(warehouse),
            Transaction::OrderStatus => self.order_status(warehouse),
            Transaction::Delivery => self.delivery(warehouse),
            Transaction::StockLevel => self.stock_level(warehouse),
        };
        if is_committed {
            self.log.commit(&self.database.log, &mut self.pool.queue);
        }
    }

    fn district_of(&mut self, warehouse: u32) -> u32 {
        warehouse * DISTRICTS + self.draws.places.below(DISTRICTS as u64) as u32
    }

    /// Another warehouse with `probability`, if there is another.
    #[inline]
    fn remote(&mut self, warehouse: u32, probability: f64) -> u32 {
        if !self.draws.places.chance(probability) || self.warehouses == 1 {
            return warehouse;
        }
        let other = self.draws.places.below(self.warehouses as u64 - 1) as u32;
        other + u32::from(other >= warehouse)
    }

    /// Clause 2.4.2.2. Returns false if it was rolled back.
    fn new_order(&mut self, warehouse: u32) -> bool {
        let district = self.district_of(warehouse);
        let customer = self.draws.customer_numbers.draw(&mut self.draws.customers);
        let lines = lines_of_order(&mut self.draws.orders);
        let is_rolled_back = self.draws.orders.chance(ROLLBACKS);
        self.database.warehouse.access(warehouse, Touch::Read, &mut self.pool);
        self.database.district.access(district, Touch::Change, &mut self.pool);
        self.database.customer.access(district * CUSTOMERS + customer, Touch::Read, &mut self.pool);
        self.counts.selected(3);
        self.changed(1);
        let state = &self.orders.districts[district as usize];
        let (number, first_line) = (state.next_number, state.next_line);
        let first_row = self.database.line.rows();
        let (customer, lines) = (customer as u16, lines as u8);
        let order = Order { number, first_line, first_row, next: NONE, customer, lines };
        self.insert_order(district, &order);
        let mut items = [0; *LINES.end() as usize];
        let mut stocks = [0; *LINES.end() as usize];
        let found = lines as usize - usize::from(is_rolled_back);
        for line in 0..found {
            let item = self.draws.item_numbers.draw(&mut self.draws.items);
            let supplier = self.remote(warehouse, REMOTE_LINES);
            (items[line], stocks[line]) = (item, supplier * ITEMS + item);
            self.order_line(district, first_line + line as u32, item, stocks[line]);
            self.counts.line(supplier != warehouse);
        }
        if is_rolled_back {
            // The last item does not exist: its search ends on the last leaf.
            self.database.item.tree.search(ITEMS as u64 - 1, &mut self.pool);
            self.counts.selected(1);
            self.roll_back(district, &order, &stocks[..found]);
            return false;
        }
        self.orders.add(district, order, &items[..found]);
        true
    }

    fn insert_order(&mut self, district: u32, order: &Order) {
        let Database { space, order: rows, order_tree, customer_order, new_order, .. } = &mut self.database;
        append(rows, space, &mut self.pool);
        order_tree.append(district, order.number, &mut self.pool, space);
        let key = customer_order_key(district, order.customer as u32, order.number);
        customer_order.insert(key, &mut self.pool, space);
        new_order.append(district, order.number, &mut self.pool, space);
        self.inserted(ORDER);
        self.inserted(NEW_ORDER);
    }

    #[inline]
    fn order_line(&mut self, district: u32, line: u32, item: u32, stock: u32) {
        self.database.item.access(item, Touch::Read, &mut self.pool);
        self.database.stock.access(stock, Touch::Change, &mut self.pool);
        self.counts.selected(2);
        self.changed(1);
        let Database { space, line: rows, line_tree, .. } = &mut self.database;
        append(rows, space, &mut self.pool);
        line_tree.append(district, line, &mut self.pool, space);
        self.inserted(ORDER_LINE);
    }

    /// Undoes a new-order, last step first; the log records where its rows are.
    fn roll_back(&mut self, district: u32, order: &Order, stocks: &[u32]) {
        let (database, pool) = (&mut self.database, &mut self.pool);
        for (number, &row) in stocks.iter().enumerate().rev() {
            database.line_tree.take_back(district, order.first_line + number as u32, pool);
            pool.touch(database.line.take_back(), Touch::Change);
            pool.touch(database.stock.rows.page(row), Touch::Change);
        }
        let key = customer_order_key(district, order.customer as u32, order.number);
        database.new_order.take_back(district, order.number, pool);
        database.customer_order.take_back(key, pool);
        database.order_tree.take_back(district, order.number, pool);
        pool.touch(database.order.take_back(), Touch::Change);
        pool.touch(database.district.rows.page(district), Touch::Change);
        self.counts.rollbacks += 1;
    }

    /// Finds a customer of `district` by last name or by number (clause 2.5.1.2), fetches the row and returns it.
    fn fetch_customer(&mut self, district: u32) -> u32 {
        let base = district * CUSTOMERS;
        if !self.draws.customers.chance(BY_NAME) {
            let row = base + self.draws.customer_numbers.draw(&mut self.draws.customers);
            self.database.customer.access(row, Touch::Read, &mut self.pool);
            self.counts.selected(1);
            return row;
        }
        let name = self.draws.customer_names.draw(&mut self.draws.customers);
        let places = self.orders.named(district, name);
        let (first, last) = (base + places.start, base + places.end - 1);
        self.database.customer_name.search(first as u64, &mut self.pool);
        self.database.customer_name.scan(first as u64, last as u64, &mut self.pool);
        let mut row = base;
        let middle = places.start + (places.end - places.start - 1) / 2;
        for place in places.start..=middle {
            row = base + self.orders.customer_at(district, place);
            self.pool.touch(self.database.customer.rows.page(row), Touch::Read);
            self.counts.selected(1);
        }
        row
    }

    /// Clause 2.5.2.2.
    fn payment(&mut self, warehouse: u32) -> bool {
        let district = self.district_of(warehouse);
        let of_warehouse = self.remote(warehouse, REMOTE_PAYMENTS);
        let of_district = if of_warehouse == warehouse { district } else { self.district_of(of_warehouse) };
        self.database.warehouse.access(warehouse, Touch::Change, &mut self.pool);
        self.database.district.access(district, Touch::Change, &mut self.pool);
        self.counts.selected(2);
        let customer = self.fetch_customer(of_district);
        self.pool.touch(self.database.customer.rows.page(customer), Touch::Change);
        self.changed(3);
        append(&mut self.database.history, &mut self.database.space, &mut self.pool);
        self.inserted(HISTORY);
        true
    }

    /// Clause 2.6.2.2.
    fn order_status(&mut self, warehouse: u32) -> bool {
        let district = self.district_of(warehouse);
        let customer = self.fetch_customer(district);
        let row = self.orders.newest_of[customer as usize];
        let order = self.orders.all[row as usize];
        let key = customer_order_key(district, order.customer as u32, order.number);
        self.database.customer_order.read(key, &mut self.pool);
        self.pool.touch(self.database.order.page(row), Touch::Read);
        self.counts.selected(1);
        self.lines_of(district, &order, Touch::Read);
        true
    }

    /// Finds the lines of an order and accesses their rows.
    fn lines_of(&mut self, district: u32, order: &Order, how: Touch) {
        let lines = order.lines as u32;
        let range = order.first_line..order.first_line + lines;
        self.database.line_tree.read_range(district, range, &mut self.pool);
        touch_rows(&self.database.line, order, how, &mut self.pool);
        self.counts.selected(lines);
    }

    /// Clause 2.7.4.2: all districts, one after another.
    fn delivery(&mut self, warehouse: u32) -> bool {
        for district in warehouse * DISTRICTS..(warehouse + 1) * DISTRICTS {
            let Some((row, order)) = self.orders.deliver(district) else {
                self.counts.skipped_deliveries += 1;
                continue;
            };
            let is_last = self.orders.districts[district as usize].undelivered == 0;
            self.database.new_order.remove_oldest(district, order.number, is_last, &mut self.pool);
            self.counts.deleted(1);
            self.log.row(NEW_ORDER.row_bytes);
            self.database.order_tree.read(district, order.number, &mut self.pool);
            self.pool.touch(self.database.order.page(row), Touch::Change);
            self.lines_of(district, &order, Touch::Change);
            let customer = district * CUSTOMERS + order.customer as u32;
            self.database.customer.access(customer, Touch::Change, &mut self.pool);
            self.counts.selected(2);
            self.changed(2 + order.lines as u32);
        }
        true
    }

    /// Clause 2.8.2.2.
    fn stock_level(&mut self, warehouse: u32) -> bool {
        let district = self.district_of(warehouse);
        self.database.district.access(district, Touch::Read, &mut self.pool);
        self.sold.clear();
        let state = &self.orders.districts[district as usize];
        let mut first_line = state.next_line;
        for (row, items) in state.recent() {
            let order = &self.orders.all[row as usize];
            first_line = first_line.min(order.first_line);
            touch_rows(&self.database.line, order, Touch::Read, &mut self.pool);
            self.sold.extend_from_slice(&items[..order.lines as usize]);
        }
        self.database.line_tree.read_range(district, first_line..state.next_line, &mut self.pool);
        self.counts.selected(1 + self.sold.len() as u32);
        self.sold.sort_unstable();
        self.sold.dedup();
        for &item in &self.sold {
            self.database.stock.access(warehouse * ITEMS + item, Touch::Read, &mut self.pool);
        }
        self.counts.selected(self.sold.len() as u32);
        true
    }

    #[inline]
    fn changed(&mut self, rows: u32) {
        self.counts.updated(rows);
        (0..rows).for_each(|_| self.log.change());
    }

    #[inline]
    fn inserted(&mut self, table: Table) {
        self.counts.inserted(1);
        self.log.row(table.row_bytes);
    }
}

/// Adds a row at the end of a heap.
#[inline]
fn append(heap: &mut Heap, space: &mut Space, pool: &mut Pool) {
    let (page, is_new) = heap.append(space);
    pool.touch(page, if is_new { Touch::Create } else { Touch::Change });
}

/// Accesses the pages with the lines of an order.
fn touch_rows(heap: &Heap, order: &Order, how: Touch, pool: &mut Pool) {
    let mut last = NONE;
    for row in order.first_row..order.first_row + order.lines as u32 {
        let page = heap.page(row);
        if page != last {
            pool.touch(page, how);
        }
        last = page;
    }
}
