//! SPS: swaps two random elements of an array in a transaction (Coburn et al., NV-heaps, ASPLOS 2011).

use super::{Driver, Part, scramble};
use crate::Result;
use nvlab_units::Rng;

pub const ELEMENTS: u64 = 1_000_000;
pub const ELEMENT_BYTES: usize = 64;

pub type Element = [u64; ELEMENT_BYTES / 8];

/// What element `id` holds: it says its id, and a torn swap is noticed.
fn element(id: u64) -> Element {
    std::array::from_fn(|word| if word == 0 { id } else { scramble(id ^ (word as u64) << 56) })
}

/// An array of [`ELEMENTS`] elements.
pub trait Swaps: Sync {
    /// Fills it: element `index` becomes `element(index)`.
    fn load(&self, element: fn(u64) -> Element) -> Result<()>;
    /// Swaps the contents of two different elements.
    fn swap(&self, first: u64, second: u64) -> Result<()>;
    /// Passes on every element, in any order, as (index, contents).
    fn each(&self, each: &mut dyn FnMut(u64, &Element) -> Result<()>) -> Result<()>;
    fn close(self: Box<Self>) -> Result<()>;
}

pub struct SwapsDriver {
    /// The id at each index, as after the parts that were replayed; if two threads swapped, only the set of ids is known.
    ids: Vec<u32>,
    is_order_known: bool,
}

impl SwapsDriver {
    pub fn new() -> SwapsDriver {
        SwapsDriver { ids: (0..ELEMENTS as u32).collect(), is_order_known: true }
    }

    pub fn load(store: &dyn Swaps) -> Result<()> {
        store.load(element)
    }
}

fn next(rng: &mut Rng) -> (u64, u64) {
    let first = rng.below(ELEMENTS);
    (first, (first + 1 + rng.below(ELEMENTS - 1)) % ELEMENTS)
}

impl Driver for SwapsDriver {
    type Store = dyn Swaps;
    type Worker = Rng;

    fn worker(&self, part: Part) -> Rng {
        part.rng()
    }

    fn operation(store: &dyn Swaps, rng: &mut Rng) -> Result<()> {
        let (first, second) = next(rng);
        store.swap(first, second)
    }

    fn replay(&mut self, part: Part, count: u64, _: &Rng) -> Result<()> {
        let mut rng = part.rng();
        for _ in 0..count {
            let (first, second) = next(&mut rng);
            self.ids.swap(first as usize, second as usize);
        }
        self.is_order_known &= part.threads == 1;
        Ok(())
    }

    fn verify(&mut self, store: &dyn Swaps) -> Result<()> {
        let (mut found, mut is_there) = (vec![u32::MAX; self.ids.len()], vec![false; self.ids.len()]);
        store.each(&mut |index, contents| {
            let id = contents[0];
            if id >= ELEMENTS || *contents != element(id) {
                return Err(format!("element {index} is torn: it begins with {id}").into());
            }
            (found[index as usize], is_there[id as usize]) = (id as u32, true);
            Ok(())
        })?;
        if let Some(id) = is_there.iter().position(|there| !there) {
            return Err(format!("the element that was the {id}th is nowhere").into());
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
