//! Runs and their results.

use crate::design::Design;
use crate::error::Trouble;
use crate::frame::Frame;
use crate::watch::Watch;
use nvlab_report::{Format, NameStyle, RunDocument, Style, compare_text, html, notes, run_text, timeline};
use nvlab_run::Preparation;
use nvlab_run::columns_out::{histograms, read_run, series, write_run_dir};
use nvlab_run::engine::{Done, Engine};
use nvlab_run::metric::{self, metrics};
use nvlab_run::plan::{Named, Settings as Chosen, Task, Until};
use nvlab_run::prepared::{self, Shelf};
use nvlab_run::result::RunResult;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// Where results and prepared devices are kept, and how many runs go on at a time.
#[pyclass(frozen, module = "nvlab._nvlab")]
#[derive(Clone)]
pub struct Settings {
    out: Option<PathBuf>,
    include: Vec<PathBuf>,
    jobs: usize,
    cache: Option<PathBuf>,
    cache_bytes: u64,
    /// Runs again what is kept.
    pub force: bool,
}

#[pymethods]
impl Settings {
    #[new]
    fn new(
        out: Option<PathBuf>,
        include: Vec<PathBuf>,
        jobs: Option<usize>,
        cache: Option<PathBuf>,
        cache_bytes: u64,
        force: bool,
    ) -> Settings {
        let cores = std::thread::available_parallelism().map_or(1, |count| count.get());
        Settings { out, include, jobs: jobs.unwrap_or(cores).max(1), cache, cache_bytes, force }
    }
}

impl Settings {
    /// Where prepared devices are kept, if they are.
    pub fn shelf(&self) -> Option<Shelf> {
        self.cache.as_ref().map(|folder| Shelf::new(folder.clone(), self.cache_bytes))
    }

    /// The engine that these describe; it ends when the watch is stopped.
    pub fn engine(&self, watch: &Watch) -> Engine {
        // Traces are converted once beside the results, as by the command line.
        let traces = self.out.as_ref().filter(|_| self.cache.is_some()).map(|out| out.join(".cache"));
        let engine = Engine::new(self.out.clone(), self.jobs, traces, watch.stop.clone());
        let engine = engine.and_results_in(self.include.clone());
        match self.shelf() {
            Some(shelf) => engine.and_devices_on(shelf),
            None => engine,
        }
    }
}

/// Where this user's prepared devices are kept.
#[pyfunction]
fn user_folder() -> Option<PathBuf> {
    prepared::user_folder()
}

/// The result of a run.
#[pyclass(frozen, module = "nvlab._nvlab")]
pub struct Run {
    result: Arc<RunResult>,
    dir: Option<PathBuf>,
    reused: bool,
}

impl From<Done> for Run {
    fn from(done: Done) -> Run {
        Run { result: Arc::new(done.result), dir: done.dir, reused: done.reused }
    }
}

#[pymethods]
impl Run {
    /// What `run --json` prints.
    fn document(&self) -> String {
        serde_json::to_string(&RunDocument::new(&self.result, &[])).expect("a result is plain data")
    }

    /// Everything, and the wall time: what [`Run::from_parts`] reads.
    fn parts(&self) -> (String, f64, Option<PathBuf>, bool) {
        let text = serde_json::to_string(self.result.as_ref()).expect("a result is plain data");
        (text, self.result.wall_s, self.dir.clone(), self.reused)
    }

    #[staticmethod]
    fn from_parts(text: &str, wall_s: f64, dir: Option<PathBuf>, reused: bool) -> PyResult<Run> {
        let read = serde_json::from_str::<RunResult>(text);
        let result = read.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Run { result: Arc::new(RunResult { wall_s, ..result }), dir, reused })
    }

    /// Reads a folder that a run was kept in, or its `result.json`.
    #[staticmethod]
    fn load(path: PathBuf) -> Result<Run, Trouble> {
        let dir = if path.is_dir() { Some(path.clone()) } else { path.parent().map(PathBuf::from) };
        Ok(Run { result: Arc::new(read_run(&path)?), dir, reused: true })
    }

    /// Keeps it below a folder; returns where.
    fn save(&self, folder: PathBuf) -> Result<PathBuf, Trouble> {
        Ok(write_run_dir(&folder, &self.result)?)
    }

    #[getter]
    fn key(&self) -> &str {
        &self.result.key
    }

    #[getter]
    fn design(&self) -> &str {
        &self.result.design.name
    }

    #[getter]
    fn workload(&self) -> &str {
        &self.result.workload
    }

    /// How the device was prepared, in one line.
    #[getter]
    fn prepared(&self) -> String {
        self.result.precondition.line(self.result.design.capacity_bytes)
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.result.seed
    }

    #[getter]
    fn wall_s(&self) -> f64 {
        self.result.wall_s
    }

    #[getter]
    fn dir(&self) -> Option<PathBuf> {
        self.dir.clone()
    }

    #[getter]
    fn reused(&self) -> bool {
        self.reused
    }

    /// The value of a metric; an error if there is none of this name.
    fn metric(&self, name: &str) -> Result<Option<f64>, Trouble> {
        Ok(metric::find(name)?.of(&self.result))
    }

    /// Every metric that the run has a value for.
    fn metrics(&self) -> Vec<(String, f64)> {
        let of = |metric: &metric::Metric| Some((metric.name.clone(), metric.of(&self.result)?));
        metrics().iter().filter_map(of).collect()
    }

    /// A metric for people: `2.41 ms`, with what must be known before it is used: `2.41 ms (± 8.1 %: too short)`.
    fn shown(&self, name: &str) -> Result<Option<String>, Trouble> {
        let metric = metric::find(name)?;
        let doubts: String = metric.doubts(&self.result).iter().map(|doubt| format!(" ({doubt})")).collect();
        Ok(metric.of(&self.result).map(|value| format!("{}{doubts}", metric.unit.shown(value))))
    }

    /// What `nvlab run` prints.
    fn text(&self, color: bool, width: usize) -> String {
        run_text(&self.result, Style { color, width })
    }

    /// What one must know before trusting its figures.
    fn notes(&self) -> Vec<String> {
        notes(&self.result)
    }

    /// Half of the 95 % interval of a metric over its value, infinite if the run is too short; `None` if it is no matter of chance.
    fn within(&self, name: &str) -> Result<Option<f64>, Trouble> {
        let metric = metric::find(name)?;
        Ok(self.result.precision_of(&metric.name).map(|precision| precision.within.unwrap_or(f64::INFINITY)))
    }

    /// The run over time, for ui.perfetto.dev.
    fn timeline(&self) -> String {
        timeline(&self.result).to_string()
    }
    fn series(&self) -> Frame {
        series(&self.result).into()
    }

    fn histograms(&self) -> Frame {
        histograms(&self.result).into()
    }

    /// Erase counts of the blocks, die by die; empty without flash, or with too many blocks.
    fn cycles(&self) -> Vec<u32> {
        self.result.flash.as_ref().map_or(Vec::new(), |flash| flash.cycles.clone())
    }

    /// Blocks by erase count.
    fn cycles_histogram(&self) -> Vec<(u32, u32)> {
        self.result.flash.as_ref().map_or(Vec::new(), |flash| flash.cycles_histogram.clone())
    }
}

/// Results as one self-contained page.
#[pyfunction]
fn report_html(runs: Vec<PyRef<'_, Run>>, title: &str) -> String {
    let results: Vec<RunResult> = runs.iter().map(|run| run.result.as_ref().clone()).collect();
    html(&results, title)
}

/// Designs side by side: runs with the same design are one of them.
#[pyfunction]
fn compare_runs(
    groups: Vec<Vec<PyRef<'_, Run>>>,
    metrics: Vec<String>,
    format: &str,
) -> Result<String, Trouble> {
    let of = |group: &Vec<PyRef<'_, Run>>| group.iter().map(|run| run.result.as_ref().clone()).collect();
    let groups: Vec<Vec<RunResult>> = groups.iter().map(of).collect();
    Ok(compare_text(&groups, &metrics, format.parse::<Format>()?, NameStyle::Whole)?)
}

/// What is run, besides design and workload.
struct Asked {
    seeds: Vec<u64>,
    until: Option<Until>,
    state: Preparation,
}

/// The outcomes of a design's runs, or why it has none.
type Outcome = Result<Vec<Done>, Trouble>;

/// Runs designs under a workload; returns for each its runs or an exception, and what the user should know.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are those of nvlab.run")]
fn simulate<'py>(
    py: Python<'py>,
    designs: Vec<PyRef<'py, Design>>,
    workload: &str,
    seeds: Vec<u64>,
    until: Option<&str>,
    precondition: &str,
    settings: PyRef<'py, Settings>,
    report: Option<Py<PyAny>>,
) -> PyResult<(Vec<Bound<'py, PyAny>>, Vec<String>)> {
    let until = until.map(str::parse).transpose().map_err(Trouble::Input)?;
    let asked = Asked { seeds, until, state: precondition.parse().map_err(Trouble::Input)? };
    let designs: Vec<Arc<Named>> = designs.iter().map(|design| design.named.clone()).collect();
    let (settings, workload) = (settings.clone(), workload.to_string());
    let work = move |watch: &Watch| outcomes(watch, &settings, &designs, &workload, &asked);
    let (outcomes, notes) = Watch::over(py, report, work)?;
    let object = |outcome: Outcome| match outcome {
        Ok(done) => {
            let runs = done.into_iter().map(|done| Bound::new(py, Run::from(done)));
            runs.collect::<PyResult<Vec<_>>>()?.into_pyobject(py)
        }
        Err(trouble) => Ok(trouble.exception(py).into_value(py).into_bound(py).into_any()),
    };
    Ok((outcomes.into_iter().map(object).collect::<PyResult<_>>()?, notes))
}

fn outcomes(
    watch: &Watch,
    settings: &Settings,
    designs: &[Arc<Named>],
    workload: &str,
    asked: &Asked,
) -> Result<(Vec<Outcome>, Vec<String>), Trouble> {
    let engine = settings.engine(watch);
    let source = engine.source(workload)?;
    let mut notes = source.asides().to_vec();
    let planned: Vec<Result<Vec<Task>, Trouble>> = designs
        .iter()
        .map(|named| {
            let settings = |(number, &seed): (usize, &u64)| Chosen {
                seed,
                until: asked.until,
                state: asked.state.repeated(number as u64),
            };
            let task = |settings| Task::new(named.design.clone(), named.name.clone(), &source, settings);
            Ok(asked.seeds.iter().enumerate().map(settings).map(task).collect::<Result<Vec<Task>, _>>()?)
        })
        .collect();
    let tasks: Vec<&Task> = planned.iter().flatten().flatten().collect();
    notes.extend(tasks.iter().flat_map(|task| task.notes.iter().cloned()));
    let titles: Vec<String> = tasks.iter().map(|task| title(task, asked.seeds.len())).collect();
    let mut ran = watch.run(&engine, &tasks, &titles, settings.force)?.into_iter();
    let of = |planned: &Result<Vec<Task>, Trouble>| planned.as_ref().map_or(0, Vec::len);
    let counts: Vec<usize> = planned.iter().map(of).collect();
    let outcomes = planned.into_iter().zip(counts).map(|(planned, count)| {
        let done: Vec<_> = ran.by_ref().take(count).collect();
        planned.and_then(|_| done.into_iter().collect::<Result<Vec<Done>, _>>().map_err(Trouble::Task))
    });
    let outcomes = outcomes.collect();
    notes.extend(engine.shelf().and_then(Shelf::trouble));
    notes.sort();
    notes.dedup();
    Ok((outcomes, notes))
}

fn title(task: &Task, seeds: usize) -> String {
    match seeds {
        1 => task.plan.design_name.clone(),
        _ => format!("{}, seed {}", task.plan.design_name, task.plan.seed),
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Settings>()?;
    module.add_class::<Run>()?;
    module.add_function(wrap_pyfunction!(user_folder, module)?)?;
    module.add_function(wrap_pyfunction!(report_html, module)?)?;
    module.add_function(wrap_pyfunction!(compare_runs, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)
}
