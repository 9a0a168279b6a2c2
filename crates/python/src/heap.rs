//! Persistent dicts, lists and values: a schema of `nvlab-nvheap` that any Python program can use.
//!
//! A process may have as many heaps open as there are brands here. Operations are data ([`Op`]); each is a transaction, or part
//! of one that was begun: that one lives on a thread of its own, which owns what the heap lends, and ends by a commit or an
//! abort. Python sees to it that one transaction at a time changes a heap.

mod apply;
mod schema;

use crate::error::Trouble;
use apply::{Answer, Objects, Op, Store};
use nvlab_nvheap::{Error, Heap as Persistent, Options};
use pyo3::prelude::*;
use schema::{Brand0, Brand1, Brand2, Brand3, Dict, Slot};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// What a running transaction is asked.
enum Asked {
    /// Do this.
    Do(Op, Sender<Result<Answer, Error>>),
    /// End, keeping what was done or not.
    End(bool),
}

/// A transaction under way.
struct Running {
    asks: Sender<Asked>,
    thread: JoinHandle<Result<(), Error>>,
}

/// A heap of whatever brand.
trait AnyHeap: Send + Sync {
    /// Does one thing, durably.
    fn apply(&self, op: &Op) -> Result<Answer, Error>;
    /// Does what is asked until the transaction ends.
    fn transact(&self, asked: Receiver<Asked>) -> Result<(), Error>;
    /// Lets go of an object.
    fn release(&self, id: u64);
    /// Bytes of the file, how often it was opened, records replayed this time.
    fn stat(&self) -> (u64, u64, u64);
}

impl<H: Slot> AnyHeap for Store<H> {
    fn apply(&self, op: &Op) -> Result<Answer, Error> {
        self.heap.transaction(|tx| self.run(tx, op))
    }

    fn transact(&self, asked: Receiver<Asked>) -> Result<(), Error> {
        let mut began = false;
        self.heap.transaction(move |tx| {
            if std::mem::replace(&mut began, true) {
                return Err(Error::abort("another transaction changed the same objects"));
            }
            let known = self.known();
            let mut failed = None;
            while let Ok(asked) = asked.recv() {
                match (asked, &failed) {
                    (Asked::Do(_, answer), Some(error)) => drop(answer.send(Err(Error::clone(error)))),
                    (Asked::Do(op, answer), None) => {
                        let done = self.run(tx, &op);
                        failed = done.as_ref().err().cloned();
                        drop(answer.send(done));
                    }
                    (Asked::End(true), None) => return Ok(()),
                    (Asked::End(true), Some(error)) => return Err(Error::clone(error)),
                    (Asked::End(false), _) => break,
                }
            }
            // Objects that it made are not there any more.
            self.forget_since(known);
            Err(Error::abort("undone"))
        })
    }

    fn release(&self, id: u64) {
        Store::release(self, id);
    }

    fn stat(&self) -> (u64, u64, u64) {
        let stat = self.heap.stat();
        (stat.bytes, stat.opens, stat.replayed)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn opened<H: Slot>(path: &Path, bytes_max: u64) -> Result<Arc<dyn AnyHeap>, Error> {
    let options = Options { bytes_max, ..Options::default() };
    let heap = Persistent::<H>::open_or_create(path, options, |tx| Dict::<H>::new(tx))?;
    let root = heap.root()?;
    Ok(Arc::new(Store { heap, objects: Mutex::new(Objects::new(root)) }))
}

/// Opens it with the next brand in turn: a transaction may lie within one of a heap of another brand.
fn with_next_brand(path: &Path, bytes_max: u64) -> Result<Arc<dyn AnyHeap>, Error> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let ways = [opened::<Brand0>, opened::<Brand1>, opened::<Brand2>, opened::<Brand3>];
    ways[NEXT.fetch_add(1, Ordering::Relaxed) % ways.len()](path, bytes_max)
}

/// An open heap.
#[pyclass(frozen, module = "nvlab._nvlab")]
struct Heap {
    /// `None` once it is closed.
    heap: Mutex<Option<Arc<dyn AnyHeap>>>,
    running: Mutex<Option<Running>>,
    /// Objects that Python has let go of; the heap does so between transactions.
    released: Mutex<Vec<u64>>,
}

fn closed() -> Error {
    Error::Invalid("the heap is closed".into())
}

impl Heap {
    fn open(&self) -> Result<Arc<dyn AnyHeap>, Error> {
        locked(&self.heap).clone().ok_or_else(closed)
    }

    fn let_go(&self, heap: &dyn AnyHeap) {
        let released = std::mem::take(&mut *locked(&self.released));
        released.into_iter().for_each(|id| heap.release(id));
    }

    /// Ends the transaction under way, if there is one.
    fn end(&self, keep: bool) -> Result<(), Error> {
        let Some(Running { asks, thread }) = locked(&self.running).take() else { return Ok(()) };
        let _ = asks.send(Asked::End(keep));
        match thread.join() {
            Ok(Err(Error::Aborted(_))) if !keep => Ok(()),
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

#[pymethods]
impl Heap {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, bytes_max: u64) -> Result<Heap, Trouble> {
        let heap = py.detach(|| with_next_brand(&path, bytes_max))?;
        Ok(Heap { heap: Mutex::new(Some(heap)), running: Mutex::default(), released: Mutex::default() })
    }

    /// Does one thing: part of the transaction under way with `inside`, else one of its own.
    fn apply(&self, py: Python<'_>, op: Op, inside: bool) -> Result<Answer, Trouble> {
        let heap = self.open()?;
        let done = py.detach(|| {
            let running = locked(&self.running);
            let Some(Running { asks, .. }) = running.as_ref().filter(|_| inside) else {
                drop(running);
                self.let_go(heap.as_ref());
                return heap.apply(&op);
            };
            let (sender, receiver) = channel();
            let ended = || Error::Invalid("the transaction has ended".into());
            asks.send(Asked::Do(op, sender)).map_err(|_| ended())?;
            receiver.recv().unwrap_or_else(|_| Err(ended()))
        });
        Ok(done?)
    }

    fn begin(&self) -> Result<(), Trouble> {
        let heap = self.open()?;
        let mut running = locked(&self.running);
        if running.is_some() {
            return Err(Error::Invalid("a transaction is under way".into()).into());
        }
        self.let_go(heap.as_ref());
        let (asks, asked) = channel();
        *running = Some(Running { asks, thread: thread::spawn(move || heap.transact(asked)) });
        Ok(())
    }

    fn commit(&self, py: Python<'_>) -> Result<(), Trouble> {
        Ok(py.detach(|| self.end(true))?)
    }

    fn abort(&self, py: Python<'_>) -> Result<(), Trouble> {
        Ok(py.detach(|| self.end(false))?)
    }

    fn release(&self, id: u64) {
        locked(&self.released).push(id);
    }

    fn stat(&self) -> Result<(u64, u64, u64), Trouble> {
        Ok(self.open()?.stat())
    }

    fn close(&self, py: Python<'_>) -> Result<(), Trouble> {
        let ended = py.detach(|| {
            let ended = self.end(false);
            drop(locked(&self.heap).take());
            ended
        });
        Ok(ended?)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Heap>()
}
