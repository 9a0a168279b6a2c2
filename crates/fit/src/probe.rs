//! Measures a drive with short jobs of fio, each of which depends on few numbers of a design; `nvlab fit` reads the file that comes of it.
//!
//! fio does the requests: it is what others measure with, knows every engine, and its histograms are in the file as it reports them.
//! A file is written anew after every pattern, so that a probe that was interrupted goes on. Reads are made with `--readonly`; writes
//! only if so many bytes of the target may be lost.

use crate::figures::what::State;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use thiserror::Error;

/// The schema of a probe file.
pub const SCHEMA: &str = "nvlab.probe/1";
/// The first version that tells times in nanoseconds.
pub(crate) const LEAST: u32 = 3;
/// How often a job under way is looked at.
const TICK: Duration = Duration::from_millis(100);
/// A part of a burst takes at most so many times as long as another pattern.
const BURST_MOST: u32 = 20;
/// How much longer than it was told fio may take: it starts, and writes its histograms.
const LATE: Duration = Duration::from_secs(30);

/// A pattern of requests.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// Its name, which is that of fio's job.
    pub name: &'static str,
    /// What depends on it.
    pub about: &'static str,
    /// Options of fio.
    options: &'static str,
    /// It changes the target: of what may be written, it takes so many shares.
    pub shares: u64,
}

const fn reads(name: &'static str, about: &'static str, options: &'static str) -> Pattern {
    Pattern { name, about, options, shares: 0 }
}

const fn writes(name: &'static str, about: &'static str, options: &'static str) -> Pattern {
    Pattern { shares: 1, ..reads(name, about, options) }
}

/// A part of a burst; together they take half of what may be written.
const fn burst(name: &'static str, about: &'static str, options: &'static str) -> Pattern {
    Pattern { shares: 2, ..reads(name, about, options) }
}

/// How a part of a burst is named.
pub(crate) const BURST: &str = "burst-";
/// The part after a rest.
pub(crate) const RESTED: &str = "burst-rested";
/// How long a drive rests before it, for each second that a pattern takes.
const REST: u32 = 10;

/// Every pattern, reads first. From those that are no closed loop of requests of one size, or that skip, flush or trim, no figure is
/// taken: a fit runs them with the design that it found.
const PATTERNS: [Pattern; 28] = [
    reads("read-4k-1", "sensing a page, and the path", "rw=randread bs=4k iodepth=1"),
    reads("read-4k-4", "dies and planes", "rw=randread bs=4k iodepth=4"),
    reads("read-4k-16", "dies and planes", "rw=randread bs=4k iodepth=16"),
    reads("read-4k-64", "dies, planes, front end", "rw=randread bs=4k iodepth=64"),
    reads("read-4k-256", "front end, link", "rw=randread bs=4k iodepth=256"),
    reads("read-16k-1", "pages and channels", "rw=randread bs=16k iodepth=1"),
    reads("read-64k-1", "stripes over dies", "rw=randread bs=64k iodepth=1"),
    reads("read-64k-32", "channels", "rw=randread bs=64k iodepth=32"),
    reads("stride-64k-16", "stripes that collide", "rw=read:60k bs=4k iodepth=16"),
    reads("stride-1m-16", "stripes that collide", "rw=read:1020k bs=4k iodepth=16"),
    reads("stride-4m-16", "stripes that collide", "rw=read:4092k bs=4k iodepth=16"),
    reads("stride-16m-16", "stripes that collide", "rw=read:16380k bs=4k iodepth=16"),
    reads("read-off-1", "mapping unit: reads across units", "rw=randread bs=4k blockalign=512 iodepth=1"),
    reads("stream-read-1", "reading ahead, pages", "rw=read bs=128k iodepth=1"),
    reads("stream-read-32", "link, channels", "rw=read bs=128k iodepth=32"),
    burst("burst-1", "buffer, cache in SLC mode", "rw=write bs=1m iodepth=32"),
    burst("burst-2", "the cliff behind them", "rw=write bs=1m iodepth=32"),
    burst("burst-3", "the cliff behind them", "rw=write bs=1m iodepth=32"),
    burst("burst-4", "programs without a cache", "rw=write bs=1m iodepth=32"),
    burst(RESTED, "what a cache regains when idle", "rw=write bs=1m iodepth=32"),
    writes("stream-write-32", "programs, dies; the cache if it is empty", "rw=write bs=128k iodepth=32"),
    writes("write-4k-1", "write buffer, and the path", "rw=randwrite bs=4k iodepth=1"),
    writes("write-4k-32", "programs, cleaning, spare", "rw=randwrite bs=4k iodepth=32"),
    writes("mix-4k-32", "reads behind programs", "rw=randrw rwmixread=70 bs=4k iodepth=32"),
    writes("trim-1m-4", "what a trim costs", "rw=trim bs=1m iodepth=4"),
    writes("trimmed-4k-32", "writes after it: what trimmed space is worth", "rw=randwrite bs=4k iodepth=32"),
    writes("flushed-4k-1", "what a flush costs", "rw=randwrite bs=4k iodepth=1 fsync=1"),
    writes("forced-4k-1", "what a forced write costs", "rw=randwrite bs=4k iodepth=1 sync=dsync"),
];

/// Writes that a probe may make.
#[derive(Clone, Debug)]
pub struct Writes {
    /// Bytes in all.
    pub bytes: u64,
    /// The state that the drive is in.
    pub state: State,
}

/// What is probed, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A block device, a file, or the address of an NBD export.
    pub target: String,
    /// How long each pattern is measured.
    pub each: Duration,
    /// `None`: it is only read.
    pub writes: Option<Writes>,
}

/// Why there is no probe.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The target, or fio, cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// fio failed.
    #[error("fio failed at {pattern}: {why}")]
    Fio {
        /// The pattern.
        pattern: &'static str,
        /// What it said.
        why: String,
    },
    /// It was stopped; patterns that were measured are in the file.
    #[error("interrupted; {0} patterns are measured: the same command goes on")]
    Interrupted(usize),
}

impl Plan {
    fn is_nbd(&self) -> bool {
        self.target.starts_with("nbd://") || self.target.starts_with("nbd+unix://")
    }

    /// The patterns, in their order.
    pub fn patterns(&self) -> impl Iterator<Item = &'static Pattern> + use<'_> {
        PATTERNS.iter().filter(|pattern| pattern.shares == 0 || self.writes.is_some())
    }

    /// How long all of it takes, about.
    pub fn takes(&self) -> Duration {
        self.patterns().map(|pattern| self.rest(pattern) + self.each + Duration::from_secs(1)).sum()
    }

    /// How long the drive rests before a pattern.
    fn rest(&self, pattern: &Pattern) -> Duration {
        if pattern.name == RESTED { self.each * REST } else { Duration::ZERO }
    }

    /// Bytes that a pattern may write.
    fn share(&self, pattern: &Pattern) -> Option<u64> {
        let all: u64 = PATTERNS.iter().map(|pattern| pattern.shares).sum();
        let writes = self.writes.as_ref().filter(|_| pattern.shares > 0)?;
        // Whole blocks of the largest requests.
        let bytes = writes.bytes / all * pattern.shares;
        Some((bytes - bytes % (1 << 20)).max(1 << 20))
    }

    /// Bytes of the target; `None` if only fio can tell.
    pub fn capacity_bytes(&self) -> Result<Option<u64>, ProbeError> {
        if self.is_nbd() {
            return Ok(None);
        }
        let path = PathBuf::from(&self.target);
        let bytes = fs::File::open(&path).and_then(|mut file| file.seek(SeekFrom::End(0)));
        match bytes.map_err(|source| ProbeError::File { path: path.clone(), source })? {
            0 => Err(ProbeError::Unusable(format!("{}: it is empty", path.display()))),
            bytes => Ok(Some(bytes)),
        }
    }

    /// How long a pattern takes at most. A burst ends when it has written its share: how much a cache takes is a number of bytes.
    fn runtime(&self, pattern: &Pattern) -> Duration {
        self.each * if pattern.name.starts_with(BURST) { BURST_MOST } else { 1 }
    }

    fn command(&self, pattern: &Pattern) -> Command {
        let mut command = Command::new("fio");
        command.args(["--output-format=json+", "--direct=1", "--randrepeat=0", "--norandommap=1"]);
        command.arg(format!("--name={}", pattern.name));
        match self.is_nbd() {
            true => command.args(["--ioengine=nbd".to_string(), format!("--uri={}", self.target)]),
            false => command.args(["--ioengine=io_uring".to_string(), format!("--filename={}", self.target)]),
        };
        command.args(pattern.options.split(' ').map(|option| format!("--{option}")));
        command.args([
            "--size=100%".to_string(),
            format!("--runtime={}", self.runtime(pattern).as_secs().max(1)),
        ]);
        if let seconds @ 1.. = self.rest(pattern).as_secs() {
            command.arg(format!("--startdelay={seconds}"));
        }
        match self.share(pattern) {
            Some(bytes) => command.arg(format!("--io_size={bytes}")),
            None => command.args(["--time_based=1", "--readonly"]),
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// The version of fio; an error if there is none, or one whose times are in other units.
pub fn fio() -> Result<String, ProbeError> {
    let missing = "a probe needs fio 3 (package `fio`), and with an address of NBD its engine `nbd`";
    let said = Command::new("fio").arg("--version").output();
    let said = said.map_err(|_| ProbeError::Unusable(missing.to_string()))?;
    let version = String::from_utf8_lossy(&said.stdout).trim().to_string();
    match major(&version) {
        Some(major) if major >= LEAST => Ok(version),
        _ => Err(ProbeError::Unusable(format!("{missing}; here is {version}"))),
    }
}

/// The first number of a version, `fio-3.33`.
pub(crate) fn major(version: &str) -> Option<u32> {
    version.trim_start_matches("fio-").split('.').next()?.parse().ok()
}

/// The report in what fio printed, whose warnings may stand before it.
pub(crate) fn report(text: &str) -> Result<Value, String> {
    let start = text.find('{').unwrap_or(text.len());
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter();
    let root = values.next().ok_or("it is empty")?;
    root.map_err(|error| error.to_string())
}

/// Measures what the file has not yet. `tell` is told each pattern and the share of it that is done, and returns false to stop.
pub fn probe(
    plan: &Plan,
    file: &Path,
    tell: &mut dyn FnMut(&'static Pattern, f64) -> bool,
) -> Result<(), ProbeError> {
    let version = fio()?;
    let capacity = plan.capacity_bytes()?;
    let mut runs = found(plan, file)?;
    for pattern in plan.patterns() {
        if runs.iter().any(|run| run["jobs"][0]["jobname"] == pattern.name) {
            continue;
        }
        let done = measured(plan, pattern, &mut |share| tell(pattern, share))?;
        runs.push(done.ok_or(ProbeError::Interrupted(runs.len()))?);
        let whole = json!({
            "schema": SCHEMA, "target": plan.target, "capacity_bytes": capacity, "fio": version,
            "state": plan.writes.as_ref().map(|writes| writes.state.name()), "runs": runs,
        });
        // Another file first: what is there is whole, whenever this ends.
        let part = file.with_extension("part");
        let failed = |source| ProbeError::File { path: part.clone(), source };
        fs::write(&part, format!("{whole:#}\n")).map_err(failed)?;
        fs::rename(&part, file).map_err(failed)?;
    }
    Ok(())
}

/// What an earlier probe of the same target left.
fn found(plan: &Plan, file: &Path) -> Result<Vec<Value>, ProbeError> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(ProbeError::File { path: file.to_owned(), source }),
    };
    let other = |what: &str| ProbeError::Unusable(format!("{}: it is there, and is {what}", file.display()));
    let mut root: Value = serde_json::from_str(&text).map_err(|_| other("no probe"))?;
    match root["target"].as_str() {
        Some(target) if root["schema"] == SCHEMA && target == plan.target => {}
        _ => return Err(other("not of this target")),
    }
    let state = plan.writes.as_ref().map(|writes| writes.state.name());
    if state.is_some() && root["state"].as_str().is_some_and(|before| Some(before) != state) {
        return Err(other("of a drive in another state"));
    }
    Ok(root["runs"].as_array_mut().map(std::mem::take).unwrap_or_default())
}

/// What fio reports of a pattern; `None` if it was stopped.
fn measured(
    plan: &Plan,
    pattern: &'static Pattern,
    tell: &mut dyn FnMut(f64) -> bool,
) -> Result<Option<Value>, ProbeError> {
    let failed = |why: String| ProbeError::Fio { pattern: pattern.name, why };
    let mut child = plan.command(pattern).spawn().map_err(|error| failed(error.to_string()))?;
    let (mut out, mut err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
    // Read beside it: histograms are more than a pipe holds.
    let read = std::thread::spawn(move || io::read_to_string(&mut out));
    let said = std::thread::spawn(move || io::read_to_string(&mut err));
    if !waited(&mut child, plan.rest(pattern) + plan.runtime(pattern), tell)
        .map_err(|error| failed(error.to_string()))?
    {
        return Ok(None);
    }
    let (out, err) = (read.join().expect("reads"), said.join().expect("reads"));
    let (out, err) = (out.unwrap_or_default(), err.unwrap_or_default());
    let root = report(&out).map_err(|why| failed(format!("{why} {}", err.trim())))?;
    let served =
        ["read", "write", "trim"].iter().any(|side| root["jobs"][0][side]["total_ios"].as_u64() > Some(0));
    match root["jobs"][0]["error"].as_u64() {
        Some(0) if served => Ok(Some(root)),
        _ => {
            let before = out.split('{').next().unwrap_or_default();
            Err(failed(format!("{}{}", before.trim(), err.trim())))
        }
    }
}

/// Waits until it ends; false if it was stopped.
fn waited(child: &mut Child, each: Duration, tell: &mut dyn FnMut(f64) -> bool) -> io::Result<bool> {
    let began = Instant::now();
    while child.try_wait()?.is_none() {
        let share = began.elapsed().as_secs_f64() / each.as_secs_f64();
        let is_late = began.elapsed() > each * 2 + LATE;
        if !tell(share) || is_late {
            child.kill()?;
            child.wait()?;
            return match is_late {
                true => Err(io::Error::other("it did not end in time")),
                false => Ok(false),
            };
        }
        std::thread::sleep(TICK);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvlab_workload::block::fio_job::FioJobFile;

    #[test]
    fn patterns_are_jobs_of_fio_and_most_are_plain() {
        let options = |pattern: &Pattern| {
            let pairs = pattern.options.split(' ').map(|pair| pair.split_once('=').expect("has a value"));
            pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect::<Vec<_>>()
        };
        let plain = |pattern: &&Pattern| FioJobFile::plain(pattern.name, &options(pattern), "probe").is_ok();
        let others: Vec<&str> = PATTERNS.iter().filter(|p| !plain(p)).map(|pattern| pattern.name).collect();
        let strides = ["stride-64k-16", "stride-1m-16", "stride-4m-16", "stride-16m-16"];
        let expected = [&strides[..], &["read-off-1", "trim-1m-4", "flushed-4k-1", "forced-4k-1"]].concat();
        assert_eq!(others, expected);
    }

    #[test]
    fn only_what_may_write_is_told_to() {
        let plan = |writes| Plan { target: "/dev/x".into(), each: Duration::from_secs(2), writes };
        let texts = |plan: &Plan| -> Vec<String> {
            plan.patterns().map(|pattern| format!("{:?}", plan.command(pattern))).collect()
        };
        let reading = texts(&plan(None));
        assert_eq!(reading.len(), 15);
        assert!(
            reading.iter().all(|text| text.contains("--readonly") && !text.contains("write")),
            "{reading:?}"
        );
        let all = texts(&plan(Some(Writes { bytes: 36 << 20, state: State::Full })));
        let writing: Vec<&String> = all.iter().filter(|text| !text.contains("--readonly")).collect();
        assert_eq!(writing.len(), 13);
        let sizes =
            |bytes: u64| writing.iter().filter(|text| text.contains(&format!("--io_size={bytes}\""))).count();
        assert_eq!(
            (sizes(2 << 20), sizes(4 << 20)),
            (8, 5),
            "an eighteenth each, two for a burst: {writing:?}"
        );
        assert!(writing[4].contains("--startdelay=20"), "{}", writing[4]);
    }

    #[test]
    fn a_probe_of_another_drive_is_not_continued() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.probe.json");
        let plan = Plan { target: "/dev/x".into(), each: Duration::from_secs(2), writes: None };
        assert!(found(&plan, &file).unwrap().is_empty());
        fs::write(&file, json!({"schema": SCHEMA, "target": "/dev/y", "runs": []}).to_string()).unwrap();
        assert!(found(&plan, &file).unwrap_err().to_string().contains("not of this target"));
        fs::write(&file, "{}").unwrap();
        assert!(found(&plan, &file).is_err());
        fs::write(&file, json!({"schema": SCHEMA, "target": "/dev/x", "runs": [{"jobs": []}]}).to_string())
            .unwrap();
        assert_eq!(found(&plan, &file).unwrap().len(), 1);
    }
}
