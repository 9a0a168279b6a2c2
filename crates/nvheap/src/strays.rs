//! Pointers that outlived their transaction: kept where the compiler cannot see it (in a thread-local variable), or
//! forgotten.
//!
//! The two cannot be distinguished, and both are rare, so the places they point to are remembered as long as the
//! process runs. A pointer to one of these places is examined before it is followed; while there are none, that costs
//! a load.

use std::any::TypeId;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

static ANY: AtomicBool = AtomicBool::new(false);
/// The brand of the heap and the offset in it.
static PLACES: Mutex<Option<HashSet<(TypeId, u64)>>> = Mutex::new(None);

/// True if there are any, of any brand.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Brand, Error, Heap, Options, PVec, Persist, Persistence, Result, Strong};
    use shuttle::scheduler::RandomScheduler;
    use shuttle::{Config, Runner, thread};
    use std::path::Path;

    struct Kept;
    impl Brand for Kept {
        type Root = Root;
    }

    #[derive(Persist, Default)]
    #[persist(heap = Kept)]
    #[repr(C)]
    struct Root {
        vec: PVec<Option<Strong<u64, Kept>>, Kept>,
    }

    /// Runs a program in so many orders of its threads, after which no place is remembered.
    fn none(orders: usize, program: impl Fn(&Heap<Kept>) + Send + Sync + 'static) {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut config = Config::new();
        config.stack_size = 256 << 10;
        Runner::new(RandomScheduler::new_from_seed(5, orders), config).run(move || {
            let (persistence, identity) = (Persistence::Process, Some(7));
            let options = Options {
                persistence,
                bytes_max: 1 << 20,
                logs: 3,
                log_bytes: 8 << 10,
                checksums: false,
                identity,
            };
            let file = nvlab_os::file::anonymous(c"kept", false).unwrap();
            let heap =
                Heap::<Kept>::create_in(file, Path::new("kept"), options, |_| Ok(Root::default())).unwrap();
            program(&heap);
            let places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
            let found = places.iter().flatten().filter(|place| place.0 == TypeId::of::<Kept>()).count();
            assert_eq!(found, 0, "places are remembered");
        });
    }

    #[test]
    fn elements_before_one_that_cannot_be_made_are_dropped() {
        none(1, |heap| {
            for last in [10, 70, 128, 140] {
                let made = heap.transaction(|tx| {
                    PVec::from_fn(tx, 4000, |i| match i < last {
                        true => Strong::new(tx, i as u64).map(Some),
                        false => Err(Error::abort("enough")),
                    })
                    .map(drop)
                });
                assert!(matches!(made, Err(Error::Aborted(_))), "{made:?}");
            }
        });
    }

    #[test]
    fn a_block_whose_elements_could_not_move_is_no_stray() {
        none(300, |heap| {
            let root = heap.root().unwrap();
            let push = |count| {
                heap.transaction(|tx| {
                    let vec = &mut root.write(tx)?.vec;
                    (0..count).try_for_each(|_| vec.push(tx, None))
                })
            };
            push(4).unwrap();
            thread::scope(|scope| {
                scope.spawn(|| {
                    let change = |tx: &crate::Tx<'_, Kept>| -> Result<()> {
                        let _write = root.read(tx)?.vec.write(tx, 0)?;
                        thread::yield_now();
                        Ok(())
                    };
                    heap.transaction(change).unwrap();
                });
                scope.spawn(|| push(1).unwrap());
            });
        });
    }
}
