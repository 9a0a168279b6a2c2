//! A program that is killed: the test `program` of a module.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs the test of this name with the heap's path in an environment variable, and kills it after a while. What it said to be
/// durable, in lines of "durable WHAT": each is one write, which a kill does not cut.
pub fn run(test: &str, variable: &str, heap: &Path, time: Duration) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(variable, heap)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let lines = said.lines().map_while(|line| line.ok());
        lines.filter_map(|line| Some(line.split_once("durable ")?.1.to_string())).collect()
    });
    std::thread::sleep(time);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}
