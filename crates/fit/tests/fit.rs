//! Fits of published drives and of drives that were made up: designs load, what was made up is found again, a figure that is left
//! out is predicted.

use nvlab_design::Design;
use nvlab_fit::figures::Figures;
use nvlab_fit::fit::answer::answer;
use nvlab_fit::fit::posterior::Posterior;
use nvlab_fit::fit::{Ended, Pair, Runs, nine_of_ten};
use nvlab_fit::held_out;
use nvlab_fit::model::{Model, forms, text, twin};
use nvlab_fit::priors::Knob;
use nvlab_run::engine::{Done, Engine, TaskError};
use nvlab_run::plan::{Source, Task};
use nvlab_workload::WorkloadError;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs without anything kept.
struct Plain(Engine);

impl Plain {
    fn new() -> Plain {
        Plain(Engine::new(None, 2, None, Arc::new(AtomicBool::new(false))))
    }
}

impl Runs for Plain {
    fn source(&self, text: &str) -> Result<Arc<Source>, WorkloadError> {
        self.0.source(text)
    }
    fn run(&self, tasks: &[&Task], _: &[String]) -> Result<Vec<Result<Done, TaskError>>, Ended> {
        self.0.run(tasks, false, &|_, _| {}).map_err(|error| Ended::Machine(error.to_string()))
    }
}

#[test]
fn the_usual_drive_of_every_published_one_is_a_design_and_its_figures_are_runs() {
    let runs = Plain::new();
    for figures in held_out::published().unwrap() {
        let model = Model::new(&figures).unwrap();
        let usual = vec![0.0; model.variables.len()];
        for (size, capacity) in figures.drive.capacities.iter().enumerate() {
            let values = model.values(&usual, size).unwrap();
            let text = text::whole(&model, &values, size, &|_| "said".to_string());
            let design = Design::parse("usual.toml", &text, &[]).unwrap_or_else(|e| panic!("{text}\n{e}"));
            assert!((design.capacity_bytes() as f64 / *capacity as f64 - 1.0).abs() < 1e-4, "{text}");
            assert_eq!(design.array.geometry.dies(), values.dies, "{text}");
        }
        for figure in &figures.figures {
            let values = model.values(&usual, figure.size).unwrap();
            twin::job(&model, &values, figure.size, figure.what, |text| runs.source(text)).unwrap();
        }
    }
}

/// A drive that was made up: its figures are its closed forms.
fn made_up(at: impl Fn(usize) -> f64) -> (Figures, Vec<f64>) {
    let (file, text) = held_out::PUBLISHED[0];
    let mut figures = Figures::read(file, text).unwrap();
    let model = Model::new(&figures).unwrap();
    let point: Vec<f64> = (0..model.variables.len()).map(at).collect();
    for figure in &mut figures.figures {
        figure.value = forms::value(&model.values(&point, figure.size).unwrap(), figure.what);
    }
    (figures, point)
}

#[test]
fn what_was_made_up_is_found_again() {
    let (figures, truth) = made_up(|place| [0.4, -0.6, 0.2, 0.7, -0.3][place % 5]);
    let model = Model::new(&figures).unwrap();
    let corrections = vec![0.0; figures.figures.len()];
    let posterior = Posterior { model: &model, figures: &figures, corrections, without: None, seed: 1 };
    let modes = posterior.modes(None);
    let found = posterior.drives(&modes[0].at).unwrap();
    for (number, figure) in figures.figures.iter().enumerate() {
        let off = posterior.predicted(&found, number) / figure.value - 1.0;
        assert!(off.abs() < 0.06, "{}: off by {off}", figures.name(figure));
    }
    let real = model.values(&truth, 1).unwrap();
    let drives = posterior.draws(&modes);
    let of = |knob| nine_of_ten(drives.iter().filter_map(|at| Some(model.values(at, 1)?.of(knob))).collect());
    for knob in [Knob::Read, Knob::Program, Knob::Command] {
        let (low, high) = of(knob);
        let value = real.of(knob);
        assert!(low * 0.9 < value && value < high * 1.1, "{knob:?}: {value} not in {low} to {high}");
    }
}

#[test]
fn the_cores_do_not_matter() {
    let (figures, _) = made_up(|_| 0.3);
    let model = Model::new(&figures).unwrap();
    let corrections = vec![0.0; figures.figures.len()];
    let posterior = Posterior { model: &model, figures: &figures, corrections, without: Some(3), seed: 5 };
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let modes = posterior.modes(None);
            (modes[0].at.clone(), posterior.draws(&modes))
        })
    };
    assert_eq!(on(1), on(3));
}

/// Jobs of fio that no closed form is of are run with the design, and keep its laws.
#[test]
fn jobs_that_are_no_figures_are_run_with_the_design() {
    let folder = tempfile::tempdir().unwrap();
    let side = |rate: f64| {
        serde_json::json!({
            "io_bytes": rate * 4096.0, "bw_bytes": rate * 4096.0, "iops": rate, "lat_ns": { "mean": 2e5 },
            "clat_ns": { "percentile": { "99.000000": 4e5 } },
        })
    };
    let job = |name: &str, options: serde_json::Value| serde_json::json!({ "jobname": name, "groupid": 0, "error": 0, "job options": options, "read": side(6e4), "write": {} });
    let skewed = serde_json::json!({
        "ioengine": "io_uring", "rw": "randread", "bs": "4k", "iodepth": "16", "random_distribution": "zipf:1.1", "runtime": "5", "time_based": "",
    });
    let fio = serde_json::json!({ "fio version": "fio-3.36", "jobs": [job("skewed", skewed)] });
    std::fs::write(folder.path().join("fio.json"), fio.to_string()).unwrap();
    let text = "schema = 1\n[drive]\nname = \"d\"\ncapacity = \"32 GB\"\ninterface = \"SATA\"\nclass = \"data-centre\"\n\
        cells = \"TLC\"\n[[figure]]\nwhat = \"random read\"\nvalue = \"70k IOPS\"\n[[measured]]\nfile = \"fio.json\"\n";
    let file = folder.path().join("d.toml");
    std::fs::write(&file, text).unwrap();
    let figures = Figures::load(&file, (&[], None)).unwrap();
    let found = answer(&figures, 0, 1, &Plain::new()).unwrap();
    assert_eq!((found.residuals.len(), found.notes.len()), (1, 0), "{:?}", found.notes);
    let [job] = &found.compared[..] else { panic!("{:?}", found.compared) };
    let pairs: Vec<Pair> = job.pairs().collect();
    let [read] = &pairs[..] else { panic!("{pairs:?}") };
    let [mean, p99] = read.simulated.latencies.unwrap();
    assert!((read.simulated.per_s * mean - 16.0).abs() < 0.3 && p99 >= mean, "{read:?}");
    assert!(
        read.simulated.per_s < 80e3 && read.difference() < 0.4,
        "half as many in flight as of the figure: {read:?}"
    );
}

/// The small size of `nvlab reproduce drives --only held-out`.
#[test]
fn a_figure_that_is_left_out_is_predicted() {
    let figures = held_out::published().unwrap().into_iter().find(|f| f.drive.name == "sn750").unwrap();
    let rows = held_out::rows(&figures, &[1], 1, &Plain::new()).unwrap();
    assert_eq!(rows.len(), 1);
    assert!(rows[0].difference().abs() < 0.1, "{:?}", rows[0]);
    assert!(rows[0].interval.0 < rows[0].predicted * 1.02 && rows[0].predicted * 0.98 < rows[0].interval.1);
}
