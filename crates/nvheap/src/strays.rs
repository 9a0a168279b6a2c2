//! Pointers that outlived their transaction: kept where the compiler does not see it (in a variable of the thread), or forgotten.
//!
//! Nobody can tell one of these from the other, and both are rare, so the places they lead to are remembered as long as the
//! process runs. A pointer to one of these places is examined before it is followed; while there are none, that costs a load.

use std::any::TypeId;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

static ANY: AtomicBool = AtomicBool::new(false);
/// The brand of the heap and the offset in it.
static PLACES: Mutex<Option<HashSet<(TypeId, u64)>>> = Mutex::new(None);

/// Whether there are any, of any brand.
#[inline(always)]
pub(crate) fn any() -> bool {
    ANY.load(Ordering::Relaxed)
}

#[cold]
pub(crate) fn add(brand: TypeId, at: u64) {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert((brand, at));
    ANY.store(true, Ordering::Relaxed);
}

pub(crate) fn has(brand: TypeId, at: u64) -> bool {
    let places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    places.as_ref().is_some_and(|places| places.contains(&(brand, at)))
}
