//! Recordings that every experiment finds, from whatever folder it is run: `builtin:raw`. How they were made is in
//! `traces/README.md`.

use crate::TraceError;
use nvlab_units::suggest;
use std::path::Path;

/// What their names begin with.
pub(crate) const PREFIX: &str = "builtin:";

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        /// Every one: its name and its file.
        const BUILT_IN: &[(&str, &[u8])] =
            &[$(($name, include_bytes!(concat!("../../../traces/applications/", $name, ".nvt")))),*];
    };
}
built_in!(
    "bdb-btree",
    "bdb-hash",
    "berkeley-db-b-tree",
    "berkeley-db-hash",
    "berkeley-db-six-degrees",
    "berkeley-db-sps",
    "file",
    "is",
    "matmul",
    "pg-query",
    "pg-scan",
    "raw"
);

/// The name of a built-in trace, if `path` is one.
pub(crate) fn name(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(PREFIX)
}

/// Its file.
pub(crate) fn bytes(name: &str) -> Result<&'static [u8], TraceError> {
    let found = BUILT_IN.iter().find(|(known, _)| *known == name);
    found.map(|(_, bytes)| *bytes).ok_or_else(|| {
        let names = BUILT_IN.iter().map(|(known, _)| *known);
        let (hint, known) = (suggest::hint(name, names.clone()), names.collect::<Vec<_>>().join(", "));
        TraceError::Refused {
            what: format!("{PREFIX}{name}"),
            reason: format!("there is no such trace{hint} (known: {known})"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, read};

    #[test]
    fn every_recording_reads_and_has_response_times() {
        for (name, bytes) in BUILT_IN {
            let (columns, _) = read(format!("{PREFIX}{name}").as_ref(), &ReadOptions::default()).unwrap();
            assert!(columns.len() > 1000 && columns.response_ps().is_some(), "{name}: {} B", bytes.len());
        }
    }

    #[test]
    fn an_unknown_recording_is_answered_with_the_nearest() {
        let error = read("builtin:bdb-tree".as_ref(), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("did you mean") && error.contains("bdb-btree"), "{error}");
    }
}
