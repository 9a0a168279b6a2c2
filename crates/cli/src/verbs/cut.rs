//! `nvlab cut`: cuts the power during a recorded run of a program, at many moments, and checks what survives.

mod check;
mod filesystem;
mod record;
mod watch;

use crate::args::Cut;
use crate::failure::Failure;
use crate::output::{Output, quoted};
use check::{Checks, Loss};
use nvlab_report::Format;
use nvlab_run::plan::Named;
use nvlab_serve::cuts::{Journal, Moment, Replayer, moments, shrink};
use record::{Recording, record};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;
use watch::Watch;

/// Losses that are printed individually.
const SAID_MAX: usize = 5;

/// The header of a saved failure.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    schema: String,
    design: String,
    ignore_flush: bool,
    moment: Moment,
    /// What was lost, in words.
    lost: String,
}

const SCHEMA: &str = "nvlab.cut/1";

pub fn cut(output: &Output, args: &Cut) -> Result<(), Failure> {
    let named = Named::load(&args.design, &args.set)?;
    let watch = Watch::new()?;
    // It holds a socket, a copy of a device and mount points, none of them needed once it is dropped.
    let folder = private_folder(&std::env::temp_dir())?;
    let checks = Checks::new(args, folder.path(), &watch)?;
    let bench = Bench { output, args, named: &named, checks, watch: &watch };
    match &args.replay {
        Some(file) => bench.replay(file),
        None => {
            let recording = record(output, args, &named, &bench.checks, folder.path())?;
            bench.explore(&recording)
        }
    }
}

/// A new folder with an unpredictable name, for this user alone; removed with everything in it when dropped.
fn private_folder(inside: &Path) -> Result<TempDir, Failure> {
    let mut named = tempfile::Builder::new();
    let made = named.prefix("nvlab-cut-").permissions(Permissions::from_mode(0o700)).tempdir_in(inside);
    made.map_err(|error| {
        Failure::machine(format_args!("cannot make a folder in {}", inside.display()), &error)
    })
}

/// What all cuts have in common.
struct Bench<'a> {
    output: &'a Output,
    args: &'a Cut,
    named: &'a Named,
    checks: Checks<'a>,
    watch: &'a Watch,
}

impl Bench<'_> {
    fn replayer(&self, ignore_flush: bool) -> Replayer<'_> {
        Replayer { design: &self.named.design, ignore_flush }
    }

    fn explore(&self, recording: &Recording) -> Result<(), Failure> {
        let journal = &recording.journal;
        let replayer = self.replayer(self.args.ignore_flush);
        let all = journal.marks().iter().map(|mark| mark.line.as_str());
        if let Some(loss) = self.checks.above(replayer.whole(journal, self.args.seed)?, all)? {
            let why = format!("the check fails even without a cut, so it proves nothing: {}", loss.what);
            return Err(Failure::Input(why));
        }
        let chosen = moments(journal, recording.first, self.args.cuts, self.args.seed);
        let mut promise = replayer.promise()?;
        let mut losses: Vec<(Moment, Loss)> = Vec::new();
        let mut passed = recording.first - 1;
        for moment in &chosen {
            self.watch.go_on()?;
            let recovered = replayer.cut(journal, moment)?;
            match self.checks.lost(recovered, &mut promise, (journal, moment))? {
                None if losses.is_empty() => passed = moment.operation,
                None => {}
                Some(loss) => {
                    if losses.len() < SAID_MAX {
                        self.output.warn(format_args!("{}: {}", place(moment), loss.what));
                    }
                    losses.push((*moment, loss));
                }
            }
        }
        self.report(journal, chosen.len(), &losses);
        let Some((moment, loss)) = losses.first() else { return Ok(()) };
        self.save(journal, passed, moment, loss)?;
        Err(Failure::Check(format!("{} of {} cuts lost something", losses.len(), chosen.len())))
    }

    fn report(&self, journal: &Journal, cuts: usize, losses: &[(Moment, Loss)]) {
        let loss = |(moment, loss): &(Moment, Loss)| {
            json!({ "operation": moment.operation, "after": moment.after, "seed": moment.seed,
                    "of_device": loss.of_device, "on_it": loss.on_it, "lost": loss.what })
        };
        match self.output.format {
            Format::Json | Format::JsonLines => self.output.print(json!({
                "schema": SCHEMA, "design": self.named.name, "operations": journal.len(), "cuts": cuts,
                "losses": losses.iter().map(loss).collect::<Vec<_>>(),
            })),
            _ if losses.is_empty() => self.output.note(format_args!("{cuts} cuts: nothing was lost")),
            _ => {
                let count = |is: fn(&Loss) -> bool| losses.iter().filter(|(_, loss)| is(loss)).count();
                self.output.note(format_args!(
                    "{cuts} cuts: {} lost something; the device violated its guarantee in {}, a check failed in {}",
                    losses.len(),
                    count(|loss| loss.of_device),
                    count(|loss| loss.on_it)
                ));
            }
        }
    }

    /// Shrinks a failure and saves it.
    fn save(&self, journal: &Journal, passed: u64, moment: &Moment, loss: &Loss) -> Result<(), Failure> {
        let replayer = self.replayer(self.args.ignore_flush);
        let mut said = loss.what.clone();
        let earlier = shrink::earlier(*moment, passed, |moment| {
            self.watch.go_on()?;
            let recovered = replayer.cut(journal, moment)?;
            let lost = self.checks.lost(recovered, &mut replayer.promise()?, (journal, moment))?;
            let is_lost = lost.as_ref().is_some_and(|lost| lost.shrinks == loss.shrinks);
            if let (true, Some(lost)) = (is_lost, lost) {
                said = lost.what;
            }
            Ok::<bool, Failure>(is_lost)
        })?;
        let (journal, small) = match loss.shrinks {
            true => shrink::fewer(&replayer, journal, &earlier, || self.watch.go_on().is_ok()),
            false => {
                let numbers: Vec<u64> = (1..=earlier.operation).collect();
                (journal.with_only(&numbers), earlier)
            }
        };
        if let (true, Ok(Some(broken))) = (loss.shrinks, replayer.broken(&journal, &small)) {
            said = broken.to_string();
        }
        let path = &self.args.save;
        let saved = Saved {
            schema: SCHEMA.into(),
            design: self.named.name.clone(),
            ignore_flush: self.args.ignore_flush,
            moment: small,
            lost: said,
        };
        let written = journal.save(path, &saved);
        written.map_err(|error| Failure::machine(format_args!("cannot write {}", path.display()), &error))?;
        self.output.note(format_args!(
            "smallest failing run: {} operations, cut {} (was {}): {}",
            journal.len(),
            place(&small),
            moment.operation,
            saved.lost
        ));
        self.output.note(format_args!("replay: {}", self.again(loss)));
        Ok(())
    }

    /// The command that reproduces a saved failure. After its operations were reduced, the device holds no file system.
    fn again(&self, loss: &Loss) -> String {
        let args = self.args;
        let mut words = vec!["nvlab".into(), "cut".into(), args.design.clone()];
        let mut option = |name: &str, value: &str| words.extend([name.into(), value.into()]);
        args.set.iter().for_each(|set| option("-s", set));
        let checks = args.check.iter().filter(|_| !loss.shrinks);
        checks.clone().for_each(|check| option("--check", check));
        option("--replay", &args.save.display().to_string());
        if checks.flat_map(|check| check.split(',')).any(|check| check == "program") {
            words.push("--".into());
            words.extend(args.program.iter().map(|word| word.to_string_lossy().into_owned()));
        }
        words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    fn replay(&self, path: &Path) -> Result<(), Failure> {
        let wrong = |why: String| Failure::Input(format!("{}: {why}", path.display()));
        let (journal, saved): (Journal, Saved) =
            Journal::load(path).map_err(|error| wrong(error.to_string()))?;
        if saved.schema != SCHEMA || saved.design != self.named.name {
            let why = format!(
                "it was saved for the design {} ({}), not {}",
                saved.design, saved.schema, self.named.name
            );
            return Err(wrong(why));
        }
        if saved.moment.operation == 0 || saved.moment.operation > journal.len() {
            return Err(wrong(format!("it has no operation {}", saved.moment.operation)));
        }
        let replayer = self.replayer(saved.ignore_flush);
        let recovered = replayer.cut(&journal, &saved.moment)?;
        match self.checks.lost(recovered, &mut replayer.promise()?, (&journal, &saved.moment))? {
            None => {
                self.output.note(format_args!("{}: nothing was lost", place(&saved.moment)));
                Ok(())
            }
            Some(loss) => Err(Failure::Check(format!("{}: {}", place(&saved.moment), loss.what))),
        }
    }
}

/// Where a cut falls, in words.
fn place(moment: &Moment) -> String {
    let when = if moment.after { "after" } else { "during" };
    format!("{when} operation {} (seed {})", moment.operation, moment.seed)
}
