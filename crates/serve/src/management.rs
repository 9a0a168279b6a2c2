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
//! Each caller is served in a thread of its own; one that is silent or slow is left, and keeps nobody waiting.

use crate::ServeError;
use crate::http::metrics::metrics;
use crate::http::{REQUEST_MAX, Site};
use crate::nbd::Address;
use crate::net::listen::listen;
use crate::net::log::Log;
use crate::net::room::{Caller, Limits, Room};
use crate::net::stream::Stream;
use crate::served::Drive;
use crate::sys::signals;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// For a whole question, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);
const LINE_MAX: usize = 4096;

/// What a door is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Lines of the table above.
    Control,
    /// The page and the metrics of [`crate::http`].
    Http,
}

/// An open door, and the thread at it.
#[derive(Debug)]
pub struct ManagementServer {
    room: Arc<Room>,
    thread: Option<JoinHandle<()>>,
}

impl ManagementServer {
    /// Opens it.
    pub fn open(
        door: Endpoint,
        address: &Address,
        drives: Vec<Arc<Drive>>,
    ) -> Result<ManagementServer, ServeError> {
        let (listener, _) = listen(address)?;
        let name = match door {
            Endpoint::Control => "control",
            Endpoint::Http => "http",
        };
        let limits = Limits { greeting: PATIENCE, ..Limits::default() };
        let room = Room::new(name, limits, Log::default());
        let room = Arc::new(room.map_err(ServeError::io("cannot make an event counter"))?);
        let site = Arc::new(Site::new(drives, address.is_remote()));
        let of_thread = Arc::clone(&room);
        let body = move || {
            of_thread.attend(&listener, move |caller| {
                // A caller that breaks off has only itself to blame.
                let _ = welcome(door, caller, &site);
                Ok(())
            });
        };
        let thread = std::thread::Builder::new().name(format!("nvlab-{name}")).spawn(body);
        let thread = thread.map_err(ServeError::io("cannot start a thread"))?;
        Ok(ManagementServer { room, thread: Some(thread) })
    }
}

impl Drop for ManagementServer {
    fn drop(&mut self) {
        if self.room.stop().is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn welcome(door: Endpoint, caller: &Caller, site: &Site) -> io::Result<()> {
    // How long a question may take is the room's affair.
    caller.stream.limit(None, Some(PATIENCE))?;
    let (end, room): (&[u8], _) = match door {
        Endpoint::Control => (b"\n", LINE_MAX),
        Endpoint::Http => (b"\r\n\r\n", REQUEST_MAX),
    };
    let asked = read_until(&caller.stream, end, room)?;
    if caller.is_out() {
        // What came is perhaps half a command.
        return Err(io::ErrorKind::TimedOut.into());
    }
    caller.works();
    let answer = match door {
        Endpoint::Control => control(asked.lines().next().unwrap_or_default(), site.drives()),
        Endpoint::Http => site.answer(&asked),
    };
    caller.write_all(answer.as_bytes())
}

/// What came up to `end`, or to the end of it or of the room.
fn read_until(stream: &Stream, end: &[u8], room: usize) -> io::Result<String> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 512]);
    while !bytes.ends_with(end) && bytes.len() < room {
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
