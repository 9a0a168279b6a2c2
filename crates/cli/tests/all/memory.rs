//! Devices too large for this machine's memory: checked without building them, and refused with the number of bytes before
//! anything is allocated.

#![cfg(target_os = "linux")]

use crate::common::{Folder, said};
use std::process::Output;

/// 12 TB: 368 dies, 3 G mapping units.
const BIG: &str = r#"[design]
extends = "builtin:ssd-tlc"
[media.dram]
size = "16 GiB"
[array]
channels = 16
ways = 23
[ftl.buffer]
size = "256 MiB"
"#;

/// The program with 2 GiB of address space.
fn limited(folder: &Folder, arguments: &[&str]) -> Output {
    folder.nvlab_limited(2 << 20, arguments).output().unwrap()
}

#[test]
fn a_design_is_checked_without_its_device() {
    let folder = Folder::new("memory-check");
    std::fs::write(folder.0.join("big.toml"), BIG).unwrap();
    let output = limited(&folder, &["design", "check", "big.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    // 23 dies are more than a channel feeds.
    assert!(said(&output).starts_with("note: big.toml: media.tlc: ") && said(&output).lines().count() == 1);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "big.toml: correct\n");
}

#[test]
fn a_device_that_finds_no_memory_is_refused() {
    let folder = Folder::new("memory-run");
    std::fs::write(folder.0.join("big.toml"), BIG).unwrap();
    let workload = ["-w", "uniform", "--until", "10 io", "--precondition", "fresh"];
    let refused = |arguments: &[&str], needed: &str| {
        let output = limited(&folder, arguments);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(4), "{arguments:?}: {text}");
        assert!(text.contains(&format!("simulating it takes {needed} of memory; ")), "{text}");
        assert!(text.contains(" are available on this machine"), "{text}");
    };
    refused(&[&["run", "big.toml"][..], &workload].concat(), "23 GiB");
    // A device with bytes is recovered after a cut: a bit more for each unit.
    refused(&["serve", "big.toml", "--nbd", "nbd.sock", "--", "true"], "23.8 GiB");
    refused(&["image", "big.toml", "image.bin", "true"], "23.8 GiB");
    // Its tables fit, the bytes of its media do not.
    let output = limited(&folder, &["image", "ssd-tlc", "image.bin", "true"]);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(said(&output).contains("simulating it takes 130 GiB of memory; "), "{}", said(&output));
    assert!(!folder.0.join("image.bin").exists());
    // Whatever fits is run all the same.
    let compared =
        limited(&folder, &[&["compare", "bench-4g", "big.toml", "-j", "1"][..], &workload].concat());
    assert_eq!(compared.status.code(), Some(3), "{}", said(&compared));
    assert!(String::from_utf8_lossy(&compared.stdout).contains("bench-4g"), "{}", said(&compared));
}
