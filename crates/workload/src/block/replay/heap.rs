//! Programs that keep objects: `heap:STORE-WORKLOAD`. Those of Berkeley DB are recorded, the others made when they are read.

use crate::WorkloadError;
use crate::objects::{Workload, program};
use nvlab_trace::{Columns, ReadOptions, ReadReport};
use nvlab_units::suggest;
use std::path::Path;

/// What their names begin with.
pub(super) const PREFIX: &str = "heap:";

const RECORDED: &str = "berkeley-db";

/// The name of a program, if `path` is one.
pub(super) fn name(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(PREFIX)
}

/// Reads a recorded one, and makes another.
pub(super) fn read(name: &str, options: &ReadOptions) -> Result<(Columns, ReadReport), WorkloadError> {
    let recorded = Workload::ALL.map(|workload| format!("{RECORDED}-{}", workload.name()));
    if recorded.iter().any(|recorded| recorded == name) {
        return Ok(nvlab_trace::read(format!("builtin:{name}").as_ref(), options)?);
    }
    let refuse = |reason| Err(WorkloadError::DoesNotFit { what: format!("{PREFIX}{name}"), reason });
    if options.format.is_some() || !options.volumes.is_empty() {
        return refuse("it takes neither a format nor volumes".into());
    }
    match program::program(name) {
        Some(Ok(columns)) => {
            let report = ReadReport { requests: columns.len() as u64, ..ReadReport::default() };
            Ok((columns, report))
        }
        Some(Err(error)) => refuse(format!("it failed on this machine: {error}")),
        None => {
            let names: Vec<String> = program::names().chain(recorded).collect();
            let hint = suggest::hint(name, names.iter().map(String::as_str));
            refuse(format!("there is no such program{hint} (known: {})", names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;

    /// A log write and a flush for each transaction that changes something, and nothing is read.
    #[test]
    fn recordings_of_berkeley_db_force_the_log_once_a_transaction() {
        for (name, fewest) in [("sps", 2000), ("b-tree", 2000), ("hash", 2000), ("six-degrees", 900)] {
            let (columns, _) = read(&format!("{RECORDED}-{name}"), &ReadOptions::default()).unwrap();
            let count = |wanted: Op| columns.ops().filter(|&op| op == wanted).count();
            assert!(columns.response_ps().is_some());
            assert!(count(Op::Flush) >= fewest && count(Op::Write) >= fewest, "{name}");
            assert!(count(Op::Read) < 100, "{name}: the data are in memory: {} reads", count(Op::Read));
        }
    }

    #[test]
    fn an_unknown_heap_program_is_answered_with_the_nearest() {
        let error = read("durable-spx", &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.contains("did you mean") && error.contains("durable-sps"), "{error}");
    }
}
