//! The extension module of the Python package: conversion only. What is described here is in `nvlab-lab`; what users see is in
//! `python/nvlab`, which is typed and documented.
//!
//! 1. Nothing crosses per operation: a call takes texts and numbers and returns results and tables.
//! 2. Every simulation runs detached from the interpreter (`watch`): other Python threads go on, Ctrl-C ends it.
//! 3. Errors are those of the lab, converted field by field (`error`); no text is parsed.
//!
//! | module | what |
//! |---|---|
//! | `design` | designs, parts, what can be explained |
//! | `device` | devices that are held between batches |
//! | `trace` | traces |
//! | `run` | runs and their results |
//! | `sweep` | sweeps, claims of papers |
//! | `fit` | searches for designs: from figures, from requirements |
//! | `heap`, `rvm` | persistent objects, recoverable memory |
//! | `frame` | tables, by the Arrow C stream interface |
//! | `watch` | work without the interpreter, progress, interruption |
//! | `error` | exceptions |

mod design;
mod device;
mod error;
mod fit;
mod frame;
mod heap;
mod requests;
mod run;
mod rvm;
mod sweep;
mod trace;
mod watch;

use pyo3::prelude::*;
use std::ffi::OsString;

/// The command line: the same program as `nvlab`, with these arguments; returns its exit status.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| nvlab_cli::run(arguments))
}

#[pymodule]
fn _nvlab(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", nvlab_cli::VERSION)?;
    module.add("COMMIT", nvlab_cli::COMMIT)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    design::register(module)?;
    device::register(module)?;
    fit::register(module)?;
    frame::register(module)?;
    heap::register(module)?;
    run::register(module)?;
    rvm::register(module)?;
    sweep::register(module)?;
    trace::register(module)
}
