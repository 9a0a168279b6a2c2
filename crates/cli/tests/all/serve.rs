//! `nvlab serve`: nvlab exits with the program's status, reopens a state, and explains what is not possible.

use crate::common::{Folder, said};
use std::process::Output;

fn run_serve(folder: &Folder, arguments: &[&str]) -> Output {
    folder.run(&[&["serve"], arguments].concat())
}

/// True, after printing so, on a machine that does not permit userfaultfd.
fn skipped(output: &Output) -> bool {
    let not_permitted = output.status.code() == Some(4);
    if not_permitted {
        eprintln!("SKIPPED: {}", said(output));
    }
    not_permitted
}

#[test]
fn the_programs_status_is_nvlabs() {
    let folder = Folder::new("serve-status");
    let serve =
        |script: &str| run_serve(&folder, &["envy", "--mem", "--size", "4MiB", "--", "sh", "-c", script]);
    let output = serve("echo \"to stdout $NVLAB_WINDOW\"");
    if skipped(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("to stdout /proc/"), "{output:?}");
    assert_eq!(serve("exit 3").status.code(), Some(3));
    assert_eq!(serve("kill -9 $$").status.code(), Some(128 + 9));
    // Bypassing the preloaded library, nothing can be stored that would be lost.
    let output = serve("echo lost > \"$NVLAB_WINDOW\"");
    assert!(!output.status.success() && said(&output).contains("not permitted"), "{}", said(&output));
}

#[test]
fn a_served_state_survives_a_restart() {
    let folder = Folder::new("serve-state");
    let serve = |more: &[&str]| {
        run_serve(&folder, &[&["envy", "--mem", "--state", "kept"][..], more, &["--", "true"][..]].concat())
    };
    let output = serve(&["--size", "4MiB"]);
    if skipped(&output) {
        return;
    }
    assert!(said(&output).contains("a memory of 4 MiB, all zero"), "{}", said(&output));
    assert!(said(&serve(&[])).contains("a memory of 4 MiB, as it was left"));
    let output = serve(&["--size", "8MiB"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("holds a window of 4194304 B"), "{}", said(&output));
}

/// The program has the address in its environment; at the end the counts are printed, and the state can be reopened.
#[test]
fn a_block_device_is_served_and_kept() {
    let folder = Folder::new("serve-device");
    let design = "ssd-mlc-2010,media.mlc.blocks=64,ftl.spare=30%,ftl.buffer.size=1MiB";
    let serve = |script: &str| {
        let arguments = ["--nbd", "socket", "--time", "fast", "--state", "kept", "--", "sh", "-c", script];
        run_serve(&folder, &[&[design][..], &arguments].concat())
    };
    let output = serve("test -S socket && echo \"$NVLAB_URI\"");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("nbd+unix:///?socket=/"), "{output:?}");
    assert!(said(&output).contains(", new\n") && said(&output).contains("0 served"), "{}", said(&output));
    let output = serve("kill -USR1 $PPID; sleep 0.3; exit 5");
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(said(&output).contains("as it was left"), "{}", said(&output));
    assert!(said(&output).contains("the power failed after 0 operations"), "{}", said(&output));
    let other = run_serve(&folder, &["ssd-mlc-2010", "--nbd", "socket", "--state", "kept", "--", "true"]);
    assert_eq!(other.status.code(), Some(2), "{}", said(&other));
    assert!(said(&other).contains("holds a device of another design"), "{}", said(&other));
    let remote = run_serve(&folder, &[design, "--nbd", "0.0.0.0:0", "--", "true"]);
    assert!(said(&remote).contains("add --allow-remote"), "{}", said(&remote));
}

/// The same device as an NVMe drive.
#[test]
fn an_nvme_drive_is_served_and_kept() {
    let folder = Folder::new("serve-nvme");
    let design = "ssd-mlc-2010,media.mlc.blocks=64,ftl.spare=30%,ftl.buffer.size=1MiB";
    let serve = |address: &str, script: &str| {
        let arguments = ["--nvme", address, "--time", "fast", "--state", "kept", "--", "sh", "-c", script];
        run_serve(&folder, &[&[design][..], &arguments].concat())
    };
    let output = serve("127.0.0.1:0", "echo \"$NVLAB_NVME\"");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let place = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(place.starts_with("nvme+tcp://127.0.0.1:"), "{place}");
    assert!(place.contains("/nqn.2025-01.org.nvlab:ssd-mlc-2010:"), "{place}");
    assert!(said(&serve("localhost:0", "exit 0")).contains("as it was left"));
    assert!(said(&serve("0.0.0.0:0", "exit 0")).contains("add --allow-remote"));
    assert!(said(&serve("socket", "exit 0")).contains("write HOST:PORT"));
}

#[test]
fn serve_says_why_it_cannot() {
    let folder = Folder::new("serve-wrong");
    let wrong = |arguments: &[&str], why: &str| {
        let output = run_serve(&folder, arguments);
        if !skipped(&output) {
            assert_eq!(output.status.code(), Some(2), "{}", said(&output));
            assert!(said(&output).contains(why), "{}", said(&output));
        }
    };
    wrong(&["ssd-tlc", "--mem", "--", "true"], "only the design envy can");
    wrong(&["envy", "--", "true"], "--mem");
    wrong(&["envy", "--mem"], "PROGRAM");
    wrong(&["envy", "--mem", "--", "./no-such-program"], "cannot run ./no-such-program");
    wrong(&["envy", "--mem", "--size", "5000B", "--", "true"], "a multiple of 4096 B");
    wrong(&["envy", "--mem", "--resident", "4KiB", "--", "true"], "at least 65536 B are needed");
    wrong(&["envy", "--mem", "--http", "0.0.0.0:0", "--", "true"], "--allow-remote");
}
