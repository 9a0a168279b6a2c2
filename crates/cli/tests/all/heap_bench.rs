//! `nvlab heap bench` measures every layer, says what it charged for, and refuses what it cannot measure.

use crate::common::{Folder, said};
use serde_json::Value;

#[test]
fn every_layer_is_measured_and_verified() {
    let folder = Folder::new("heap-bench");
    let small = ["heap", "bench", "--elements", "2048", "--operations", "1800", "--threads", "1,2", "--json"];
    let output = folder.run(&small);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4 * 5 * 2, "workloads, layers, numbers of threads");
    for row in rows {
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"));
        assert!(number("cpu_ns") > 0.0, "{row}");
        assert_eq!(number("total_ns"), number("cpu_ns") + number("charged_ns"), "{row}");
        match row["layer"].as_str().unwrap() {
            "base" => assert!(row["fences"].is_null(), "nothing is counted in plain memory"),
            "pointers" | "transactions" => assert_eq!(number("written_lines"), 0.0, "{row}"),
            "durable" => assert!(number("fences") > 0.4 && number("charged_ns") == 0.0, "{row}"),
            "delays" => {
                // A line written that memory held already is counted, and takes no time.
                let charged = 67.0 * number("read_lines") + 215.0 * number("written_lines");
                assert!((0.99..1.000_001).contains(&(number("charged_ns") / charged)), "{row}");
            }
            other => panic!("{other}"),
        }
    }
    assert!(said(&output).contains("sps: durable"), "progress: {}", said(&output));
}

#[test]
fn heap_bench_says_why_it_cannot() {
    let folder = Folder::new("heap-bench-refused");
    for (arguments, status, words) in [
        (vec!["--threads", "3"], 2, "divide"),
        (vec!["--elements", "10"], 2, "1024"),
        (vec!["--workload", "spx"], 2, "six-degrees"),
        (vec!["--workload", "sps", "--operations", "900", "--dir", "/nowhere"], 4, "No such file"),
    ] {
        let output = folder.run(&[&["heap", "bench"][..], &arguments].concat());
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(words), "{arguments:?}: {}", said(&output));
    }
}
