//! `nvlab stack`: measures here what this machine permits, says what it does not, and leaves nothing behind.

use crate::common::{Folder, said};
use serde_json::Value;

fn text(folder: &Folder, file: &str) -> String {
    std::fs::read_to_string(folder.0.join(file)).unwrap()
}

/// Loop devices and mounts, but for those others made meanwhile.
fn left_behind(folder: &Folder) -> Vec<String> {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let own = folder.0.to_string_lossy().into_owned();
    mounts.lines().filter(|line| line.contains(&own)).map(String::from).collect()
}

#[test]
fn every_layer_is_measured_or_says_why_not() {
    let folder = Folder::new("stack");
    let mut command = folder.nvlab(&[
        "stack",
        "--quick",
        "--rounds",
        "4",
        "--json",
        "--html",
        "page.html",
        "--svg",
        "plot.svg",
    ]);
    let output = command.env("TMPDIR", &folder.0).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let layers = document["layers"].as_array().unwrap();
    let missing = document["not_measured"].as_array().unwrap();
    for layer in missing {
        eprintln!("SKIPPED: {}: {}", layer["layer"], layer["reason"]);
        assert!(layer["reason"].as_str().unwrap().len() > 5, "{layer}");
    }
    let mut names: Vec<&str> =
        layers.iter().chain(missing).map(|layer| layer["layer"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 20, "{names:?}");
    let wall = |name: &str, op: &str| {
        let found = layers.iter().find(|layer| layer["layer"] == name && layer["op"] == op);
        found.and_then(|layer| layer["wall_ns"]["median"].as_f64())
    };
    // What needs no rights. A layer above another takes longer, however busy the machine is.
    let (call, tmpfs) = (wall("system call", "read").unwrap(), wall("tmpfs", "read").unwrap());
    assert!(call > 10.0 && tmpfs > call, "system call {call} ns, tmpfs {tmpfs} ns");
    for layer in layers {
        let (wall, method) = (&layer["wall_ns"]["median"], layer["method"].as_str().unwrap());
        assert!(wall.as_f64().unwrap() > 0.0 && !method.is_empty(), "{layer}");
    }
    for path in document["paths"].as_array().unwrap() {
        let stages = path["stages"].as_array().unwrap().iter();
        let sum: f64 = stages.map(|stage| stage["ns"].as_f64().unwrap()).sum();
        let whole = path["sum_ns"].as_f64().unwrap();
        assert!((sum + path["device_ns"].as_f64().unwrap() - whole).abs() < 1e-3, "{path}");
    }
    let page = text(&folder, "page.html");
    assert!(page.contains("<svg") && page.contains("system call, page fault"), "no plot");
    let plot = text(&folder, "plot.svg");
    assert!(
        plot.starts_with("<svg xmlns=")
            && plot.contains("waiting and wake-ups")
            && plot.contains("tmpfs (read)"),
        "{plot}"
    );
    assert_eq!(left_behind(&folder), Vec::<String>::new());
}

/// The file is written if the stages add up; if another program disturbed, the status says so and nothing is written.
#[test]
fn a_path_becomes_a_file_of_stages() {
    let folder = Folder::new("stack-path");
    let written = (0..5).any(|_| {
        let arguments = ["stack", "--quick", "--path", "tmpfs", "--op", "write", "--stages", "stages.toml"];
        let output = folder.run(&arguments);
        match output.status.code() {
            Some(0) => true,
            Some(1) => {
                eprintln!("{}", said(&output));
                assert!(said(&output).contains("tmpfs: the stage"), "{}", said(&output));
                assert!(!folder.0.join("stages.toml").exists());
                false
            }
            _ => panic!("{}", said(&output)),
        }
    });
    if !written {
        return eprintln!("SKIPPED: other programs disturbed every measurement");
    }
    let file = text(&folder, "stages.toml");
    assert!(file.starts_with("schema = 1\n\n[stack]\n"), "{file}");
    assert_eq!(file.matches("\n[[stage]]\n").count(), 3, "{file}");
    assert!(file.contains("name   = \"system call\"\nwhen   = \"submit\"\ncpu    = \""), "{file}");
}

#[test]
fn stack_says_why_it_cannot() {
    let folder = Folder::new("stack-wrong");
    for (arguments, status, why) in [
        (&["stack", "--path", "ext5"][..], 2, "write one of mmap, tmpfs"),
        (&["stack", "--size", "5000B"], 2, "a multiple of 4 KiB"),
        (&["stack", "--stages", "x.toml"], 2, "--path"),
    ] {
        let output = folder.run(arguments);
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        assert!(said(&output).contains(why), "{}", said(&output));
    }
}
