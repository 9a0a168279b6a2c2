//! `nvlab cut`: an honest device loses nothing, one that ignores FLUSH is detected and its failure reproduces.

use crate::common::{Folder, said};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const DESIGN: &str = "ssd-mlc-2010,media.mlc.blocks=64,ftl.spare=30%,ftl.buffer.size=1MiB";
/// Writes numbers, each made durable before it is printed; enough copies of each that a buffer takes a while to drain.
const PROGRAM: &str = "for i in 1 2 3 4 5 6 7 8 9; do \
    head -c 1048576 /dev/zero | tr '\\0' $i >data; \
    dd if=data of=\"$NVLAB_DEV\" bs=1M seek=$i conv=notrunc,fsync 2>/dev/null; echo $i; done";
/// Reads back what was printed before the cut.
const CHECK: &str = "program=for i in $(cat \"$NVLAB_MARKS\"); do \
    test $(dd if=\"$NVLAB_DEV\" bs=1M skip=$i count=1 2>/dev/null | tr -d $i | wc -c) = 0 || exit 1; done";

fn run_cut(folder: &Folder, arguments: &[&str]) -> Output {
    folder.run(&[&["cut", DESIGN], arguments].concat())
}

#[test]
fn a_lie_is_found_and_kept_for_replay() {
    let folder = Folder::new("cut-lie");
    let cut = |more: &[&str], check: &str, program: &str| {
        let common = ["--fuse", "dev", "--cuts", "20", "--check", check];
        run_cut(&folder, &[&common[..], more, &["--", "sh", "-c", program]].concat())
    };
    let honest = cut(&[], CHECK, PROGRAM);
    if honest.status.code() == Some(4) {
        return eprintln!("SKIPPED: {}", said(&honest));
    }
    assert_eq!(honest.status.code(), Some(0), "{}", said(&honest));
    assert!(said(&honest).contains("printed 9 lines"), "{}", said(&honest));
    assert!(said(&honest).contains(" cuts: nothing was lost"), "{}", said(&honest));

    let lying = cut(&["--ignore-flush", "--json"], CHECK, PROGRAM);
    assert_eq!(lying.status.code(), Some(1), "{}", said(&lying));
    let found: serde_json::Value = serde_json::from_slice(&lying.stdout).unwrap();
    let losses = found["losses"].as_array().unwrap();
    assert!(losses.iter().all(|loss| loss["of_device"] == true), "{found}");
    assert!(losses.iter().any(|loss| loss["on_it"] == true), "the program noticed nothing: {found}");
    assert!(said(&lying).contains("smallest failing run: 2 operations"), "{}", said(&lying));
    let again = run_cut(&folder, &["--replay", "cut-failure.nvcut"]);
    assert_eq!(again.status.code(), Some(1), "{}", said(&again));
    assert!(said(&again).contains("was durable"), "{}", said(&again));

    let vacuous = cut(&[], "program=exit 7", PROGRAM);
    assert_eq!(vacuous.status.code(), Some(2), "{}", said(&vacuous));
    assert!(said(&vacuous).contains("it proves nothing"), "{}", said(&vacuous));
    let failed = cut(&[], "device", "exit 3");
    assert!(
        said(&failed).contains("even without a cut, the program ended with exit status: 3"),
        "{}",
        said(&failed)
    );
}

#[test]
fn cut_says_why_it_cannot() {
    let folder = Folder::new("cut-wrong");
    let wrong = |arguments: &[&str], why: &str| {
        let output = run_cut(&folder, arguments);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(why), "{}", said(&output));
    };
    wrong(&["--check", "fs=ntfs", "--", "true"], "write fs=ext4, fs=xfs or fs=btrfs");
    wrong(
        &["--check", "everything", "--", "true"],
        "write device, fs=ext4|xfs|btrfs, program or program=SCRIPT",
    );
    wrong(&["--check", "program,program=x", "--", "true"], "there already is a check of this kind");
    wrong(&["--check", "program", "--replay", "x"], "needs the program");
    wrong(&["--replay", "nowhere"], "nowhere: ");
    wrong(&["--", "true"], "the program wrote nothing");
    wrong(&["--", "./no-such-program"], "cannot run ./no-such-program");
    wrong(&[], "PROGRAM");
    std::fs::write(folder.0.join("torn"), "[{\"schema\":\"nvlab.cut/1\"").unwrap();
    wrong(&["--replay", "torn"], "torn: ");
}

/// A user who may not make loop devices learns what is missing and what to do instead.
#[test]
fn a_right_that_is_missing_is_a_matter_of_the_machine() {
    let folder = Folder::new("cut-rights");
    let tools = folder.0.join("tools");
    fs::create_dir(&tools).unwrap();
    let losetup = tools.join("losetup");
    fs::write(
        &losetup,
        "#!/bin/sh\necho 'losetup: cannot find an unused loop device: Permission denied' >&2; exit 1",
    )
    .unwrap();
    fs::set_permissions(&losetup, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let arguments = ["cut", DESIGN, "--check", "fs=ext4", "--", "true"];
    let output = folder.nvlab(&arguments).env("PATH", path).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    // Where FUSE is missing too, that is what is said.
    assert!(said(&output).contains("needs root") || said(&output).contains("FUSE"), "{}", said(&output));
}

/// Links that another user put at predictable names are neither followed nor used.
#[test]
fn nothing_is_written_through_a_link() {
    let folder = Folder::new("cut-links");
    let (victim, trap, tmp) = (folder.0.join("victim"), folder.0.join("trap"), folder.0.join("tmp"));
    fs::write(&victim, "precious").unwrap();
    [&trap, &tmp].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let script = "ln -s \"$PWD/trap\" tmp/nvlab-cut-$$ && ln -s \"$PWD/victim\" /dev/shm/nvlab-cut-$$ && exec \"$0\" \"$@\"";
    let write = "printf x | dd of=\"$NVLAB_DEV\" conv=notrunc,fsync";
    let arguments =
        ["cut", DESIGN, "--fuse", "dev", "--cuts", "3", "--check", "program=true", "--", "sh", "-c"];
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_nvlab")]).args(arguments).arg(write);
    command.env("TMPDIR", &tmp).current_dir(&folder.0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let link = PathBuf::from(format!("/dev/shm/nvlab-cut-{}", child.id()));
    let output = child.wait_with_output().unwrap();
    let _ = fs::remove_file(link);
    if output.status.code() == Some(4) {
        return eprintln!("SKIPPED: {}", said(&output));
    }
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(names(&trap), [""; 0], "a folder of somebody else was used");
    assert_eq!(names(&tmp), [format!("nvlab-cut-{}", link_number(&tmp))]);

    // A file is replaced only if it holds a failure.
    std::os::unix::fs::symlink(&victim, folder.0.join("cut-failure.nvcut")).unwrap();
    let lie = ["--fuse", "dev", "--cuts", "20", "--ignore-flush", "--", "sh", "-c", PROGRAM];
    let output = run_cut(&folder, &lie);
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(said(&output).contains("cut-failure.nvcut"), "{}", said(&output));
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}

/// The number of the process in the name of the only link there.
fn link_number(folder: &Path) -> String {
    names(folder)[0].rsplit('-').next().unwrap().to_string()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Ended while the program is recorded, or while a cut is checked: no mount, loop device, folder, shared memory or process
/// is left behind.
#[test]
fn an_end_by_signal_leaves_nothing_behind() {
    for phase in ["run", "check"] {
        let folder = Folder::new(&format!("cut-term-{phase}"));
        let (tmp, ready) = (folder.0.join("tmp"), folder.0.join("ready"));
        fs::create_dir(&tmp).unwrap();
        let program = format!(
            "echo x >file; sync; test $NVLAB_PHASE = {phase} || exit 0; sleep 61 & \
             echo \"$! $NVLAB_DEV\" >{ready}.new && mv {ready}.new {ready}; wait",
            ready = ready.display()
        );
        let arguments =
            ["cut", DESIGN, "--cuts", "5", "--check", "fs=ext4,program", "--", "sh", "-c", &program];
        let mut command = folder.nvlab(&arguments);
        command.env("TMPDIR", &tmp).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let begun = Instant::now();
        while !ready.exists() && child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{phase}: nothing happens");
            std::thread::sleep(Duration::from_millis(5));
        }
        if child.try_wait().unwrap().is_some() {
            return eprintln!("SKIPPED: {}", said(&child.wait_with_output().unwrap()));
        }
        let asked = Instant::now();
        assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let left = left_behind(&folder, &fs::read_to_string(&ready).unwrap());
        assert_eq!(left, [""; 0], "{phase}: {}: {}", output.status, said(&output));
        assert_eq!(output.status.code(), Some(130), "{phase}: {}", said(&output));
        assert!(asked.elapsed() < Duration::from_secs(20), "{phase}: it took {:?}", asked.elapsed());
    }
}

/// What is left of a run in this folder whose program printed its process id and its device; releases it.
fn left_behind(folder: &Folder, ready: &str) -> Vec<String> {
    let (process, device) = ready.trim().split_once(' ').unwrap();
    let mut left = Vec::new();
    // A zombie counts as gone.
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    if status.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z")) {
        left.push(format!("process {process}"));
        let _ = Command::new("kill").args(["-9", process]).status();
    }
    let here = folder.0.to_str().unwrap();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    for mount in mounts.lines().rev().filter_map(|line| line.split(' ').nth(1)) {
        if mount.starts_with(here) {
            left.push(format!("mounted: {mount}"));
            let _ = Command::new("umount").args(["-l", mount]).status();
        }
    }
    let loops = Command::new("losetup").args(["-n", "-O", "NAME,BACK-FILE"]).output().unwrap();
    for line in String::from_utf8_lossy(&loops.stdout)
        .lines()
        .filter(|line| line.contains(here) || line.contains(device))
    {
        left.push(format!("loop device: {line}"));
        let _ = Command::new("losetup").args(["-d", line.split(' ').next().unwrap()]).status();
    }
    left.extend(names(&folder.0.join("tmp")));
    if Path::new(device).exists() {
        left.push(format!("device: {device}"));
        let _ = fs::remove_file(device);
    }
    left
}
