//! Searches: from figures to a design, from requirements to a design. Answers cross as JSON.

use crate::design::Design;
use crate::error::Trouble;
use crate::run::Settings;
use crate::watch::Watch;
use nvlab_fit::choose::free::Free;
use nvlab_fit::choose::{Asked, ChooseError, choose, page};
use nvlab_fit::figures::{Figures, State};
use nvlab_fit::fit::answer::answer;
use nvlab_fit::fit::{Ended, FitError, Runs};
use nvlab_lab::sweep::elsewhere::Errand;
use nvlab_report::Assertion;
use nvlab_run::Preparation;
use nvlab_run::engine::{Done, Engine, EngineError, TaskError};
use nvlab_run::metric;
use nvlab_run::plan::{Source, Task};
use nvlab_units::quantity;
use nvlab_workload::WorkloadError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Runs of a search, reported to the watch.
struct Watched<'a> {
    watch: &'a Watch,
    engine: Engine,
    force: bool,
    /// Runs errands on a cluster and keeps their results where the engine finds them; returns why others have none.
    elsewhere: Option<Py<PyAny>>,
}

impl Watched<'_> {
    /// Has what is not kept run on the cluster; why some of the tasks have no result.
    fn sent(
        &self,
        elsewhere: &Py<PyAny>,
        tasks: &[&Task],
        titles: &[String],
    ) -> PyResult<HashMap<usize, String>> {
        let all = tasks.iter().zip(titles).enumerate();
        let waiting = all.filter(|(_, (task, _))| self.engine.find(task).is_none());
        let errands: Vec<Errand> =
            waiting.map(|(number, (task, title))| Errand::of_values(number, title, task)).collect();
        let text = serde_json::to_string(&errands).expect("texts and numbers");
        Python::attach(|py| elsewhere.call1(py, (text,))?.extract(py))
    }
}

impl Runs for Watched<'_> {
    fn source(&self, text: &str) -> Result<Arc<Source>, WorkloadError> {
        self.engine.source(text)
    }

    fn run(&self, tasks: &[&Task], titles: &[String]) -> Result<Vec<Result<Done, TaskError>>, Ended> {
        let mut failed = HashMap::new();
        if let Some(elsewhere) = &self.elsewhere {
            failed =
                self.sent(elsewhere, tasks, titles).map_err(|error| Ended::Machine(error.to_string()))?;
        }
        let here = |number: &usize| !failed.contains_key(number);
        let kept: Vec<usize> = (0..tasks.len()).filter(here).collect();
        let (tasks_here, titles_here): (Vec<&Task>, Vec<String>) =
            kept.iter().map(|&number| (tasks[number], titles[number].clone())).unzip();
        let ran = self.watch.run(&self.engine, &tasks_here, &titles_here, self.force);
        let mut ran = ran
            .map_err(|trouble| match trouble {
                Trouble::Engine(error @ EngineError::Stopped { .. }) => Ended::Interrupted(error.to_string()),
                Trouble::Engine(error) => Ended::Machine(error.to_string()),
                trouble => Ended::Machine(format!("{trouble:?}")),
            })?
            .into_iter();
        let of = |number: usize| match failed.get(&number) {
            Some(why) => Err(TaskError::Elsewhere(why.clone())),
            None => ran.next().expect("each task has a result"),
        };
        Ok((0..tasks.len()).map(of).collect())
    }
}

impl From<Ended> for Trouble {
    fn from(ended: Ended) -> Trouble {
        match ended {
            Ended::Interrupted(_) => Trouble::Engine(EngineError::Stopped { finished: 0, asked: 0 }),
            Ended::Machine(why) => Trouble::Engine(EngineError::Threads(why)),
        }
    }
}

impl From<FitError> for Trouble {
    fn from(error: FitError) -> Trouble {
        match error {
            FitError::Wrong(error) => Trouble::Design((*error).into()),
            FitError::Design(errors) => Trouble::Design(errors),
            FitError::Ended(ended) => ended.into(),
            FitError::Run { .. } | FitError::Impossible(_) => Trouble::Input(error.to_string()),
        }
    }
}

impl From<ChooseError> for Trouble {
    fn from(error: ChooseError) -> Trouble {
        match error {
            ChooseError::Wrong(why) => Trouble::Input(why),
            ChooseError::Workload(error) => Trouble::Workload(error),
            ChooseError::Ended(ended) => ended.into(),
        }
    }
}

/// Fits a drive to a file of figures and to files of fio; returns the answer, its page, and what was assumed.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is an argument of `nvlab.fit`")]
fn fit_figures(
    py: Python<'_>,
    figures: PathBuf,
    measured: Vec<PathBuf>,
    state: Option<&str>,
    capacity: Option<&str>,
    seed: u64,
    settings: PyRef<'_, Settings>,
    elsewhere: Option<Py<PyAny>>,
    report: Option<Py<PyAny>>,
) -> PyResult<(String, String, Vec<String>)> {
    let state = state.map(str::parse::<State>).transpose();
    let state = state.map_err(|allowed| Trouble::Input(format!("state is {allowed}")))?;
    let figures =
        Figures::load(&figures, (&measured, state)).map_err(|error| Trouble::Design(error.into()))?;
    let size = match capacity {
        None => 0,
        Some(text) => {
            let bytes =
                quantity::bytes(text).map_err(|error| Trouble::Input(format!("capacity: {error}")))?;
            figures
                .drive
                .size_of(bytes)
                .ok_or_else(|| Trouble::Input(format!("capacity: the file has no drive of {text}")))?
        }
    };
    let settings = settings.clone();
    Watch::over(py, report, move |watch| {
        let runs = Watched { watch, engine: settings.engine(watch), force: settings.force, elsewhere };
        let found = answer(&figures, size, seed, &runs)?;
        let page = nvlab_fit::fit::page::page(&found, &figures.notes);
        Ok((found.document().to_string(), page, figures.notes))
    })
}

/// Searches for the best design that meets needs; returns the answer and its page.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is an argument of `nvlab.choose`")]
fn choose_design(
    py: Python<'_>,
    design: PyRef<'_, Design>,
    free: Vec<String>,
    workload: &str,
    needs: Vec<String>,
    best: Vec<String>,
    runs: usize,
    seed: u64,
    until: Option<&str>,
    precondition: &str,
    settings: PyRef<'_, Settings>,
    elsewhere: Option<Py<PyAny>>,
    report: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let parsed = |texts: &[String]| texts.iter().map(|text| Free::parse(text)).collect::<Result<Vec<_>, _>>();
    let needs = needs.iter().map(|text| Assertion::parse(text)).collect::<Result<Vec<_>, _>>();
    let goals = best.iter().map(|name| metric::find(name)).collect::<Result<Vec<_>, _>>();
    let until = until.map(str::parse).transpose().map_err(Trouble::Input)?;
    let (design, sets) = design.in_a_file("be varied")?;
    let asked = Asked {
        design,
        sets,
        free: parsed(&free).map_err(Trouble::Input)?,
        workload: workload.to_string(),
        state: precondition.parse::<Preparation>().map_err(Trouble::from)?,
        until,
        seed,
        needs: needs.map_err(Trouble::Input)?,
        goals: goals.map_err(Trouble::Input)?,
        runs,
    };
    let settings = settings.clone();
    Watch::over(py, report, move |watch| {
        let runs = Watched { watch, engine: settings.engine(watch), force: settings.force, elsewhere };
        let choice = choose(&asked, &runs)?;
        Ok((choice.document(&asked).to_string(), page::page(&asked, &choice)))
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(fit_figures, module)?)?;
    module.add_function(wrap_pyfunction!(choose_design, module)?)
}
