//! Work without the interpreter: other Python threads go on, progress is reported now and then, and Ctrl-C ends it.

use crate::error::Trouble;
use nvlab_run::engine::{Done, Engine, Event, TaskError};
use nvlab_run::plan::Task;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often signals are looked at and progress is reported.
const TICK: Duration = Duration::from_millis(50);
/// How long work may take to end once it is stopped.
const GRACE: Duration = Duration::from_millis(100);

/// What work under way reports, and what ends it.
#[derive(Default)]
pub struct Watch {
    /// Ends the work once it is true.
    pub stop: Arc<AtomicBool>,
    asked: AtomicUsize,
    done: AtomicUsize,
    running: Mutex<BTreeMap<usize, Running>>,
}

/// Title, phase, and the share of it that is done.
type Running = (String, String, f64);

impl Watch {
    /// Runs tasks under their titles and returns the outcome of each.
    pub fn run<Made: From<Done> + Send + Sync>(
        &self,
        engine: &Engine,
        tasks: &[&Task],
        titles: &[String],
        force: bool,
    ) -> Result<Vec<Result<Made, TaskError>>, Trouble> {
        // A search runs tasks several times.
        self.asked.fetch_add(tasks.len(), Ordering::Relaxed);
        let observer = |number: usize, event: Event<'_>| {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                Event::Began => {
                    running.insert(number, (titles[number].clone(), String::new(), 0.0));
                }
                Event::At(phase, share) => {
                    if let Some((_, shown, done)) = running.get_mut(&number) {
                        if shown != phase {
                            *shown = phase.to_string();
                        }
                        *done = share;
                    }
                }
                Event::Ended => {
                    running.remove(&number);
                    self.done.fetch_add(1, Ordering::Relaxed);
                }
                Event::Found(_) => _ = self.done.fetch_add(1, Ordering::Relaxed),
                Event::Same | Event::SetAside(_) | Event::Kept(_) => {}
            }
        };
        Ok(engine.run(tasks, force, &observer)?)
    }

    /// Follows one piece of work under its title; what is returned takes its phases, and returns false once it is to end.
    pub fn one(&self, title: &str) -> impl FnMut(&str, f64) -> bool + use<'_> {
        self.asked.store(1, Ordering::Relaxed);
        let title = title.to_string();
        move |phase, share| {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.insert(0, (title.clone(), phase.to_string(), share));
            !self.stop.load(Ordering::Relaxed)
        }
    }

    /// Calls `report(done, asked, running)`.
    fn tell(&self, report: &Bound<'_, PyAny>) -> PyResult<()> {
        let running: Vec<Running> = {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.values().cloned().collect()
        };
        let [done, asked] = [&self.done, &self.asked].map(|count| count.load(Ordering::Relaxed));
        report.call1((done, asked, running)).map(drop)
    }

    /// Does some work on another thread while this one lets go of the interpreter. An exception, of a signal or of `report`,
    /// stops it, and is raised when it has ended; what does not end within [`GRACE`] (a large device that is being made) is
    /// left to end by itself.
    pub fn over<T: Send + 'static>(
        py: Python<'_>,
        report: Option<Py<PyAny>>,
        work: impl FnOnce(&Watch) -> Result<T, Trouble> + Send + 'static,
    ) -> PyResult<T> {
        let watch = Arc::new(Watch::default());
        let (sender, receiver) = channel();
        let own = watch.clone();
        let worker = thread::spawn(move || drop(sender.send(work(&own))));
        // A receiver is used by one thread only, as the closure below is.
        let receiver = Mutex::new(receiver);
        let ended = py.detach(|| {
            let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                match receiver.recv_timeout(TICK) {
                    Err(RecvTimeoutError::Timeout) => {}
                    ended => return Ok(ended.ok()),
                }
                let looked = Python::attach(|py| {
                    py.check_signals()?;
                    report.as_ref().map_or(Ok(()), |report| watch.tell(report.bind(py)))
                });
                if let Err(raised) = looked {
                    watch.stop.store(true, Ordering::Relaxed);
                    let _ = receiver.recv_timeout(GRACE);
                    return Err(raised);
                }
            }
        });
        match ended? {
            Some(outcome) => outcome.map_err(|trouble| trouble.exception(py)),
            None => match worker.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => unreachable!("a thread that does not panic sends its outcome"),
            },
        }
    }
}
