//! Two small doors for people and their tools: a control socket (one line asked, some lines answered) and metrics over HTTP
//! in the text format of Prometheus.
//!
//! | line | what it does |
//! |---|---|
//! | `status` | what was asked so far, as the metrics say it |
//! | `cut` | the power fails now and comes back |
//! | `cut after N` | the power fails during the N-th operation from now |
//! | `stop` | ends the server in good order |
//!
//! A caller that is silent is left; callers are served one after the other.

use crate::WindowError;
use crate::nbd::Address;
use crate::nbd::server::{Listener, listen};
use crate::nbd::stream::Stream;
use crate::served::Drive;
use crate::sys::{file, signals};
use nvlab_workload::Op;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(2);
const LINE_MAX: usize = 4096;

/// What a door is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Lines of the table above.
    Control,
    /// `GET /metrics`.
    Metrics,
}

/// An open door, and the thread at it.
#[derive(Debug)]
pub struct Doorkeeper {
    bell: Arc<File>,
    thread: Option<JoinHandle<()>>,
    path: Option<PathBuf>,
}

impl Doorkeeper {
    /// Opens it.
    pub fn open(door: Door, address: &Address, drives: Vec<Arc<Drive>>) -> Result<Doorkeeper, WindowError> {
        let (listener, path, _) = listen(address)?;
        let bell = Arc::new(file::event().map_err(WindowError::io("cannot make an event counter"))?);
        let rung = Arc::clone(&bell);
        let body = move || {
            let mut waiting = [file::readable(rung.as_raw_fd()), file::readable(listener.fd())];
            while waiting[0].revents == 0 {
                if file::wait_readable(&mut waiting).is_ok() && waiting[1].revents != 0 {
                    // A caller that breaks off has only itself to blame.
                    let _ = welcome(door, &listener, &drives);
                }
            }
        };
        let thread = std::thread::Builder::new().name("nvlab-control".into()).spawn(body);
        let thread = thread.map_err(WindowError::io("cannot start a thread"))?;
        Ok(Doorkeeper { bell, thread: Some(thread), path })
    }
}

impl Drop for Doorkeeper {
    fn drop(&mut self) {
        if (&*self.bell).write_all(&1u64.to_ne_bytes()).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn welcome(door: Door, listener: &Listener, drives: &[Arc<Drive>]) -> io::Result<()> {
    let stream = listener.accept()?;
    stream.limit(Some(PATIENCE), Some(PATIENCE))?;
    let end: &[u8] = if door == Door::Control { b"\n" } else { b"\r\n\r\n" };
    let asked = read_until(&stream, end)?;
    let line = asked.lines().next().unwrap_or_default();
    let answer = match door {
        Door::Control => control(line, drives),
        Door::Metrics => {
            let (status, text) = match line.starts_with("GET /metrics ") {
                true => ("200 OK", metrics(drives)),
                false => ("404 Not Found", "only /metrics is here\n".to_string()),
            };
            format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{text}",
                text.len()
            )
        }
    };
    stream.write_all(answer.as_bytes())
}

/// What came up to `end`, or to the end.
fn read_until(stream: &Stream, end: &[u8]) -> io::Result<String> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 512]);
    while !bytes.ends_with(end) && bytes.len() < LINE_MAX {
        match stream.read(&mut piece)? {
            0 => break,
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn control(line: &str, drives: &[Arc<Drive>]) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["status"] => metrics(drives),
        ["cut"] => drives
            .iter()
            .map(|drive| match drive.cut() {
                Ok(cut) => format!(
                    "{}: the power failed after {} operations; found again in {}\n",
                    drive.name(),
                    cut.operations,
                    cut.recovery
                ),
                Err(fault) => format!("error: {}: {fault}\n", drive.name()),
            })
            .collect(),
        ["cut", "after", count] => match count.parse() {
            Ok(count) if count > 0 => {
                drives.iter().for_each(|drive| drive.cut_after(count));
                "ok\n".into()
            }
            _ => format!("error: `{count}` is not a number of operations\n"),
        },
        ["stop"] => {
            signals::end();
            "ok\n".into()
        }
        _ => "error: write status, cut, cut after N, or stop\n".into(),
    }
}

/// Counts in the text format of Prometheus.
pub fn metrics(drives: &[Arc<Drive>]) -> String {
    let mut text = String::new();
    let all: Vec<_> = drives.iter().map(|drive| (drive.name(), drive.counts())).collect();
    let mut family = |name: &str, kind: &str, help: &str, rows: Vec<(String, String)>| {
        let _ = writeln!(text, "# HELP nvlab_{name} {help}\n# TYPE nvlab_{name} {kind}");
        for (labels, value) in rows {
            let _ = writeln!(text, "nvlab_{name}{{{labels}}} {value}");
        }
    };
    let of = |name: &str| format!("device=\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
    let each = |value: &dyn Fn(&crate::served::drive::Counts, Op) -> String| -> Vec<(String, String)> {
        let rows = all.iter().flat_map(|(name, counts)| {
            Op::ALL.map(|op| (format!("{},op=\"{op}\"", of(name)), value(counts, op)))
        });
        rows.collect()
    };
    let ops = each(&|counts, op| counts.totals[op as usize].count.to_string());
    family("requests_total", "counter", "Requests served since the power came.", ops);
    let bytes = each(&|counts, op| counts.totals[op as usize].bytes.to_string());
    family("bytes_total", "counter", "Bytes of these requests.", bytes);
    let mut latency = Vec::new();
    for (name, counts) in &all {
        for op in Op::ALL {
            let histogram = &counts.totals[op as usize].latency;
            for quantile in [0.5, 0.99, 0.999].into_iter().filter(|_| histogram.count() > 0) {
                let labels = format!("{},op=\"{op}\",quantile=\"{quantile}\"", of(name));
                latency.push((labels, histogram.quantile(quantile).seconds().to_string()));
            }
        }
    }
    family("modelled_latency_seconds", "gauge", "What the modelled device took.", latency);
    let one = |value: &dyn Fn(&crate::served::drive::Counts) -> String| {
        all.iter().map(|(name, counts)| (of(name), value(counts))).collect()
    };
    let host = one(&|counts| counts.device.host_units.to_string());
    family("host_units_total", "counter", "Mapping units the host wrote.", host);
    let programmed = one(&|counts| counts.device.programmed_units.to_string());
    family("programmed_units_total", "counter", "Mapping units programmed for whatever cause.", programmed);
    let erases = one(&|counts| counts.device.erases.to_string());
    family("erases_total", "counter", "Blocks erased.", erases);
    family("power_cuts_total", "counter", "Power cuts.", one(&|counts| counts.cuts.to_string()));
    let seconds = one(&|counts| counts.now.seconds().to_string());
    family("device_seconds_total", "counter", "Time of the device.", seconds);
    text
}
