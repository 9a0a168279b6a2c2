//! Devices that are held between batches of requests.

use crate::design::Design;
use crate::error::Trouble;
use crate::frame::Frame;
use crate::requests::{of_stream, table_of};
use crate::run::{Run, Settings};
use crate::watch::Watch;
use arrow_array::{ArrayRef, Float32Array, RecordBatch, UInt32Array};
use nvlab_run::engine::{Done, TaskError};
use nvlab_run::held::{HeldDevice, Opening};
use nvlab_run::plan::{self, Source, Until};
use nvlab_run::prepared::Shelf;
use nvlab_run::{Limit, Preparation, RunError};
use nvlab_trace::columns::{Columns, Origin};
use nvlab_trace::tables;
use nvlab_units::quantity;
use nvlab_workload::replay::{Replay, ReplaySpec};
use nvlab_workload::{Op, Request};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex};

/// What messages call requests that have no name.
const REQUESTS: &str = "requests";

/// A device; `None` once it is closed.
type Held = Arc<Mutex<Option<HeldDevice>>>;

/// A device between batches.
#[pyclass(frozen, module = "nvlab._nvlab")]
struct Device {
    held: Held,
}

impl From<RunError> for Trouble {
    fn from(error: RunError) -> Trouble {
        Trouble::Task(if error.is_stopped() { TaskError::Stopped } else { TaskError::Run(error) })
    }
}

impl Device {
    /// Does something with the device, without the interpreter.
    fn with<T: Send + 'static>(
        &self,
        py: Python<'_>,
        report: Option<Py<PyAny>>,
        act: impl FnOnce(&mut HeldDevice, &Watch) -> Result<T, Trouble> + Send + 'static,
    ) -> PyResult<T> {
        let held = self.held.clone();
        Watch::over(py, report, move |watch| {
            let broken = "an earlier call on this device failed inside nvlab: open another";
            let mut held = held.lock().map_err(|_| broken.to_string())?;
            act(held.as_mut().ok_or_else(|| "this device is closed".to_string())?, watch)
        })
    }
}

#[pymethods]
impl Device {
    /// Opens the device of a design in a state; `data`: its media keep what is written.
    #[new]
    fn new(
        py: Python<'_>,
        design: PyRef<'_, Design>,
        precondition: &str,
        seed: u64,
        data: bool,
        settings: PyRef<'_, Settings>,
        report: Option<Py<PyAny>>,
    ) -> PyResult<Device> {
        let preparation: Preparation = precondition.parse().map_err(Trouble::Input)?;
        let (named, shelf) = (design.named.clone(), settings.shelf());
        let opened = Watch::over(py, report, move |watch| {
            let opening = Opening { preparation, seed, keeps: data, shelf: shelf.as_ref() };
            let held = HeldDevice::open(&named, opening, &mut watch.one(&named.name))?;
            match shelf.as_ref().and_then(Shelf::trouble) {
                Some(trouble) => Err(trouble.into()),
                None => Ok(held),
            }
        });
        Ok(Device { held: Arc::new(Mutex::new(Some(opened?))) })
    }

    /// Serves a workload; returns its requests with their latencies, or none of them.
    fn run(
        &self,
        py: Python<'_>,
        workload: &str,
        until: Option<&str>,
        seed: u64,
        answers: bool,
        report: Option<Py<PyAny>>,
    ) -> PyResult<Frame> {
        let until = until.map(str::parse::<Until>).transpose().map_err(Trouble::Input)?;
        let workload = workload.to_string();
        self.with(py, report, move |held, watch| {
            let source = Source::read(&workload, None)?;
            let (mut requests, limit) = plan::batch(held.design(), &source, until, seed)?;
            let mut one = watch.one(held.name());
            let mut go_on = |progress: &_| one("running", limit.share_done(progress));
            Ok(frame(&held.serve(&mut *requests, &limit, answers, &mut go_on)?))
        })
    }

    /// Serves requests that are given column by column: codes of operations, offsets, bytes, times in ns; a closed loop of `depth`,
    /// or each at its time.
    #[expect(clippy::too_many_arguments, reason = "they are those of Device.submit")]
    fn submit(
        &self,
        py: Python<'_>,
        op: &[u8],
        offset: &Bound<'_, PyAny>,
        bytes: &Bound<'_, PyAny>,
        at_ns: Option<&Bound<'_, PyAny>>,
        depth: Option<u32>,
        report: Option<Py<PyAny>>,
    ) -> PyResult<Frame> {
        let known = |&code: &u8| {
            Op::from_code(code).ok_or_else(|| {
                Trouble::Input(format!("{code} is not an operation: 0 reads, 1 writes, 2 trims, 3 flushes"))
            })
        };
        let ops = op.iter().map(known).collect::<Result<Vec<Op>, Trouble>>()?;
        let offset = numbers(offset)?;
        let narrow = |bytes: u64| {
            u32::try_from(bytes).map_err(|_| PyOverflowError::new_err(format!("a request of {bytes} B")))
        };
        let bytes = numbers(bytes)?.into_iter().map(narrow).collect::<PyResult<Vec<u32>>>()?;
        let at_ps = at_ns.map(numbers).transpose()?;
        let late = |ns: u64| {
            ns.checked_mul(1000).ok_or_else(|| PyOverflowError::new_err(format!("a time of {ns} ns")))
        };
        let at_ps = at_ps.map(|at| at.into_iter().map(late).collect::<PyResult<Vec<u64>>>()).transpose()?;
        self.with(py, report, move |held, watch| {
            let origin = Origin { format: REQUESTS.into(), hash: 0 };
            let columns = Columns::of_lists(at_ps.as_deref(), &ops, &offset, &bytes, origin)?;
            replayed(held, watch, columns, depth)
        })
    }

    /// The same with a table that has the columns of a trace, as an Arrow IPC stream; without `depth` at its times.
    fn submit_table(
        &self,
        py: Python<'_>,
        ipc: Vec<u8>,
        depth: Option<u32>,
        report: Option<Py<PyAny>>,
    ) -> PyResult<Frame> {
        let (fields, batches) = of_stream(ipc)?;
        self.with(py, report, move |held, watch| {
            replayed(held, watch, tables::columns(&fields, batches)?, depth)
        })
    }

    /// Serves one request: writes `data`, or reads or trims `bytes`; returns its latency in ns, and what was read.
    fn one<'py>(
        &self,
        py: Python<'py>,
        op: u8,
        offset: u64,
        bytes: u32,
        data: Vec<u8>,
        fua: bool,
    ) -> PyResult<(f64, Bound<'py, PyBytes>)> {
        let op = Op::from_code(op).ok_or_else(|| Trouble::Input(format!("{op} is not an operation")))?;
        let (latency, into) = self.with(py, None, move |held, _| {
            let mut into = vec![0; if op == Op::Read && held.keeps() { bytes as usize } else { 0 }];
            let request = Request { op, offset, bytes, fua, ..Request::default() };
            let latency = held.one(request, &data, &mut into)?;
            Ok((latency, into))
        })?;
        Ok((latency.ps() as f64 / 1e3, PyBytes::new(py, &into)))
    }

    /// Lets time pass.
    fn idle(&self, py: Python<'_>, span: &str) -> PyResult<()> {
        let span = quantity::span(span).map_err(|error| Trouble::Input(error.to_string()))?;
        self.with(py, None, move |held, _| Ok(held.idle(span)?))
    }

    /// The power fails and comes back: seconds of the recovery, pages of NAND read.
    fn cut(&self, py: Python<'_>) -> PyResult<(f64, u64)> {
        let report = self.with(py, None, |held, _| Ok(held.cut()?))?;
        Ok((report.time.seconds(), report.nand_reads))
    }

    /// Seconds since it was opened, requests, bytes the host wrote, bytes programmed, erases.
    fn standing(&self, py: Python<'_>) -> PyResult<(f64, u64, u64, u64, u64)> {
        let now = self.with(py, None, |held, _| Ok(held.standing()?))?;
        Ok((now.now_s, now.requests, now.host_bytes, now.programmed_bytes, now.erases))
    }

    /// The erases of each block and the share of it that is live; `None` without flash.
    fn blocks(&self, py: Python<'_>) -> PyResult<Option<Frame>> {
        let Some(blocks) = self.with(py, None, |held, _| Ok(held.blocks()?))? else { return Ok(None) };
        let live = blocks.live.map(|live| live.into_iter().map(Some).collect::<Vec<_>>());
        let live = live.unwrap_or_else(|| vec![None; blocks.erases.len()]);
        let numbers: ArrayRef = Arc::new((0..blocks.erases.len() as u32).collect::<UInt32Array>());
        let erases: ArrayRef = Arc::new(UInt32Array::from(blocks.erases));
        let live: ArrayRef = Arc::new(Float32Array::from(live));
        let columns = [("block", numbers, false), ("erases", erases, false), ("live", live, true)];
        Ok(Some(Frame(RecordBatch::try_from_iter_with_nullable(columns).expect("a value for each block"))))
    }

    /// What it measured, as a run reports it.
    fn result(&self, py: Python<'_>) -> PyResult<Run> {
        let result = self.with(py, None, |held, _| Ok(held.result()?))?;
        Ok(Run::from(Done { result, dir: None, reused: false }))
    }

    /// Forgets the device.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let held = self.held.clone();
        Watch::over(py, None, move |_| {
            drop(held.lock().map(|mut held| held.take()));
            Ok(())
        })
    }
}

/// Serves the requests of a trace.
fn replayed(
    held: &mut HeldDevice,
    watch: &Watch,
    columns: Columns,
    depth: Option<u32>,
) -> Result<Frame, Trouble> {
    let spec = ReplaySpec { depth, ..ReplaySpec::new(REQUESTS) };
    let count = columns.len() as f64;
    let mut replay = Replay::new(columns, &spec, held.design().capacity_bytes(), 1)?;
    let mut one = watch.one(held.name());
    let mut go_on = |progress: &nvlab_run::Progress| one("running", progress.requests as f64 / count);
    Ok(frame(&held.serve(&mut replay, &Limit::NONE, true, &mut go_on)?))
}

fn frame(answers: &Columns) -> Frame {
    Frame(table_of(answers, 0..answers.len()))
}

/// Whole numbers: a buffer of them, as `array.array` and NumPy have it, or any sequence.
fn numbers(given: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    fn of<T: Element + TryInto<u64> + Copy>(given: &Bound<'_, PyAny>) -> Option<PyResult<Vec<u64>>> {
        let values = PyBuffer::<T>::get(given).ok()?.to_vec(given.py());
        let whole = |value: T| value.try_into().map_err(|_| PyOverflowError::new_err("a number below 0"));
        Some(values.and_then(|values| values.into_iter().map(whole).collect()))
    }
    let buffers = [of::<u64>, of::<i64>, of::<u32>, of::<i32>];
    match buffers.into_iter().find_map(|of| of(given)) {
        Some(numbers) => numbers,
        None => given.extract(),
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Device>()
}
