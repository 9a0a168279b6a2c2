//! Traces.

use crate::error::Trouble;
use crate::frame::Frame;
use crate::requests::{of_stream, table_of};
use crate::watch::Watch;
use nvlab_run::plan::cache;
use nvlab_trace::columns::Columns;
use nvlab_trace::info::TraceInfo;
use nvlab_trace::tables;
use nvlab_workload::replay::ReplaySpec;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::Arc;

/// A trace, as it was recorded.
#[pyclass(frozen, module = "nvlab._nvlab")]
struct Trace {
    columns: Arc<Columns>,
    report: String,
}

#[pymethods]
impl Trace {
    /// Reads `PATH[:FORMAT]` with its options; only these volumes, unless there are none; at most some lines.
    #[new]
    fn new(
        py: Python<'_>,
        text: &str,
        volumes: Vec<String>,
        lines_max: Option<u64>,
        cache: Option<PathBuf>,
    ) -> PyResult<Trace> {
        let text = text.to_string();
        Watch::over(py, None, move |_| {
            let mut spec = ReplaySpec::parse(&text)?;
            spec.reading.volumes.extend(volumes);
            spec.reading.lines_max = lines_max;
            let read = cache::read(&spec, cache.as_deref())?;
            Ok(Trace { columns: Arc::new(read.columns), report: read.report })
        })
    }

    /// What was read and left out.
    #[getter]
    fn report(&self) -> &str {
        &self.report
    }

    fn __len__(&self) -> usize {
        self.columns.len()
    }

    #[getter]
    fn volumes(&self) -> Vec<String> {
        self.columns.volumes().to_vec()
    }

    /// Its statistics, by name, in base units.
    fn info(slf: PyRef<'_, Trace>, py: Python<'_>) -> PyResult<(String, Vec<Count>, Vec<Figure>)> {
        let columns = slf.columns.clone();
        let info = Watch::over(py, None, move |_| Ok(TraceInfo::of(&columns)))?;
        Ok((info.origin.clone(), counts(&info), figures(&info)))
    }

    /// Some requests as a table.
    fn rows(&self, start: usize, count: usize) -> Frame {
        let start = start.min(self.columns.len());
        Frame(table_of(&self.columns, start..start.saturating_add(count).min(self.columns.len())))
    }
}

/// A count or bytes, by name.
type Count = (&'static str, u64);
/// Another figure; `None` if the trace has none.
type Figure = (&'static str, Option<f64>);

fn counts(info: &TraceInfo) -> Vec<Count> {
    vec![
        ("requests", info.requests),
        ("reads", info.reads.requests),
        ("read_bytes", info.reads.bytes),
        ("writes", info.writes.requests),
        ("write_bytes", info.writes.bytes),
        ("trims", info.trims.requests),
        ("trim_bytes", info.trims.bytes),
        ("flushes", info.flushes),
        ("volumes", info.volumes),
        ("footprint_bytes", info.footprint_bytes),
        ("written_footprint_bytes", info.written_bytes),
        ("end_bytes", info.end_bytes),
        ("size_p50_bytes", u64::from(info.size_p50_bytes)),
        ("size_max_bytes", u64::from(info.size_max_bytes)),
    ]
}

fn figures(info: &TraceInfo) -> Vec<Figure> {
    vec![
        ("duration_s", Some(info.duration.seconds())),
        ("size_mean_bytes", Some(info.size_mean_bytes)),
        ("sequential_share", Some(info.sequential_share)),
        ("hot_share", Some(info.hot_share)),
        ("zipf_theta", info.zipf_theta),
        ("gap_mean_s", Some(info.gap_mean.seconds())),
        ("gap_p99_s", Some(info.gap_p99.seconds())),
        ("rate_mean_per_s", Some(info.rate_mean)),
        ("rate_peak_minute_per_s", Some(info.rate_peak_minute)),
    ]
}

/// Keeps a table, given as an Arrow IPC stream, in this process; returns the trace that it is, `table:HASH`.
#[pyfunction]
fn keep_table(py: Python<'_>, ipc: Vec<u8>) -> PyResult<String> {
    let (fields, batches) = of_stream(ipc)?;
    Watch::over(py, None, move |_| Ok(tables::keep(&fields, batches)?))
}

/// The file of a table that this process keeps, by its name without `table:`.
#[pyfunction]
fn table_file<'py>(py: Python<'py>, name: &str) -> Result<Bound<'py, PyBytes>, Trouble> {
    Ok(PyBytes::new(py, &tables::file(name)?))
}

/// Keeps the file of a table of another process.
#[pyfunction]
fn keep_table_file(bytes: Vec<u8>) -> Result<(), Trouble> {
    Ok(tables::keep_file(bytes)?)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Trace>()?;
    module.add_function(wrap_pyfunction!(keep_table, module)?)?;
    module.add_function(wrap_pyfunction!(table_file, module)?)?;
    module.add_function(wrap_pyfunction!(keep_table_file, module)?)
}
