//! SPS: swaps two random elements of an array in a transaction (Coburn et al., NV-heaps, ASPLOS 2011).

use super::{Driver, Part, Result, Several, scramble};
use nvlab_units::Rng;

/// One cache line.
pub const ELEMENT_BYTES: usize = 64;

/// An element: it says its id in its first word.
pub type Element = [u64; ELEMENT_BYTES / 8];

/// What element `id` holds: a torn swap is noticed.
fn element(id: u64) -> Element {
    std::array::from_fn(|word| if word == 0 { id } else { scramble(id ^ (word as u64) << 56) })
}

/// An array whose elements are swapped by several threads.
pub trait Swaps: Sync {
    /// Fills an empty one: of `count` elements, number `index` becomes `element(index)`.
    fn load(&self, count: u64, element: fn(u64) -> Element) -> Result<()>;
    /// Swaps the contents of two different elements.
    fn swap(&self, first: u64, second: u64) -> Result<()>;
    /// [`Driver::together`].
    fn together(&self, operations: Several<'_>) -> Result<()> {
        operations()
    }
    /// Passes on every element, in any order, as (index, contents).
    fn each(&self, each: &mut dyn FnMut(u64, &Element) -> Result<()>) -> Result<()>;
    /// Closes the store; an error if it cannot be written.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Swaps, with the order of elements that stores must hold.
#[derive(Debug)]
pub struct SwapsDriver {
    /// The id at each index, as after the parts that were replayed; if two threads swapped, only the set of ids is known.
    ids: Vec<u32>,
    is_order_known: bool,
}

impl SwapsDriver {
    /// For an array of `count` elements, fewer than 2^32.
    pub fn new(count: u64) -> SwapsDriver {
        SwapsDriver { ids: (0..count as u32).collect(), is_order_known: true }
    }
}

/// Random numbers, and how many elements there are.
#[derive(Debug)]
pub struct Worker(Rng, u64);

impl Driver for SwapsDriver {
    type Store = dyn Swaps;
    type Worker = Worker;
    type Operation = (u64, u64);

    fn load(&self, store: &dyn Swaps) -> Result<()> {
        store.load(self.ids.len() as u64, element)
    }

    fn worker(&self, part: Part) -> Worker {
        Worker(part.rng(), self.ids.len() as u64)
    }

    fn draw(Worker(rng, count): &mut Worker) -> (u64, u64) {
        let first = rng.below(*count);
        (first, (first + 1 + rng.below(*count - 1)) % *count)
    }

    fn apply(store: &dyn Swaps, _: &mut Worker, &(first, second): &(u64, u64)) -> Result<()> {
        store.swap(first, second)
    }

    fn together(store: &dyn Swaps, operations: Several<'_>) -> Result<()> {
        store.together(operations)
    }

    fn replay(&mut self, part: Part, count: u64, _: &Worker) -> Result<()> {
        let mut worker = self.worker(part);
        for _ in 0..count {
            let (first, second) = Self::draw(&mut worker);
            self.ids.swap(first as usize, second as usize);
        }
        self.is_order_known &= part.threads == 1;
        Ok(())
    }

    fn verify(&mut self, store: &dyn Swaps) -> Result<()> {
        let count = self.ids.len() as u64;
        let (mut found, mut is_there) = (vec![u32::MAX; self.ids.len()], vec![false; self.ids.len()]);
        store.each(&mut |index, contents| {
            let id = contents[0];
            if id >= count || index >= count || *contents != element(id) {
                return Err(format!("element {index} is torn: it starts with {id}").into());
            }
            (found[index as usize], is_there[id as usize]) = (id as u32, true);
            Ok(())
        })?;
        if let Some(id) = is_there.iter().position(|there| !there) {
            return Err(format!("the element that was number {id} is missing").into());
        }
        let different = (0..found.len()).find(|&index| found[index] != self.ids[index]);
        if let Some(index) = different.filter(|_| self.is_order_known) {
            let (found, wanted) = (found[index], self.ids[index]);
            return Err(format!("element {index} is {found} instead of {wanted}").into());
        }
        // From here on what was found is the model: two threads' order is the store's matter.
        (self.ids, self.is_order_known) = (found, true);
        Ok(())
    }

    fn close(store: Box<dyn Swaps>) -> Result<()> {
        store.close()
    }
}
