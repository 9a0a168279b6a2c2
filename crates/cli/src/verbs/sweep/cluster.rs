//! `nvlab sweep --on`: runs the points on a cluster, through the Python package; results are stored here as they
//! arrive.

use crate::failure::Failure;
use crate::output::Output;
use nvlab_lab::sweep::elsewhere::Errand;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What the Python side prints in the end.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    /// Points without a result, and why.
    failed: HashMap<usize, String>,
    error: Option<String>,
    unsupported: bool,
}

/// Runs errands on the cluster `on`; returns why those have no result whose results are not kept now.
pub fn run(output: &Output, on: &str, errands: &[Errand]) -> Result<HashMap<usize, String>, Failure> {
    if errands.is_empty() {
        return Ok(HashMap::new());
    }
    let cache = output.cache.as_ref().map(|(folder, _)| folder);
    let asked = json!({
        "on": on,
        "errands": errands,
        "out": output.out,
        "cache": cache,
        "cache_bytes": output.cache.as_ref().map_or(0, |(_, bytes)| *bytes),
        "progress": output.progress,
    });
    let python = python();
    let mut child = Command::new(&python)
        .args(["-m", "nvlab._dask"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Failure::machine(python.display(), &error))?;
    let mut to = child.stdin.take().expect("it is piped");
    // A child that has ended already says why below.
    let _ = to.write_all(asked.to_string().as_bytes());
    drop(to);
    let ended = child.wait_with_output().map_err(|error| Failure::machine(python.display(), &error))?;
    let answer: Answer = match (ended.status.success(), serde_json::from_slice(&ended.stdout)) {
        (true, Ok(answer)) => answer,
        _ => {
            return Err(Failure::Machine(format!(
                "--on needs the Python package with Dask (pip install 'nvlab[dask]'): {} ended with {}",
                python.display(),
                ended.status
            )));
        }
    };
    match answer.error {
        Some(error) if answer.unsupported => Err(Failure::Machine(error)),
        Some(error) => Err(Failure::Input(error)),
        None => Ok(answer.failed),
    }
}

/// The interpreter that runs this program, if it is the command of the Python package; else the one on the path.
fn python() -> PathBuf {
    let own = std::env::current_exe().ok();
    let is_python =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python"));
    match own.filter(is_python) {
        // The link in a virtual environment, not what it points to: that one does not know the packages.
        Some(own) => std::env::var_os("NVLAB_INTERPRETER").map_or(own, PathBuf::from),
        None => PathBuf::from("python3"),
    }
}
