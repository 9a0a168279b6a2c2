//! Mutexes that ignore poisoning: a panic leaves nothing half changed.

use crate::sync::{Mutex, MutexGuard};
use std::sync::PoisonError;

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
