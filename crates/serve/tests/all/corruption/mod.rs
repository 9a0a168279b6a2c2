//! What may have become of the files of a state: bits, lengths, whole files, things that are no files, files of a user.

use nvlab_units::Rng;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What lies under a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A file.
    Bytes(Vec<u8>),
    /// A symbolic link to [`ELSEWHERE`].
    Link,
    /// An empty folder.
    Folder,
    /// A FIFO.
    Fifo,
}

/// A folder of a state.
pub type Files = BTreeMap<String, Content>;

/// A user's file beside the state, and what links point to.
pub const LETTERS: &str = "letters";
/// A file outside of the state.
pub const ELSEWHERE: &str = "elsewhere";
/// What is in either of them.
pub const WRITTEN: &[u8] = b"what somebody wrote";
const PAGE: usize = 4096;

/// Puts the files into a new folder; zeros become holes.
pub fn put(files: &Files, folder: &Path) {
    fs::create_dir(folder).unwrap();
    for (name, content) in files {
        let path = folder.join(name);
        match content {
            Content::Bytes(bytes) => {
                let file = File::create(&path).unwrap();
                file.set_len(bytes.len() as u64).unwrap();
                for (page, at) in bytes.chunks(PAGE).zip((0..).step_by(PAGE)) {
                    if page.iter().any(|&byte| byte != 0) {
                        file.write_all_at(page, at).unwrap();
                    }
                }
            }
            Content::Link => {
                let there = folder.parent().unwrap().join(ELSEWHERE);
                std::os::unix::fs::symlink(there, &path).unwrap();
            }
            Content::Folder => fs::create_dir(&path).unwrap(),
            Content::Fifo => {
                let path = CString::new(path.to_str().unwrap()).unwrap();
                // SAFETY: the path is a C string.
                assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
            }
        }
    }
}

/// What lies in a folder.
pub fn get(folder: &Path) -> Files {
    let content = |path: &Path| {
        let about = path.symlink_metadata().unwrap();
        match () {
            () if about.is_symlink() => Content::Link,
            () if about.is_dir() => Content::Folder,
            () if about.is_file() => Content::Bytes(fs::read(path).unwrap()),
            () => Content::Fifo,
        }
    };
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| (path.file_name().unwrap().to_str().unwrap().into(), content(&path))).collect()
}

/// One thing that happens to a state; in words. `other` is a state that parts may come from.
pub fn corrupt(files: &mut Files, other: &Files, rng: &mut Rng) -> String {
    let names: Vec<String> =
        files.keys().filter(|name| *name != "lock" && *name != LETTERS).cloned().collect();
    let Some(name) = (!names.is_empty()).then(|| pick(&names, rng).clone()) else {
        return "nothing is left".into();
    };
    match rng.below(16) {
        0 => {
            files.insert(LETTERS.into(), Content::Bytes(WRITTEN.to_vec()));
            "a user's file beside it".into()
        }
        1 => {
            files.remove(&name);
            format!("{name} removed")
        }
        2 => {
            let content = [Content::Link, Content::Folder, Content::Fifo][rng.below(3) as usize].clone();
            let what = format!("{name} is {content:?}");
            files.insert(name, content);
            what
        }
        3 => {
            let with = pick(&names, rng).clone();
            let (one, two) = (files[&name].clone(), files[&with].clone());
            files.insert(name.clone(), two);
            files.insert(with.clone(), one);
            format!("{name} and {with} swapped")
        }
        4 => match other.get(&name) {
            Some(content) => {
                files.insert(name.clone(), content.clone());
                format!("{name} of another state")
            }
            None => "nothing".into(),
        },
        _ => {
            let Some(Content::Bytes(bytes)) = files.get_mut(&name) else { return "nothing".into() };
            let from = match other.get(&name) {
                Some(Content::Bytes(from)) => &from[..],
                _ => &[],
            };
            let what = match name.ends_with(".json") {
                true => edit_text(bytes, rng),
                false => edit(bytes, from, rng),
            };
            format!("{name}: {what}")
        }
    }
}

fn pick<'a, T>(all: &'a [T], rng: &mut Rng) -> &'a T {
    &all[rng.below(all.len() as u64) as usize]
}

/// Where something is written, or anywhere.
fn place(bytes: &[u8], rng: &mut Rng) -> usize {
    for _ in 0..rng.below(400) {
        let at = rng.below(bytes.len() as u64) as usize / 8 * 8;
        if bytes[at..].iter().take(8).any(|&byte| byte != 0) {
            return at + rng.below(8) as usize % (bytes.len() - at);
        }
    }
    rng.below(bytes.len() as u64) as usize
}

fn range(bytes: &[u8], rng: &mut Rng) -> std::ops::Range<usize> {
    let unit = *pick(&[1, 4, 8, 16, 64, 512, 4096], rng);
    let start = place(bytes, rng) / unit * unit;
    let most = 1 << rng.below(6);
    let length = unit * (1 + rng.below(most) as usize);
    start..(start + length).min(bytes.len())
}

fn edit(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) -> String {
    let length = bytes.len();
    if length == 0 {
        bytes.push(1);
        return "a byte in what was empty".into();
    }
    match rng.below(16) {
        0 => {
            bytes.truncate(rng.below(length as u64) as usize);
            format!("{} B of {length} left", bytes.len())
        }
        1 => {
            bytes.resize(length + 1 + rng.below(10_000) as usize, rng.bits() as u8);
            format!("{} B instead of {length}", bytes.len())
        }
        2..=5 => {
            let most = 1 << rng.below(7);
            let flips = 1 + rng.below(most);
            let places: Vec<usize> = (0..flips).map(|_| place(bytes, rng)).collect();
            places.iter().for_each(|&at| bytes[at] ^= 1 << rng.below(8));
            format!("a bit flipped at each of {places:?}")
        }
        6 | 7 => {
            let range = range(bytes, rng);
            bytes[range.clone()].iter_mut().for_each(|byte| *byte = rng.bits() as u8);
            format!("random bytes at {range:?}")
        }
        8 => {
            let (range, value) = (range(bytes, rng), *pick(&[0, 1, 2, 3, 4, 0x7f, 0xff], rng));
            bytes[range.clone()].fill(value);
            format!("{value} at {range:?}")
        }
        9 | 10 => {
            let to = range(bytes, rng);
            let unit = if to.len() >= 512 { 512 } else { 4 };
            let from = (place(bytes, rng) / unit * unit).min(length - to.len());
            let copy = bytes[from..from + to.len()].to_vec();
            bytes[to.clone()].copy_from_slice(&copy);
            format!("{to:?} copied from {from}")
        }
        11 => {
            let to = range(bytes, rng);
            match other.get(to.clone()) {
                Some(part) => bytes[to.clone()].copy_from_slice(part),
                None => bytes[to.clone()].fill(0),
            }
            format!("{to:?} of another state")
        }
        12 => {
            bytes.iter_mut().for_each(|byte| *byte = rng.bits() as u8);
            "random bytes".into()
        }
        _ => {
            let at = (place(bytes, rng) / 4 * 4).min(length.saturating_sub(4));
            let old = bytes[at..].iter().take(4).rev().fold(0u32, |word, &byte| word << 8 | byte as u32);
            let values = [0, 1, u32::MAX, u32::MAX - 1, 1 << 31, old.wrapping_add(1), old.wrapping_sub(1)];
            let value = if rng.chance(0.3) { rng.below(1000) as u32 } else { *pick(&values, rng) };
            let count = (length - at).min(4);
            bytes[at..at + count].copy_from_slice(&value.to_le_bytes()[..count]);
            format!("{value:#x} instead of {old:#x} at {at}")
        }
    }
}

/// A record is edited as somebody would who knows its form.
fn edit_text(bytes: &mut Vec<u8>, rng: &mut Rng) -> String {
    if rng.chance(0.3) || bytes.is_empty() {
        return edit(bytes, &[], rng);
    }
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    let at = rng.below(lines.len().max(1) as u64) as usize;
    let Some(line) = lines.get(at).cloned() else { return "nothing".into() };
    let what = match rng.below(4) {
        0 => {
            lines.remove(at);
            "removed"
        }
        1 => {
            lines.insert(at, line.clone());
            "twice"
        }
        2 => {
            lines[at] = line.replace(|digit: char| digit.is_ascii_digit(), "9");
            "all nines"
        }
        _ => {
            let words =
                ["\"open\"", "\"closed\"", "-1", "1e99", "null", "[]", "\"\"", "18446744073709551616"];
            let before = line.find(':').map_or("", |colon| &line[..colon + 1]);
            lines[at] = format!("{before} {},", pick(&words, rng));
            "another value"
        }
    };
    *bytes = lines.join("\n").into_bytes();
    format!("line {} ({line}): {what}", at + 1)
}
