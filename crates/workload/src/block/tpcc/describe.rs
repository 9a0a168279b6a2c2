//! Describes the size of the database and its growth in words.

use super::layout::{fanout, rows_per_page};
use super::standard::*;
use super::{Mix, Tpcc, Transaction};
use nvlab_units::quantity::display_bytes;
use std::fmt::Write;

impl Tpcc {
    /// The database in two lines, then a line per table and index.
    pub(super) fn description(&self) -> String {
        let page = self.config.page_bytes as u64;
        let bytes = |pages: u32| display_bytes(pages as u64 * page);
        let database = &self.engine.database;
        let mix = match self.config.mix {
            Mix::NewOrder => "new-order",
            Mix::Full => "full mix",
        };
        let mut text = format!(
            "TPC-C {mix}: {} warehouse{} in {} of {}, pool {}, pages of {}\n",
            self.config.warehouses,
            if self.config.warehouses == 1 { "" } else { "s" },
            bytes(database.loaded_pages),
            bytes(self.pages),
            display_bytes(self.config.pool_bytes),
            display_bytes(page),
        );
        let (added, room) = (self.added_bytes(), (self.pages - database.loaded_pages) as u64 * page);
        let transactions = room as f64 / added;
        let _ = writeln!(text, "a transaction adds {added:.0} B on average: room for {transactions:.0}");
        let tables = [
            (WAREHOUSE, &database.warehouse),
            (DISTRICT, &database.district),
            (CUSTOMER, &database.customer),
            (ITEM, &database.item),
            (STOCK, &database.stock),
        ];
        for (table, is) in tables {
            line(&mut text, table.name, is.rows.rows(), table.row_bytes, &bytes(is.rows.pages()));
            index(&mut text, "primary key", is.tree.levels(), &bytes(is.tree.pages()));
            if table == CUSTOMER {
                let tree = &database.customer_name;
                index(&mut text, "last name", tree.levels(), &bytes(tree.pages()));
            }
            text.push('\n');
        }
        line(
            &mut text,
            HISTORY.name,
            database.history.rows(),
            HISTORY.row_bytes,
            &bytes(database.history.pages()),
        );
        text.push('\n');
        line(&mut text, ORDER.name, database.order.rows(), ORDER.row_bytes, &bytes(database.order.pages()));
        index(&mut text, "primary key", database.order_tree.levels(), &bytes(database.order_tree.pages()));
        let tree = &database.customer_order;
        index(&mut text, "customer", tree.levels(), &bytes(tree.pages()));
        text.push('\n');
        line(
            &mut text,
            ORDER_LINE.name,
            database.line.rows(),
            ORDER_LINE.row_bytes,
            &bytes(database.line.pages()),
        );
        index(&mut text, "primary key", database.line_tree.levels(), &bytes(database.line_tree.pages()));
        text.push('\n');
        let undelivered = self.engine.orders.districts.iter().map(|district| district.undelivered).sum();
        let tree = &database.new_order;
        line(&mut text, NEW_ORDER.name, undelivered, NEW_ORDER.row_bytes, &bytes(tree.pages()));
        let _ = writeln!(text, ", in a tree of depth {}", tree.levels());
        text
    }

    /// Mean bytes that a transaction adds, with new-orders of 10 lines and leaves of orders by customer at 69 %.
    pub(super) fn added_bytes(&self) -> f64 {
        let page = self.config.page_bytes;
        let row = |table: Table| 1.0 / rows_per_page(page, table.row_bytes) as f64;
        let entry = |key_bytes: u32| 1.0 / fanout(page, key_bytes) as f64;
        let lines = (LINES.start() + LINES.end()) as f64 / 2.0;
        let new_order = row(ORDER)
            + entry(ORDER.key_bytes)
            + entry(CUSTOMER_ORDER_KEY_BYTES) / std::f64::consts::LN_2
            + row(NEW_ORDER)
            + lines * (row(ORDER_LINE) + entry(ORDER_LINE.key_bytes));
        let pages = match self.config.mix {
            Mix::NewOrder => new_order,
            Mix::Full => {
                let percent = |kind: Transaction| kind.percent() as f64 / 100.0;
                // Ten deliveries delete rows of new-order nearly as fast as they are added.
                percent(Transaction::NewOrder) * (new_order - row(NEW_ORDER))
                    + percent(Transaction::Payment) * row(HISTORY)
            }
        };
        pages * page as f64
    }
}

fn line(text: &mut String, name: &str, rows: u32, row_bytes: u32, size: &str) {
    let _ = write!(text, "{name}: {rows} rows of {row_bytes} B, {size}");
}

fn index(text: &mut String, name: &str, levels: u32, size: &str) {
    let _ = write!(text, "; index by {name} of depth {levels}, {size}");
}
