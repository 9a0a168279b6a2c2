//! The files to compile.

use crate::WorkloadError;
use std::path::{Path, PathBuf};

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its path from the root of its workspace, with `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// Every Rust file below a folder, by path; build output and hidden folders are left out.
pub fn sources_in(folder: &Path) -> Result<Vec<Source>, WorkloadError> {
    let mut paths = Vec::new();
    collect(folder, &mut paths)?;
    paths.sort();
    paths
        .into_iter()
        .map(|path| match std::fs::read_to_string(&path) {
            Ok(text) => {
                let inner = path.strip_prefix(folder).unwrap_or(&path);
                Ok(Source { path: inner.to_string_lossy().replace('\\', "/"), text })
            }
            Err(source) => Err(WorkloadError::File { path, source }),
        })
        .collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), WorkloadError> {
    let failed = |source| WorkloadError::File { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, name) = (entry.path(), entry.file_name());
        // A link to a folder may lead back here.
        if entry.file_type().map_err(failed)?.is_dir() {
            if name != "target" && !name.to_string_lossy().starts_with('.') {
                collect(&path, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// The default: 38 files of this workspace (the recoverable memory) as they once were, so that the work does not change
/// whenever a file does.
pub fn own_sources() -> Vec<Source> {
    let text =
        zstd::decode_all(&include_bytes!("sources.zst")[..]).expect("the snapshot was compressed by zstd");
    let text = String::from_utf8(text).expect("the snapshot is text");
    text.split("\u{1}")
        .filter_map(|file| file.split_once('\n'))
        .map(|(path, text)| Source { path: path.into(), text: text.into() })
        .collect()
}
