//! `nvlab serve --state` and `--fuse`: folders and files have names that neither collide nor lead elsewhere; a server that
//! ends early says why.

use crate::common::{Folder, said};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const SMALL: &str = "ssd-mlc-2010,media.mlc.blocks=64,ftl.buffer.size=1MiB";

fn serve(folder: &Folder, arguments: &[&str]) -> Output {
    folder.run(&[&["serve"], arguments].concat())
}

#[test]
fn variants_of_a_design_have_folders_and_files_of_their_own() {
    let folder = Folder::new("states-variants");
    let variants = [format!("{SMALL},ftl.spare=30%"), format!("{SMALL},ftl.spare=40%")];
    let both = [&variants[0][..], &variants[1]];
    let end = ["--state", "kept", "--time", "fast", "--", "sh", "-c"];
    let again = |face: &[&str], script: &str| serve(&folder, &[&both, face, &end, &[script]].concat());
    let output = again(&["--nbd", "socket"], "true");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let states: Vec<_> = fs::read_dir(folder.0.join("kept")).unwrap().collect();
    assert_eq!(states.len(), 2, "{states:?}");
    // One of them alone, in its own folder; serving the other design from that folder reports what differs.
    let state = states[0].as_ref().unwrap().path();
    let state = state.to_str().unwrap();
    let outputs =
        both.map(|design| serve(&folder, &[design, "--nbd", "socket", "--state", state, "--", "true"]));
    let refused: Vec<&Output> = outputs.iter().filter(|output| output.status.code() == Some(2)).collect();
    assert_eq!(refused.len(), 1, "{outputs:?}");
    assert!(said(refused[0]).contains("ftl.spare"), "{}", said(refused[0]));
    let output =
        again(&["--fuse", "mounted"], "ls mounted | wc -l; printf x | dd of=\"$NVLAB_DEV\" conv=notrunc");
    if output.status.code() == Some(4) {
        return eprintln!("SKIPPED: {}", said(&output));
    }
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "2");
}

#[test]
fn a_design_that_is_called_like_a_path_stays_inside() {
    let folder = Folder::new("states-name");
    for name in ["../../x", "..", ".", "a/b"] {
        let text = format!("schema = 1\n[design]\nname = \"{name}\"\nextends = \"builtin:ssd-mlc-2010\"\n");
        fs::write(folder.0.join("odd.toml"), text).unwrap();
        let face = ["--nbd", "socket", "--state", "in/the/folder", "--", "true"];
        let output = serve(&folder, &[&["odd.toml", SMALL][..], &face].concat());
        assert_eq!(output.status.code(), Some(2), "{name}: {}", said(&output));
        assert!(said(&output).contains(&format!("`{name}`")), "{name}: {}", said(&output));
        let output = serve(&folder, &["odd.toml", "--fuse", "mounted", "--", "true"]);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", said(&output));
        assert!(said(&output).contains(&format!("`{name}`")), "{name}: {}", said(&output));
    }
    assert!(!folder.0.join("in/x").exists() && !folder.0.join("in/the/device.json").exists());
}

/// Undone however the test ends.
struct Unmount(String);

impl Drop for Unmount {
    fn drop(&mut self) {
        for [tool, how] in [["fusermount3", "-uz"], ["umount", "-l"]] {
            let _ = Command::new(tool).args([how, &self.0]).stderr(Stdio::null()).status();
        }
    }
}

#[test]
fn a_mount_that_a_killed_server_left_is_called_that() {
    let folder = Folder::new("states-stale");
    let place = folder.0.join("mounted");
    let _unmount = Unmount(place.to_str().unwrap().into());
    let killed = serve(&folder, &[SMALL, "--fuse", "mounted", "--", "sh", "-c", "kill -9 $PPID; sleep 9"]);
    if killed.status.code() == Some(4) {
        return eprintln!("SKIPPED: {}", said(&killed));
    }
    assert_eq!(killed.status.signal(), Some(9), "{}", said(&killed));
    for verb in ["serve", "cut"] {
        let output = folder.run(&[verb, SMALL, "--fuse", "mounted", "--", "true"]);
        assert_eq!(output.status.code(), Some(2), "{verb}: {}", said(&output));
        assert!(said(&output).contains("umount"), "{verb}: {}", said(&output));
    }
}

/// As when the disk is full: a page of a medium cannot be allocated.
#[test]
fn a_medium_that_fails_ends_the_server_with_a_word() {
    let folder = Folder::new("states-bus");
    let script = "truncate -s 0 kept/nand; kill -USR1 $PPID; sleep 20";
    let face = ["--nbd", "socket", "--state", "kept", "--", "sh", "-c", script];
    let output = serve(&folder, &[&[SMALL][..], &face].concat());
    assert_eq!(output.status.code(), Some(4), "{:?}: {}", output.status, said(&output));
    assert!(said(&output).contains("kept/nand"), "{}", said(&output));
}

/// A server that is still reading its state can be ended at once.
#[test]
fn a_server_can_be_ended_while_it_opens_a_state() {
    let folder = Folder::new("states-term");
    let arguments = ["serve", "bench-16g", "--nbd", "socket", "--state", "kept"];
    let killed = folder.run(&[&arguments[..], &["--", "sh", "-c", "kill -9 $PPID"]].concat());
    assert_eq!(killed.status.signal(), Some(9), "{}", said(&killed));
    let begun = Instant::now();
    let server = folder.nvlab(&arguments).stderr(Stdio::piped()).spawn().unwrap();
    // It reads its medium as soon as that is mapped, which takes a long time.
    let maps = format!("/proc/{}/maps", server.id());
    while !std::fs::read_to_string(&maps).unwrap_or_default().contains("kept/nand") {
        assert!(begun.elapsed() < Duration::from_secs(60), "it maps no medium");
        std::thread::sleep(Duration::from_millis(1));
    }
    let killed = Command::new("kill").arg("-TERM").arg(server.id().to_string()).status();
    assert!(killed.unwrap().success());
    let output = server.wait_with_output().unwrap();
    eprintln!("ended after {:?}", begun.elapsed());
    assert_eq!(output.status.signal(), Some(15), "{}: {}", output.status, said(&output));
}
