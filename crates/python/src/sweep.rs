//! Sweeps and the claims of papers.

use crate::design::Design;
use crate::error::Trouble;
use crate::frame::Frame;
use crate::run::Settings;
use crate::watch::Watch;
use nvlab_lab::reproduce::{self, Experiment, Judged, Measured, judge};
use nvlab_lab::sweep::elsewhere::{design_of, errands};
use nvlab_lab::sweep::file::{AskedAxis, range};
use nvlab_lab::sweep::finished::table_at;
use nvlab_lab::sweep::space::RunSpec;
use nvlab_lab::sweep::table::SweepTable;
use nvlab_lab::sweep::{Batch, Finished, Point, PointError, Shard, Shown, Sweep, outcomes};
use nvlab_run::Preparation;
use nvlab_run::engine::{Done, Engine, TaskError};
use nvlab_table::{Column, Table, Values};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::path::PathBuf;

/// What is swept: a file, or axes over designs.
#[pyclass(frozen, module = "nvlab._nvlab")]
#[derive(Clone)]
struct Space {
    sweep: Sweep,
    /// Designs that are not found by their name.
    designs: HashMap<String, Design>,
}

#[pymethods]
impl Space {
    /// Axes over designs: keys with the values of each of them, one key or several that move together. The designs are one
    /// axis more, if there are several.
    #[staticmethod]
    fn of_axes(
        designs: Vec<PyRef<'_, Design>>,
        workload: &str,
        axes: Vec<(Vec<String>, Vec<Vec<String>>)>,
        seed: u64,
        until: Option<String>,
        precondition: &str,
    ) -> Result<Space, Trouble> {
        let names: Vec<String> = designs.iter().map(|design| design.named.name.clone()).collect();
        let run = RunSpec {
            design: names[0].clone(),
            sets: Vec::new(),
            workload: workload.to_string(),
            state: precondition.parse::<Preparation>()?,
            until,
            seed: seed.to_string(),
        };
        let several = (names.len() > 1).then(|| AskedAxis::one("design", names.clone()));
        let axes = axes.into_iter().map(|(keys, rows)| AskedAxis { keys, rows });
        let axes = several.into_iter().chain(axes).collect();
        let sweep = Sweep::of_axes(names[0].clone(), run, axes)?;
        let designs = designs.iter().map(|design| (design.named.name.clone(), Design::clone(design)));
        Ok(Space { sweep, designs: designs.collect() })
    }

    /// The file of a sweep.
    #[staticmethod]
    fn of_file(path: PathBuf) -> Result<Space, Trouble> {
        Ok(Space { sweep: Sweep::load(&path)?, designs: HashMap::new() })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.sweep.name
    }

    /// What is varied: key, and its column in the table.
    #[getter]
    fn keys(&self) -> Vec<(String, String)> {
        let keys = self.sweep.space.keys().into_iter();
        keys.map(|key| (key.clone(), self.sweep.space.scale(&key).column)).collect()
    }

    /// The points without those that are skipped.
    fn count(&self) -> Result<usize, Trouble> {
        Ok(self.sweep.points()?.len())
    }

    /// Runs the points, or a shard of them, but those that failed elsewhere, with the reason; returns the table, how many have no
    /// result, and what the user should know.
    fn run(
        slf: PyRef<'_, Space>,
        py: Python<'_>,
        settings: PyRef<'_, Settings>,
        shard: Option<&str>,
        failed: HashMap<usize, String>,
        report: Option<Py<PyAny>>,
    ) -> PyResult<(Frame, usize, Vec<String>)> {
        let shard = shard.map(str::parse::<Shard>).transpose().map_err(Trouble::Input)?;
        let (space, settings) = (slf.clone(), settings.clone());
        Watch::over(py, report, move |watch| space.table(watch, &settings, shard, &failed))
    }

    /// The points whose results are not kept yet, as workers elsewhere get them.
    fn errands(&self, py: Python<'_>, settings: PyRef<'_, Settings>) -> PyResult<String> {
        let (space, settings) = (self.clone(), settings.clone());
        Watch::over(py, None, move |watch| {
            let engine = settings.engine(watch);
            let points = space.sweep.points()?;
            let mine: Vec<&Point> = points.iter().collect();
            let (batch, places) = space.batch(&engine, &mine, &HashMap::new())?;
            let design = |point: &Point| match space.designs.get(&point.design) {
                None => design_of(point),
                Some(design) => design.changed(&point.sets).expect("it was built a moment ago").parts(),
            };
            let errands = errands(&engine, &mine, &places, &batch, design);
            Ok(serde_json::to_string(&errands).expect("texts and numbers"))
        })
    }
}

impl Space {
    /// The tasks of points, but of those that failed elsewhere; an error if no point could be run at all.
    fn batch(
        &self,
        engine: &Engine,
        points: &[&Point],
        failed: &HashMap<usize, String>,
    ) -> Result<(Batch, Vec<Result<usize, PointError>>), Trouble> {
        let load = |point: &Point| match self.designs.get(&point.design) {
            None => point.load(),
            Some(design) => Ok(design.changed(&point.sets)?.into_named()),
        };
        let (batch, places) = Batch::of(engine, points, failed, load);
        if let (false, true) = (points.is_empty(), batch.tasks.is_empty() && failed.is_empty()) {
            return Err(places.into_iter().find_map(Result::err).expect("no point has a task").into());
        }
        Ok((batch, places))
    }

    fn table(
        &self,
        watch: &Watch,
        settings: &Settings,
        shard: Option<Shard>,
        failed: &HashMap<usize, String>,
    ) -> Result<(Frame, usize, Vec<String>), Trouble> {
        let engine = settings.engine(watch);
        let points = self.sweep.points()?;
        let is_mine = |at: &usize| shard.is_none_or(|shard| shard.takes(*at));
        let mine: Vec<&Point> = (0..points.len()).filter(is_mine).map(|at| &points[at]).collect();
        let (batch, places) = self.batch(&engine, &mine, failed)?;
        let ran = watch.run(&engine, &batch.tasks(), &batch.titles, settings.force)?;
        let outcomes = outcomes(&mine, places, &ran);
        let failed = outcomes.iter().filter(|outcome| outcome.result.is_err()).count();
        let shown = Shown::of(&self.sweep, &outcomes, &[], &[]);
        let notes = shown.notes(&outcomes);
        Ok((SweepTable::new(&self.sweep, &outcomes, &shown).table().into(), failed, notes))
    }
}

/// The page of a finished sweep, from its table; with these metrics and objectives, or with those that it says.
#[pyfunction]
fn sweep_page(table: PyRef<'_, Frame>, metrics: Vec<String>, front: Vec<String>) -> Result<String, Trouble> {
    Ok(Finished::of(&table.table()?)?.showing(&metrics, &front)?.page())
}

/// The table of a finished sweep, what was varied (columns), its name, how many points have no result, and what the user should know.
type Loaded = (Frame, Vec<String>, String, usize, Vec<String>);

/// The finished sweep that a path means.
#[pyfunction]
fn load_sweep(path: PathBuf) -> Result<Loaded, Trouble> {
    let found = table_at(&path)?;
    let found = found.ok_or_else(|| format!("{}: there is no table of a sweep", path.display()))?;
    let (table, Finished { sweep, outcomes, shown }) = Finished::load(&found)?;
    let columns = sweep.space.keys().iter().map(|key| sweep.space.scale(key).column).collect();
    let failed = outcomes.iter().filter(|outcome| outcome.result.is_err()).count();
    Ok((table.into(), columns, sweep.name, failed, shown.notes(&outcomes)))
}

/// Values of `LO .. HI : STEP` or `LO .. HI * FACTOR`.
#[pyfunction]
fn range_values(text: &str) -> Result<Vec<String>, Trouble> {
    Ok(range(text)?)
}

/// The claims of a paper and what was measured of them: the table, a summary, whether all that can pass do, the page.
#[pyfunction]
fn reproduce_claims(
    py: Python<'_>,
    system: &str,
    only: Vec<String>,
    smoke: bool,
    settings: PyRef<'_, Settings>,
    report: Option<Py<PyAny>>,
) -> PyResult<(Frame, String, bool, String)> {
    let (settings, system) = (settings.clone(), system.to_string());
    Watch::over(py, report, move |watch| claims(watch, &settings, &system, &only, smoke))
}

fn claims(
    watch: &Watch,
    settings: &Settings,
    system: &str,
    only: &[String],
    smoke: bool,
) -> Result<(Frame, String, bool, String), Trouble> {
    let experiments = reproduce::find(system, only, smoke)?;
    let engine = settings.engine(watch);
    let mut batch = Batch::default();
    let mut places: Vec<Vec<usize>> = Vec::new();
    for experiment in &experiments {
        let place = |point| batch.add(&engine, point, &experiment.name);
        places.push(experiment.space.points()?.iter().map(place).collect::<Result<_, _>>()?);
    }
    let ran = watch.run(&engine, &batch.tasks(), &batch.titles, settings.force)?;
    let measured: Vec<Measured<'_>> = experiments.iter().zip(&places).map(|of| measured(of, &ran)).collect();
    let judged: Vec<(&Experiment, Vec<Judged<'_>>)> =
        measured.iter().map(|measured| (measured.experiment, judge(measured))).collect();
    let all = || judged.iter().flat_map(|(_, judged)| judged);
    let differs =
        all().any(|one| matches!(one.verdict, reproduce::Verdict::Differs | reproduce::Verdict::Missing));
    let page = reproduce::page::page(&format!("Reproduction of {system}"), "", &measured);
    Ok((claim_table(&judged).into(), reproduce::summary(all()), !differs, page))
}

fn measured<'a>(
    (experiment, places): (&'a Experiment, &Vec<usize>),
    ran: &'a [Result<Done, TaskError>],
) -> Measured<'a> {
    let results = places.iter().map(|&at| ran[at].as_ref().ok().map(|done| &done.result)).collect();
    Measured { experiment, results }
}

fn claim_table(judged: &[(&Experiment, Vec<Judged<'_>>)]) -> Table {
    let rows: Vec<(&str, &Judged<'_>)> =
        judged.iter().flat_map(|(of, judged)| judged.iter().map(|one| (of.name.as_str(), one))).collect();
    let texts = |of: &dyn Fn(&(&str, &Judged<'_>)) -> String| {
        Values::Texts(rows.iter().map(|row| Some(of(row))).collect())
    };
    let numbers =
        |of: &dyn Fn(&Judged<'_>) -> Option<f64>| Values::Numbers(rows.iter().map(|row| of(row.1)).collect());
    let columns = vec![
        ("figure", texts(&|row| row.0.to_string())),
        ("where", texts(&|row| row.1.row.place.clone())),
        ("class", texts(&|row| row.1.row.class.name().to_string())),
        ("basis", texts(&|row| row.1.row.basis.name().to_string())),
        ("expected", numbers(&|one| one.row.expected)),
        ("measured", numbers(&|one| one.measured)),
        ("low", numbers(&|one| one.row.band.map(|band| band[0]))),
        ("high", numbers(&|one| one.row.band.map(|band| band[1]))),
        ("unit", texts(&|row| row.1.row.measure.unit.clone())),
        ("verdict", texts(&|row| row.1.shown())),
        ("claim", texts(&|row| row.1.row.claim.clone())),
        ("form", texts(&|row| row.1.row.form.clone())),
        ("note", texts(&|row| row.1.row.note.clone())),
    ];
    let columns = columns.into_iter().map(|(name, values)| Column::new(name, values)).collect();
    Table { columns, metadata: Vec::new() }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Space>()?;
    module.add_function(wrap_pyfunction!(sweep_page, module)?)?;
    module.add_function(wrap_pyfunction!(load_sweep, module)?)?;
    module.add_function(wrap_pyfunction!(range_values, module)?)?;
    module.add_function(wrap_pyfunction!(reproduce_claims, module)?)
}
