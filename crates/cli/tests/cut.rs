//! `nvlab cut`: an honest device loses nothing, one that ignores FLUSH is found out and its failure fails again.

mod common;

use common::{Folder, said};
use std::process::Output;

const DESIGN: &str = "ssd-mlc-2010,media.mlc.blocks=64,ftl.spare=30%,ftl.buffer.size=1MiB";
/// Writes numbers, each made durable before it is printed; so many of each that a buffer is not empty again soon.
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
        said(&failed).contains("without any cut the program ended with exit status: 3"),
        "{}",
        said(&failed)
    );
}

#[test]
fn what_cannot_be_says_why() {
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
    wrong(&["--check", "program,program=x", "--", "true"], "there is one of this kind already");
    wrong(&["--check", "program", "--replay", "x"], "needs the program");
    wrong(&["--replay", "nowhere"], "nowhere: ");
    wrong(&["--", "true"], "the program changed nothing");
    wrong(&["--", "./no-such-program"], "cannot run ./no-such-program");
    wrong(&[], "PROGRAM");
    std::fs::write(folder.0.join("torn"), "[{\"schema\":\"nvlab.cut/1\"").unwrap();
    wrong(&["--replay", "torn"], "torn: ");
}
