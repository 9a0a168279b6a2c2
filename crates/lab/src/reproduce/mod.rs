//! Compares claims of papers with measurements: `nvlab reproduce`.
//!
//! 1. A claim and its expected number are in `experiments/SEED/FIGURE.toml` and nowhere else, each with its basis.
//!    Code only runs, measures, compares and draws.
//! 2. Each row has a class ([`row::Class`]). Claims, numbers held to another source, and numbers derived by a closed
//!    form can pass; a parameter read back, a calibration and a number of this program's own cannot. A row without a
//!    band is reported; a point that could not be run is missing; a run that did not reach the steady state it asked
//!    for passes nothing.
//! 3. A note that says what was measured (`measured 1.97`) is compared with what is, to its last digit; a reproduction with
//!    a stale note fails.
//! 4. A run is an ordinary one: the same key, the same directory of results, so that an interrupted reproduction
//!    continues where it stopped, and every point can be examined by itself.
//!
//! | module | what |
//! |---|---|
//! | [`experiment`] | an experiment as data; [`row`]: claims and their class |
//! | [`mod@judge`] | claims compared with results |
//! | [`page`] | all of it as one HTML file; `plot`: the figures of an experiment |

pub mod experiment;
pub mod judge;
pub mod page;
mod plot;
pub mod row;

pub use experiment::Experiment;
pub use judge::{Judged, Measured, Verdict, judge, summary};

use nvlab_design::toml_reader::FileError;
use std::path::Path;
use thiserror::Error;

macro_rules! built_in {
    ($($seed:literal: $($name:literal)*);* $(;)?) => {
        /// Every built-in experiment: seed, name and file.
        pub const BUILT_IN: &[(&str, &str, &str)] = &[$($(
            ($seed, $name, include_str!(concat!("../../../../experiments/", $seed, "/", $name, ".toml")))
        ),*),*];
    };
}
built_in!("000": "fig06" "fig08" "fig09" "fig10" "fig13" "fig14" "fig15" "lifetime" "lifetime-spread" "table" "uniform" "swap" "peak" "writes" "parallel" "programs" "warm-up" "mixed-start" "slowing" "whole-records"; "001": "throughput" "devices" "records" "flash-disk" "compiler" "page-buffers" "hybrid" "truncation" "background" "batches" "chips"; "002": "time" "time-empty" "wear" "ftls" "database"; "003": "driver" "sector" "synthetic" "iozone" "iozone-full" "sync" "start-gap"; "004": "devices" "requests" "bandwidth" "flash-ssd" "software" "threads" "file-systems" "user-space" "footprint" "start-gap" "attack" "attack-seeds" "applications" "heap-layers" "heap-disk"; "drives": "870-qvo-4tb" "870-qvo-4tb-after" "970-evo-plus-after" "970-evo-plus-cache" "970-evo-plus-read" "970-evo-plus-size" "970-evo-plus-steady" "d5-p4320" "d5-p4320-steady" "p4500" "p4500-steady"; "zns": "depth" "zones" "reset");

/// Why there are no experiments to run.
#[derive(Debug, Error)]
pub enum FindError {
    /// A file is wrong.
    #[error(transparent)]
    Wrong(#[from] FileError),
    /// A folder or file cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// There is no such system or figure.
    #[error("{0}")]
    Unknown(String),
}

/// The experiments of a system: a built-in one (`000`), or a folder of files (with a `/`). `only` names those
/// wanted; none for all.
pub fn find(seed: &str, only: &[String], smoke: bool) -> Result<Vec<Experiment>, FindError> {
    let texts = match seed.contains('/') {
        true => folder(Path::new(seed))?,
        false => built_in(seed)?,
    };
    let known: Vec<&str> = texts.iter().map(|(name, ..)| name.as_str()).collect();
    if let Some(unknown) = only.iter().find(|name| !known.contains(&name.as_str())) {
        let message = format!("{seed} has no experiment `{unknown}`; its experiments: {}", known.join(", "));
        return Err(FindError::Unknown(message));
    }
    let wanted = texts.iter().filter(|(name, ..)| only.is_empty() || only.contains(name));
    Ok(wanted
        .map(|(name, file, text)| Experiment::read(name, file, text, smoke))
        .collect::<Result<_, _>>()?)
}

/// Name, file and text of each.
type Texts = Vec<(String, String, String)>;

fn built_in(seed: &str) -> Result<Texts, FindError> {
    let of_seed = BUILT_IN.iter().filter(|(known, ..)| *known == seed);
    let texts: Texts = of_seed
        .map(|(seed, name, text)| {
            (name.to_string(), format!("experiments/{seed}/{name}.toml"), text.to_string())
        })
        .collect();
    if texts.is_empty() {
        let mut seeds: Vec<&str> = BUILT_IN.iter().map(|(seed, ..)| *seed).collect();
        seeds.dedup();
        let message =
            format!("there is nothing to reproduce for `{seed}`; choose one of {}", seeds.join(", "));
        return Err(FindError::Unknown(message));
    }
    Ok(texts)
}

fn folder(folder: &Path) -> Result<Texts, FindError> {
    let unreadable = |path: &Path, source| FindError::Unreadable { path: path.display().to_string(), source };
    let entries = std::fs::read_dir(folder).map_err(|error| unreadable(folder, error))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, path.display().to_string(), text))
    };
    paths.iter().map(read).collect()
}

#[cfg(test)]
mod tests;
