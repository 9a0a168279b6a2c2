//! The documentation site: every page is made, every notebook is executed and what it asserts holds; a warning is an error. It is
//! left in `target/site`, which is what `make site` is for.

use crate::package::{python, run};
use std::fs;
use std::path::Path;

#[test]
fn the_site_is_made_and_its_notebooks_hold() {
    let Some(python) = python(&["sphinx", "myst_nb", "furo", "matplotlib", "optuna"]) else { return };
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = tempfile::tempdir_in(scratch).unwrap();
    let made = folder.path().join("site");
    let sphinx =
        ["-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--jobs", "2", "--builder", "html"];
    let doctrees = folder.path().join("doctrees").display().to_string();
    let folders = ["--doctree-dir", &doctrees, "docs", &made.display().to_string()];
    run(&python, &[&sphinx[..], &folders[..]].concat());

    let site = scratch.with_file_name("site");
    if site.exists() {
        fs::remove_dir_all(&site).unwrap();
    }
    fs::rename(&made, &site).unwrap();
    println!("{}", site.join("index.html").display());
}
