//! `nvlab probe`: measures a drive, for `fit`.

use crate::args::Probe as Args;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::runs::interrupted;
use nvlab_fit::probe::{self, Plan, ProbeError, Writes};
use nvlab_trace::file_name;
use nvlab_units::quantity::display_bytes;
use std::io::{IsTerminal, stdin};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

pub fn probe(output: &Output, args: &Args) -> Result<(), Failure> {
    let writes = args.write.zip(args.state).map(|(bytes, state)| Writes { bytes, state });
    let plan =
        Plan { target: args.target.clone(), each: Duration::from_secs_f64(args.each.seconds()), writes };
    let file = args.file.clone().unwrap_or_else(|| file_of(&args.target));
    let capacity = plan.capacity_bytes().map_err(failure)?;
    probe::fio().map_err(failure)?;
    output.note(format_args!(
        "{}{}: {} patterns, about {} s, {}",
        plan.target,
        capacity.map_or(String::new(), |bytes| format!(", {}", display_bytes(bytes))),
        plan.patterns().count(),
        plan.takes().as_secs(),
        match &plan.writes {
            None => "reads only".to_string(),
            Some(writes) => format!("at most {} written", display_bytes(writes.bytes)),
        }
    ));
    if plan.writes.is_some() {
        agreed(&plan.target, args.lose.as_deref())?;
    }
    let longest = plan.patterns().map(|pattern| pattern.name.len()).max().unwrap_or(0);
    let progress = Progress::new(output.progress, longest, output.progress_lines);
    let (stop, mut bar) = (interrupted(), None);
    let measured = probe::probe(&plan, &file, &mut |pattern, share| {
        let is_new = bar.as_ref().is_none_or(|(name, _)| *name != pattern.name);
        if is_new {
            bar = Some((pattern.name, progress.begin(pattern.name)));
        }
        bar.iter_mut().for_each(|(_, bar)| bar.at(pattern.about, share));
        !stop.load(Ordering::Relaxed)
    });
    drop(bar);
    progress.end();
    measured.map_err(failure)?;
    output.note(format_args!(
        "written: {}; its design: nvlab design new --figures mine.toml, then nvlab fit mine.toml {0}",
        file.display()
    ));
    Ok(())
}

fn failure(error: ProbeError) -> Failure {
    match error {
        ProbeError::Interrupted(_) => Failure::Interrupted(error.to_string()),
        ProbeError::Unusable(_) => Failure::Input(error.to_string()),
        ProbeError::File { .. } | ProbeError::Fio { .. } => Failure::Machine(error.to_string()),
    }
}

/// `/dev/nvme0n1`: `nvme0n1.probe.json`.
fn file_of(target: &str) -> PathBuf {
    let last = Path::new(target).file_name().map_or("drive".into(), |name| name.to_string_lossy());
    PathBuf::from(format!("{}.probe.json", file_name(&last)))
}

/// Asks whether what is on the target may be lost: its name has to be typed, or given.
fn agreed(target: &str, given: Option<&str>) -> Result<(), Failure> {
    let typed = match given {
        Some(name) => name.to_string(),
        None if stdin().is_terminal() => {
            eprint!("everything on {target} is lost. To go on, type its name: ");
            let mut line = String::new();
            stdin().read_line(&mut line).map_err(|error| Failure::machine("stdin", &error))?;
            line
        }
        None => String::new(),
    };
    match typed.trim() == target {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "nothing was written: everything on {target} would be lost; --lose {target} agrees"
        ))),
    }
}
