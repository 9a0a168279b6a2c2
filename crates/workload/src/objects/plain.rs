//! Stores of plain memory: the standard library's collections, each behind one lock. Nothing is undone and nothing survives
//! the program; they show what there is to lose.

use super::{Element, Graph, Map, Node, Result, Search, Swaps};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An empty [`Vec`] of elements behind a lock.
pub fn swaps() -> Box<dyn Swaps> {
    Box::new(Mutex::new(Vec::<Element>::new()))
}

/// An empty [`BTreeMap`] behind a lock.
pub fn sorted() -> Box<dyn Map> {
    Box::new(Mutex::new(BTreeMap::<u64, u64>::new()))
}

/// An empty [`HashMap`] behind a lock.
pub fn hashed() -> Box<dyn Map> {
    Box::new(Mutex::new(HashMap::<u64, u64>::new()))
}

/// A graph without nodes, behind a lock for many readers.
pub fn graph() -> Box<dyn Graph> {
    Box::new(RwLock::new(Vec::<Node>::new()))
}

impl Swaps for Mutex<Vec<Element>> {
    fn load(&self, count: u64, element: fn(u64) -> Element) -> Result<()> {
        *lock(self) = (0..count).map(element).collect();
        Ok(())
    }

    fn swap(&self, first: u64, second: u64) -> Result<()> {
        lock(self).swap(first as usize, second as usize);
        Ok(())
    }

    fn each(&self, each: &mut dyn FnMut(u64, &Element) -> Result<()>) -> Result<()> {
        (0..).zip(&*lock(self)).try_for_each(|(index, element)| each(index, element))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

macro_rules! map {
    ($map:ty) => {
        impl Map for Mutex<$map> {
            fn load(&self, pairs: &mut dyn Iterator<Item = (u64, u64)>) -> Result<()> {
                lock(self).extend(pairs);
                Ok(())
            }

            fn insert(&self, key: u64, value: u64) -> Result<()> {
                match lock(self).insert(key, value) {
                    None => Ok(()),
                    Some(_) => Err(format!("the key {key} exists already").into()),
                }
            }

            fn delete(&self, key: u64) -> Result<bool> {
                Ok(lock(self).remove(&key).is_some())
            }

            fn each(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
                lock(self).iter().try_for_each(|(&key, &value)| each(key, value))
            }

            fn close(self: Box<Self>) -> Result<()> {
                Ok(())
            }
        }
    };
}
map!(BTreeMap<u64, u64>);
map!(HashMap<u64, u64>);

impl Graph for RwLock<Vec<Node>> {
    fn load(&self, nodes: &[Node]) -> Result<()> {
        *self.write().unwrap_or_else(PoisonError::into_inner) = nodes.to_vec();
        Ok(())
    }

    fn toggle(&self, first: u32, second: u32) -> Result<()> {
        let mut nodes = self.write().unwrap_or_else(PoisonError::into_inner);
        nodes[first as usize].toggle(second);
        nodes[second as usize].toggle(first);
        Ok(())
    }

    fn search(&self, search: &mut Search) -> Result<bool> {
        let nodes = self.read().unwrap_or_else(PoisonError::into_inner);
        search.run(|number| Ok(nodes[number as usize]))
    }

    fn each(&self, each: &mut dyn FnMut(u32, &Node) -> Result<()>) -> Result<()> {
        let nodes = self.read().unwrap_or_else(PoisonError::into_inner);
        (0..).zip(&*nodes).try_for_each(|(number, node)| each(number, node))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
