//! From a design and a workload to a result.
//!
//! | module | what |
//! |---|---|
//! | [`design`] | a design as data: TOML, parts, defaults, errors with positions |
//! | [`plan`] | from texts to runs: limits, workloads, the cache of traces |
//! | [`prepared`] | prepared devices, kept between runs |
//! | [`pts`] | SNIA's performance test of a design |
//! | [`run`] | one design under one workload: build, precondition, drive, sum up |
//! | [`durable`] | logs of recoverable memory on simulated media |
//! | [`engine`] | finds kept results, runs what is missing, keeps its results |
//! | [`heap`] | what each layer of safety costs a program that keeps objects |
//! | [`image`] | real tools on an image that a device holds |
//! | [`result`] | what a run measured |
//! | [`columns_out`] | the directory of a run: JSON and Parquet |
//! | [`report`] | results as text, tables and a self-contained HTML page |
//! | [`reproduce`] | claims of papers, compared with measurements |
//! | [`sweep`] | many runs: a space of points, its table, its page |
//! | [`theory`] | closed forms that a simulation must meet |
//! | [`toml_reader`] | files that people write: typed values with their places |
//! | [`explain`] | every key, metric and format in a few words |

pub mod bench;
pub mod columns_out;
pub mod design;
pub mod durable;
pub mod engine;
pub mod explain;
pub mod heap;
pub mod image;
pub mod plan;
pub mod prepared;
pub mod pts;
pub mod report;
pub mod reproduce;
pub mod result;
pub mod run;
pub mod sweep;
pub mod theory;
pub mod toml_reader;
