//! Folders of states: what is not ours is refused and stays as it is, what is missing is named.

use crate::common::{Folder, design, options, permitted};
use nvlab_serve::served::{Drive, DriveOptions, Start};
use nvlab_serve::{ServeError, TimeMode, WindowServer};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

const MLC: (&str, &[&str]) =
    ("ssd-mlc-2010", &["media.mlc.blocks=64", "ftl.spare=30%", "ftl.buffer.size=1MiB"]);

fn open(state: &Path) -> Result<Drive, ServeError> {
    let options =
        DriveOptions { state: Some(state.to_path_buf()), time: TimeMode::Fast, ..DriveOptions::default() };
    Drive::open(MLC.0, &design(MLC.0, MLC.1), &options)
}

/// What lies in a folder: names and contents, of folders nothing.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.clone(), fs::read(&path).unwrap_or_default())).collect()
}

/// Refused with an error that names the folder and says `why`; nothing in it changes.
fn refused(folder: &Path, error: Option<ServeError>, before: &BTreeMap<PathBuf, Vec<u8>>, why: &str) {
    let error = error.unwrap_or_else(|| panic!("{} was taken", folder.display()));
    assert!(matches!(error, ServeError::State { .. }), "{error:?}");
    let said = error.to_string();
    assert!(said.contains(folder.to_str().unwrap()) && said.contains(why), "{said}");
    assert!(contents(folder) == *before, "{}: {:?}", folder.display(), contents(folder).keys());
}

/// A user's folder may hold files that are called as those of a state.
#[test]
fn a_folder_of_somebody_else_is_refused_and_stays_as_it_is() {
    for name in ["nand", "battery", "lock", "sram", "letters"] {
        let folder = Folder::new(&format!("states-{name}"));
        fs::write(folder.0.join(name), "what somebody wrote").unwrap();
        let before = contents(&folder.0);
        refused(&folder.0, open(&folder.0).err(), &before, name);
        if let Err(ServeError::NotPermitted(_)) = WindowServer::open(&options(64, 16, None)) {
            continue;
        }
        refused(&folder.0, WindowServer::open(&options(64, 16, Some(&folder.0))).err(), &before, name);
    }
}

/// A state whose record is gone, or that is of the other kind, is not begun anew.
#[test]
fn a_state_without_its_record_is_not_new() {
    let folder = Folder::new("states-record");
    let drive = open(&folder.0).unwrap();
    drive.write(drive.session(), 0, &[7; 4096], true).unwrap();
    drive.close().unwrap();
    drop(drive);
    if let Some(error) = WindowServer::open(&options(64, 16, Some(&folder.0))).err()
        && !matches!(error, ServeError::NotPermitted(_))
    {
        refused(&folder.0, Some(error), &contents(&folder.0), "state.json");
    }
    let record = fs::read(folder.0.join("device.json")).unwrap();
    fs::remove_file(folder.0.join("device.json")).unwrap();
    refused(&folder.0, open(&folder.0).err(), &contents(&folder.0), "device.json");
    fs::write(folder.0.join("device.json"), record).unwrap();
    let drive = open(&folder.0).unwrap();
    assert_eq!(drive.start(), Start::Closed);
    let mut found = [0; 4096];
    drive.read(drive.session(), 0, &mut found).unwrap();
    assert_eq!(found, [7; 4096]);
}

#[test]
fn a_medium_that_is_missing_is_named_and_not_made() {
    let folder = Folder::new("states-medium");
    open(&folder.0).unwrap().close().unwrap();
    fs::remove_file(folder.0.join("nand")).unwrap();
    let before = contents(&folder.0);
    let said = open(&folder.0).err().expect("no medium").to_string();
    assert!(said.contains("nand") && said.contains("No such file"), "{said}");
    assert!(contents(&folder.0) == before);
}

/// What should be a file and is something else is an error, not a wait.
#[test]
fn a_state_with_other_things_than_files_is_refused() {
    for name in ["device.json", "nand", "lock"] {
        for kind in ["fifo", "link", "folder"] {
            let folder = Folder::new(&format!("states-{kind}-{name}"));
            open(&folder.0).unwrap().close().unwrap();
            let (path, elsewhere) = (folder.0.join(name), folder.0.join("elsewhere"));
            fs::rename(&path, &elsewhere).unwrap();
            match kind {
                "fifo" => {
                    let path = CString::new(path.to_str().unwrap()).unwrap();
                    // SAFETY: the path is a C string.
                    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
                }
                "link" => std::os::unix::fs::symlink(&elsewhere, &path).unwrap(),
                _ => fs::create_dir(&path).unwrap(),
            }
            let (done, wait) = mpsc::channel();
            let state = folder.0.clone();
            std::thread::spawn(move || done.send(open(&state).err().map(|error| error.to_string())));
            let said = wait.recv_timeout(Duration::from_secs(20)).expect("an answer");
            let said = said.unwrap_or_else(|| panic!("a {kind} was taken for {name}"));
            assert!(said.contains(name), "{kind} for {name}: {said}");
        }
    }
}

#[test]
fn a_state_is_permitted_where_nothing_is() {
    let folder = Folder::new("states-new");
    let below = folder.0.join("not/there/yet");
    open(&below).unwrap().close().unwrap();
    // What a server leaves that was killed while it took the folder.
    for name in ["lock", "device.json.new"] {
        let begun = folder.0.join(format!("begun-{name}"));
        fs::create_dir(&begun).unwrap();
        fs::write(begun.join(name), if name == "lock" { "" } else { "{\"form" }).unwrap();
        open(&begun).unwrap().close().unwrap();
    }
    if let Some(server) = permitted(WindowServer::open(&options(64, 16, Some(&folder.0.join("window"))))) {
        server.close().unwrap();
    }
}
