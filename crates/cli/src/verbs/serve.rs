//! `nvlab serve`: a design as memory for a program, or as a block device (`device`).

mod device;

pub use device::http_address;

use crate::args::Serve;
use crate::failure::Failure;
use crate::output::Output;
use nvlab_report::Format;
use nvlab_serve::management::ManagementServer;
use nvlab_serve::{Found, ServeError, WindowOptions, WindowServer, WindowStats};
use nvlab_units::quantity::display_bytes;
use serde_json::json;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

pub fn serve(output: &Output, args: &Serve) -> Result<(), Failure> {
    match args.mem {
        true => memory(output, args),
        false => device::serve(output, args),
    }
}

fn memory(output: &Output, args: &Serve) -> Result<(), Failure> {
    if args.designs != ["envy"] {
        let why =
            format!("\"{}\" cannot be served as memory: only the design envy can", args.designs.join(" "));
        return Err(Failure::Input(why));
    }
    let address = args.http.as_deref().map(|text| http_address(text, args.allow_remote)).transpose()?;
    let options = WindowOptions {
        bytes: args.size,
        state: args.state.clone(),
        resident_bytes: args.resident,
        time: args.time,
        ..WindowOptions::default()
    };
    let server = WindowServer::open(&options)?;
    let size = display_bytes(server.bytes());
    match server.found() {
        Found::Fresh => output.note(format_args!("a memory of {size}, all zero")),
        Found::Closed => output.note(format_args!("a memory of {size}, as it was left")),
        Found::Resident => output.note(format_args!("a memory of {size}, recovered without loss")),
        Found::Lost { restarted } => output.warn(lost(*restarted)),
    }
    if server.is_user_only() {
        output.warn(
            "without privilege, system calls of the program that access non-resident pages fail with EFAULT (run as root, or \
             get access to /dev/userfaultfd)",
        );
    }
    let door =
        address.map(|address| ManagementServer::open_page(&address, server.watched("envy"))).transpose()?;
    if let Some(door) = &door {
        output.note(format_args!("page     {}", door.page()));
    }
    let (program, arguments) = args.program.split_first().expect("a program is required");
    let status = server.run(program, arguments)?;
    drop(door);
    let failure = server.failure();
    let stats = server.close()?;
    report(output, &stats);
    match failure {
        Some(why) => Err(Failure::Check(format!("the device failed: {why}"))),
        None => ended(status),
    }
}

fn lost(restarted: bool) -> &'static str {
    match restarted {
        true => {
            "the machine was restarted while this memory was open: pages not written back are lost; if the machine crashed before \
             its files reached the disk, more may be"
        }
        false => {
            "this memory was open when its server was killed, and its resident pages were removed from /dev/shm afterwards: \
             pages not written back are lost"
        }
    }
}

/// On stderr, as stdout belongs to the program; as JSON if requested.
fn report(output: &Output, stats: &WindowStats) {
    let controller = &stats.controller;
    let text = match output.format {
        Format::Json | Format::JsonLines => json!({
            "schema": "nvlab.serve/1",
            "faults": stats.faults,
            "misses": stats.misses,
            "first_stores": stats.first_stores,
            "evictions": stats.evictions,
            "written_back": stats.written_back,
            "controller": {
                "loads": controller.loads,
                "stores": controller.stores,
                "flushed_pages": controller.flushed_pages,
                "cleaning_cost": controller.cleaning_cost(),
                "erases": controller.erases,
            },
        })
        .to_string(),
        _ => format!(
            "{} pages fetched, {} written back; {} flushed to flash at a cleaning cost of {:.2}, {} erases",
            stats.misses,
            stats.written_back,
            controller.flushed_pages,
            controller.cleaning_cost(),
            controller.erases
        ),
    };
    output.note(text);
}

/// Exits with the program's status, or as a shell does if a signal ended the program.
fn ended(status: ExitStatus) -> Result<(), Failure> {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(Failure::Program(code as u8)),
        (None, signal) => Err(Failure::Program(128 + signal.unwrap_or(0) as u8)),
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        match error {
            ServeError::NotPermitted(_) | ServeError::Io { .. } | ServeError::Memory(_) => {
                Failure::Machine(error.to_string())
            }
            ServeError::Program { .. }
            | ServeError::Options(_)
            | ServeError::State { .. }
            | ServeError::Size { .. }
            | ServeError::Busy(_) => Failure::Input(error.to_string()),
            ServeError::Recovery(_) | ServeError::Failed(_) => Failure::Check(error.to_string()),
            ServeError::Bug(_) => Failure::Fault(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_that_panicked_is_a_fault_of_nvlab() {
        let failure = Failure::from(ServeError::Bug("its controller panicked: index out of bounds".into()));
        assert_eq!(failure.status(), 70);
        assert!(failure.to_string().contains("index out of bounds"));
    }
}
