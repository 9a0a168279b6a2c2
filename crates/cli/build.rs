//! Tells the program which commit it was built from, if it was built in a checkout, and has a release linked to a smaller file.

use std::path::PathBuf;
use std::process::{Command, Stdio};

fn main() {
    println!("cargo:rerun-if-changed=../../.git/HEAD");
    println!("cargo:rerun-if-changed=../../.git/logs/HEAD");
    let described = Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=12"]).output();
    let commit = match described {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_string(),
        _ => String::new(),
    };
    println!("cargo:rustc-env=NVLAB_COMMIT={commit}");
    if variable("PROFILE") == "release" {
        let smaller = SMALLER.iter().filter(|argument| links_and_runs(argument));
        smaller.for_each(|argument| println!("cargo:rustc-link-arg-bins={argument}"));
    }
}

/// What makes the file smaller, where linker and C library know it: functions with the same code are one, and relocations are
/// packed.
const SMALLER: [&str; 2] = ["-Wl,--icf=all", "-Wl,-z,pack-relative-relocs"];

/// True if a program linked with `argument` runs here; false if that cannot be told, as for another machine.
fn links_and_runs(argument: &str) -> bool {
    let out = PathBuf::from(variable("OUT_DIR"));
    let (source, program) = (out.join("trial.rs"), out.join("trial"));
    if std::fs::write(&source, "fn main() {}").is_err() {
        return false;
    }
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--target", &variable("TARGET"), "-C", &format!("link-arg={argument}"), "-o"]);
    rustc.arg(&program).arg(&source);
    if let Ok(linker) = std::env::var("RUSTC_LINKER") {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    if let Ok(flags) = std::env::var("CARGO_ENCODED_RUSTFLAGS") {
        rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    }
    let done = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    done(&mut rustc) && done(&mut Command::new(program))
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
