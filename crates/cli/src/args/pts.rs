//! The command line of `nvlab pts`.

use clap::{Args, ValueEnum};
use nvlab_lab::pts::Test;
use nvlab_units::{Span, quantity};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  nvlab pts ssd-tlc                            all tests, one second per cell
  nvlab pts mine.toml --tests iops --html p.html
  nvlab pts ssd-tlc --tests latency --cell 60s one minute per cell, as specified";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Pts {
    /// Design: NAME | FILE.toml, with changes after commas
    pub design: String,
    /// Change one design value, e.g. --set ftl.spare=20% (repeatable)
    #[arg(short = 's', long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Tests to run
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST", default_values_t = [TestName::Iops, TestName::Throughput, TestName::Latency, TestName::WriteSaturation])]
    pub tests: Vec<TestName>,
    /// Simulated time per cell of a round (specification: 60s)
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub cell: Span,
    /// Capacities written by the write saturation test (specification: 4, or 24 hours)
    #[arg(long, value_name = "N", default_value_t = 2.0, value_parser = capacities)]
    pub saturate: f64,
    /// Seed of the requests
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Write a self-contained HTML report to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TestName {
    Iops,
    Throughput,
    Latency,
    WriteSaturation,
}

impl TestName {
    pub fn test(self) -> Test {
        match self {
            TestName::Iops => Test::Iops,
            TestName::Throughput => Test::Throughput,
            TestName::Latency => Test::Latency,
            TestName::WriteSaturation => Test::WriteSaturation,
        }
    }
}

fn time(text: &str) -> Result<Span, String> {
    match quantity::span(text) {
        Ok(span) if span >= Span::from_ms(1) && span <= Span::from_seconds(3600.0) => Ok(span),
        Ok(_) => Err("write a time from 1 ms to an hour".to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn capacities(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.01..=100.0).contains(number));
    number.ok_or_else(|| "write a number of capacities from 0.01 to 100".to_string())
}
