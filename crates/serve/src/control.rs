//! Two small doors for people and their tools: a control socket, one line asked, some lines answered; and HTTP
//! ([`crate::http`]).
//!
//! | line | what it does |
//! |---|---|
//! | `status` | what was asked so far, as the metrics say it |
//! | `cut` | the power fails now and comes back |
//! | `cut after N` | the power fails during the N-th operation from now |
//! | `stop` | ends the server in good order |
//!
//! A caller that is silent or slow is left; callers are served one after the other.

use crate::WindowError;
use crate::http::metrics::metrics;
use crate::http::{REQUEST_MAX, Site};
use crate::nbd::Address;
use crate::net::listen::{Listener, listen};
use crate::net::stream::Stream;
use crate::served::Drive;
use crate::sys::{file, signals};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// For one read or write, and for a whole question.
const PATIENCE: Duration = Duration::from_secs(2);
const LINE_MAX: usize = 4096;

/// What a door is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Lines of the table above.
    Control,
    /// The page and the metrics of [`crate::http`].
    Http,
}

/// An open door, and the thread at it.
#[derive(Debug)]
pub struct Doorkeeper {
    bell: Arc<File>,
    thread: Option<JoinHandle<()>>,
}

impl Doorkeeper {
    /// Opens it.
    pub fn open(door: Door, address: &Address, drives: Vec<Arc<Drive>>) -> Result<Doorkeeper, WindowError> {
        let (listener, _) = listen(address)?;
        let bell = Arc::new(file::event().map_err(WindowError::io("cannot make an event counter"))?);
        let rung = Arc::clone(&bell);
        let mut site = Site::new(drives.clone(), address.is_remote());
        let body = move || {
            let mut waiting = [file::readable(rung.as_raw_fd()), file::readable(listener.fd())];
            while waiting[0].revents == 0 {
                if file::wait_readable(&mut waiting).is_ok() && waiting[1].revents != 0 {
                    // A caller that breaks off has only itself to blame.
                    let _ = welcome(door, &listener, &drives, &mut site);
                }
            }
        };
        let thread = std::thread::Builder::new().name("nvlab-control".into()).spawn(body);
        let thread = thread.map_err(WindowError::io("cannot start a thread"))?;
        Ok(Doorkeeper { bell, thread: Some(thread) })
    }
}

impl Drop for Doorkeeper {
    fn drop(&mut self) {
        if (&*self.bell).write_all(&1u64.to_ne_bytes()).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn welcome(door: Door, listener: &Listener, drives: &[Arc<Drive>], site: &mut Site) -> io::Result<()> {
    let stream = listener.accept()?;
    stream.limit(Some(PATIENCE), Some(PATIENCE))?;
    let answer = match door {
        Door::Control => {
            let asked = read_until(&stream, b"\n", LINE_MAX)?;
            control(asked.lines().next().unwrap_or_default(), drives)
        }
        Door::Http => site.answer(&read_until(&stream, b"\r\n\r\n", REQUEST_MAX)?),
    };
    stream.write_all(answer.as_bytes())
}

/// What came up to `end`, or to the end of it, of the room or of our patience.
fn read_until(stream: &Stream, end: &[u8], room: usize) -> io::Result<String> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 512]);
    let begun = Instant::now();
    while !bytes.ends_with(end) && bytes.len() < room && begun.elapsed() < PATIENCE {
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
