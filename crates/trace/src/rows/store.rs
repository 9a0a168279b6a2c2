//! The rows of a trace that is being read, column by column. The rows added last are in arrays of a fixed length first: to add
//! one there, one length is checked and changed, not six. [`Store::settle`] appends them to the columns.

use nvlab_os::in_huge_pages;

/// Rows added last: few enough to stay in a core's fastest cache.
const RECENT_ROWS: usize = 512;
/// More are not allocated before they are there, whatever the length of the file promises.
const EXPECTED_ROWS_MAX: usize = 64 << 20;

#[derive(Default)]
pub(crate) struct Store {
    pub ticks: Vec<u64>,
    pub offset: Vec<u64>,
    pub bytes: Vec<u32>,
    pub op: Vec<u8>,
    pub volume: Vec<u16>,
    /// Response times, in ticks, of the first rows: up to the first row without one.
    pub response: Vec<u64>,
    recent: Box<Recent>,
}

struct Recent {
    count: usize,
    /// How many of them, from the first on, have a response time.
    answered: usize,
    ticks: [u64; RECENT_ROWS],
    offset: [u64; RECENT_ROWS],
    response: [u64; RECENT_ROWS],
    bytes: [u32; RECENT_ROWS],
    volume: [u16; RECENT_ROWS],
    op: [u8; RECENT_ROWS],
}

impl Default for Recent {
    fn default() -> Recent {
        Recent {
            count: 0,
            answered: 0,
            ticks: [0; RECENT_ROWS],
            offset: [0; RECENT_ROWS],
            response: [0; RECENT_ROWS],
            bytes: [0; RECENT_ROWS],
            volume: [0; RECENT_ROWS],
            op: [0; RECENT_ROWS],
        }
    }
}

impl Store {
    #[inline(always)]
    pub fn put(&mut self, ticks: u64, offset: u64, bytes: u32, op: u8, volume: u16) {
        if self.recent.count >= RECENT_ROWS {
            self.settle();
        }
        let recent = &mut *self.recent;
        // The remainder tells the compiler that there is room.
        let row = recent.count % RECENT_ROWS;
        recent.ticks[row] = ticks;
        recent.offset[row] = offset;
        recent.bytes[row] = bytes;
        recent.op[row] = op;
        recent.volume[row] = volume;
        recent.count = row + 1;
    }

    /// Sets bits of the operation of the row added last.
    pub fn mark(&mut self, bits: u8) {
        if let Some(last) = self.recent.count.checked_sub(1) {
            self.recent.op[last] |= bits;
        }
    }

    /// Sets the response time of the row added last, unless it has one, or one before it has none.
    #[inline(always)]
    pub fn answered(&mut self, ticks: u64) {
        let recent = &mut *self.recent;
        if recent.answered + 1 == recent.count {
            recent.response[recent.answered % RECENT_ROWS] = ticks;
            recent.answered = recent.count;
        }
    }

    /// Rows, settled or not.
    pub fn len(&self) -> usize {
        self.ticks.len() + self.recent.count
    }

    /// Appends the rows added last to the columns.
    #[cold]
    #[inline(never)]
    pub fn settle(&mut self) {
        let recent = &mut *self.recent;
        if self.response.len() == self.ticks.len() {
            self.response.extend_from_slice(&recent.response[..recent.answered]);
        }
        self.ticks.extend_from_slice(&recent.ticks[..recent.count]);
        self.offset.extend_from_slice(&recent.offset[..recent.count]);
        self.bytes.extend_from_slice(&recent.bytes[..recent.count]);
        self.op.extend_from_slice(&recent.op[..recent.count]);
        self.volume.extend_from_slice(&recent.volume[..recent.count]);
        (recent.count, recent.answered) = (0, 0);
    }

    /// Appends the rows of another one, both settled; `codes` are the numbers of its volumes here.
    pub fn append(&mut self, other: &Store, codes: &[u16]) {
        if self.response.len() == self.ticks.len() {
            self.response.extend_from_slice(&other.response);
        }
        self.ticks.extend_from_slice(&other.ticks);
        self.offset.extend_from_slice(&other.offset);
        self.bytes.extend_from_slice(&other.bytes);
        self.op.extend_from_slice(&other.op);
        self.volume.extend(other.volume.iter().map(|&volume| codes[volume as usize]));
    }

    /// Gets room for `rows` in all, if there is memory for them: growing step by step, columns are copied or moved again and again.
    pub fn expect(&mut self, rows: usize) {
        let rows = rows.min(EXPECTED_ROWS_MAX);
        fn grow<T>(column: &mut Vec<T>, rows: usize) {
            // If there is too little, growing step by step may still do.
            let _ = column.try_reserve_exact(rows.saturating_sub(column.len()));
            in_huge_pages(column.spare_capacity_mut());
        }
        if self.response.len() == self.ticks.len() {
            grow(&mut self.response, rows);
        }
        grow(&mut self.ticks, rows);
        grow(&mut self.offset, rows);
        grow(&mut self.bytes, rows);
        grow(&mut self.op, rows);
        grow(&mut self.volume, rows);
    }

    pub fn clear(&mut self) {
        for column in [&mut self.ticks, &mut self.offset, &mut self.response] {
            column.clear();
        }
        self.bytes.clear();
        self.op.clear();
        self.volume.clear();
        (self.recent.count, self.recent.answered) = (0, 0);
    }

    /// Sorts by time. Stable: simultaneous requests stay in the order of the file.
    pub fn sort(&mut self) {
        let mut order: Vec<u32> = (0..self.ticks.len() as u32).collect();
        order.sort_by_key(|&row| self.ticks[row as usize]);
        fn permute<T: Copy>(column: &mut Vec<T>, order: &[u32]) {
            *column = order.iter().map(|&row| column[row as usize]).collect();
        }
        permute(&mut self.ticks, &order);
        permute(&mut self.offset, &order);
        permute(&mut self.bytes, &order);
        permute(&mut self.op, &order);
        permute(&mut self.volume, &order);
        if self.response.len() == order.len() {
            permute(&mut self.response, &order);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Like plain columns: all rows, their marks, and response times up to the first row without one.
        #[test]
        fn rows_are_kept_in_order(
            rows in 0..2000u64,
            unanswered in proptest::option::of(0..2000u64),
            settled in proptest::collection::vec(0..2000u64, 0..4),
        ) {
            let (mut store, mut other) = (Store::default(), Store::default());
            store.expect(rows as usize / 2);
            for row in 0..rows {
                store.put(row, row * 3, row as u32, 1, (row % 2) as u16);
                if row % 5 == 0 {
                    store.mark(4);
                }
                if Some(row) != unanswered {
                    store.answered(row + 7);
                }
                if settled.contains(&row) {
                    store.settle();
                    other.append(&store, &[5, 6]);
                    store.clear();
                }
                prop_assert_eq!((store.len() + other.len()) as u64, row + 1);
            }
            store.settle();
            other.append(&store, &[5, 6]);
            prop_assert!(other.ticks.iter().copied().eq(0..rows));
            prop_assert!(other.offset.iter().copied().eq((0..rows).map(|row| row * 3)));
            prop_assert!(other.bytes.iter().copied().eq(0..rows as u32));
            let op = |row| 1 + 4 * u8::from(row % 5 == 0);
            prop_assert!(other.op.iter().copied().eq((0..rows).map(op)));
            prop_assert!(other.volume.iter().copied().eq((0..rows).map(|row| 5 + (row % 2) as u16)));
            let known = unanswered.map_or(rows, |row| row.min(rows));
            prop_assert!(other.response.iter().copied().eq((0..known).map(|row| row + 7)));
        }
    }
}
