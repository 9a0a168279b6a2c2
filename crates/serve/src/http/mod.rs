//! HTTP for browsers and Prometheus.
//!
//! | path | what |
//! |---|---|
//! | `GET /` | the live page: one file with its style and script; it loads only the events |
//! | `GET /events` | a stream of server-sent events: the state of each device, twice a second (`events`) |
//! | `GET /metrics` | counts of served devices in the text format of Prometheus ([`metrics`]) |
//! | `POST /cut`, `/pause`, `/resume`, `/rate?per_s=`, `/speed?times=` | controls the device or run ([`watched::Action`]); `device=N` selects one |
//!
//! 1. Permissions are checked in `request`: Host and Origin, and a token for changes.
//! 2. A browser never delays a device: an event is made from a copy of its counts, outside its lock. A stream that
//!    does not read an event in time is closed, and there are at most `STREAMS_MAX` of them.
//!
//! | module | what |
//! |---|---|
//! | `request` | parsing and permission |
//! | [`watched`] | what is shown and controlled: a served device or a run |
//! | [`run`] | a run on a live page |
//! | `events` | the stream |
//! | [`metrics`] | for Prometheus |
//! | `page/` | the page: HTML, style and script |

mod events;
pub mod metrics;
mod request;
pub mod run;
pub mod watched;

use crate::ServeError;
use crate::net::connections::{Connection, Connections};
use crate::served::Drive;
use events::{EVERY, Events};
use nvlab_os::file::random_u64;
use nvlab_report::page::digest;
use request::Guard;
pub(crate) use request::REQUEST_MAX;
use std::fmt::Write as _;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use watched::{Action, Watched};

/// The most event streams at a time.
const STREAMS_MAX: usize = 16;
/// A stream looks this often whether the server stops.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

const HTML: &str = include_str!("page/live.html");
const STYLE: &str = include_str!("page/live.css");
const SCRIPT: &str = include_str!("page/live.js");

/// Answers requests about these devices.
pub(crate) struct Site {
    drives: Vec<Arc<Drive>>,
    events: Events,
    guard: Guard,
    streams: AtomicUsize,
    page: String,
    policy: String,
}

/// A reply to a request.
pub(crate) enum Reply {
    /// A complete answer.
    Whole(String),
    /// The head of an answer; events follow.
    Stream(String),
}

/// The end of a stream makes room for another.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Site {
    /// Of served devices, and of what else is shown.
    pub(crate) fn new(
        drives: Vec<Arc<Drive>>,
        others: Vec<Arc<dyn Watched>>,
        remote: bool,
    ) -> Result<Site, ServeError> {
        let random = || random_u64().map_err(ServeError::io("cannot get random numbers from the system"));
        let token = format!("{:016x}{:016x}", random()?, random()?);
        let shown = drives.iter().map(|drive| Arc::clone(drive) as Arc<dyn Watched>).chain(others).collect();
        let policy = format!(
            "default-src 'none'; style-src {}; script-src {}; connect-src 'self'; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
            digest(STYLE),
            digest(SCRIPT)
        );
        let page = HTML.replace("{style}", STYLE).replace("{script}", SCRIPT);
        let (events, guard, streams) = (Events::new(shown), Guard { remote, token }, AtomicUsize::new(0));
        Ok(Site { drives, events, guard, streams, page, policy })
    }

    /// Its served devices.
    pub(crate) fn drives(&self) -> &[Arc<Drive>] {
        &self.drives
    }

    /// The fragment of the page's address that allows changes. Browsers do not send it to servers.
    pub(crate) fn fragment(&self) -> String {
        format!("#t={}", self.guard.token)
    }

    /// The reply to a request, which ends with an empty line or was cut off.
    pub(crate) fn answer(&self, text: &str) -> Reply {
        let plain = "text/plain; charset=utf-8";
        let is_head = text.starts_with("HEAD ");
        let whole = |status: &str, kind: &str, body: &str| {
            let head = self.head(status, kind, Some(body.len()));
            Reply::Whole(if is_head { head } else { head + body })
        };
        let asked = match self.guard.admit(text) {
            Ok(asked) => asked,
            Err((status, why)) => return whole(status, plain, &format!("{why}\n")),
        };
        match (asked.changes, asked.path) {
            (false, "/") => whole("200 OK", "text/html; charset=utf-8", &self.page),
            (false, "/metrics") => {
                whole("200 OK", "text/plain; version=0.0.4", &metrics::metrics(&self.drives))
            }
            (false, "/events") if is_head => whole("200 OK", "text/event-stream", ""),
            (false, "/events") => Reply::Stream(self.head("200 OK", "text/event-stream", None)),
            (true, _) => match self.change(&asked) {
                Some(Ok(done)) => whole("200 OK", plain, &format!("{done}\n")),
                Some(Err(why)) => whole("409 Conflict", plain, &format!("{why}\n")),
                None => whole(
                    "404 Not Found",
                    plain,
                    "write cut, pause, resume, rate?per_s=N or speed?times=N, with device=N\n",
                ),
            },
            _ => whole("404 Not Found", plain, "the pages are /, /events and /metrics\n"),
        }
    }

    /// Does what is asked; `None` if that is nothing that can be done.
    fn change(&self, asked: &request::Request<'_>) -> Option<Result<String, String>> {
        // `none`, or a positive number.
        let number = |key: &str| match asked.value(key)? {
            "none" => Some(None),
            text => text.parse::<f64>().ok().filter(|n| (1e-6..=1e9).contains(n)).map(Some),
        };
        let action = match asked.path {
            "/cut" => Action::Cut,
            "/pause" => Action::Pause,
            "/resume" => Action::Resume,
            "/rate" => Action::Rate(number("per_s")?),
            "/speed" => Action::Speed(number("times")?),
            _ => return None,
        };
        let device = asked.value("device").map_or(Some(0), |number| number.parse::<usize>().ok())?;
        Some(self.events.shown().get(device)?.act(action))
    }

    fn head(&self, status: &str, kind: &str, bytes: Option<usize>) -> String {
        let mut text = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n");
        if let Some(bytes) = bytes {
            let _ = write!(text, "Content-Length: {bytes}\r\n");
        }
        text +=
            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n";
        let _ = write!(text, "Content-Security-Policy: {}\r\nConnection: close\r\n\r\n", self.policy);
        text
    }

    /// Sends events until the client leaves or is too slow, or the server stops.
    pub(crate) fn stream(
        &self,
        head: &str,
        connection: &Connection,
        connections: &Connections,
        patience: Duration,
    ) -> io::Result<()> {
        let place = Place(&self.streams);
        if place.0.fetch_add(1, Ordering::Relaxed) >= STREAMS_MAX {
            let why = "too many pages are open already\n";
            let head = self.head("503 Service Unavailable", "text/plain; charset=utf-8", Some(why.len()));
            return connection.write_all((head + why).as_bytes());
        }
        send(connection, head, patience)?;
        let mut sent = 0;
        while !connections.stopping().load(Ordering::Acquire) {
            let (number, text) = self.events.latest();
            if number != sent {
                send(connection, &text, patience)?;
                sent = number;
            }
            if self.events.ended() {
                break;
            }
            let next = Instant::now() + EVERY;
            while Instant::now() < next && !connections.stopping().load(Ordering::Acquire) {
                std::thread::sleep(LOOKS_EVERY);
            }
        }
        Ok(())
    }
}

/// Sends all of a text within this time, however slowly the client takes it.
fn send(connection: &Connection, text: &str, patience: Duration) -> io::Result<()> {
    let (mut rest, until) = (text.as_bytes(), Instant::now() + patience);
    while !rest.is_empty() {
        match connection.stream.write_now(&[IoSlice::new(rest)])? {
            0 if Instant::now() >= until => return Err(io::ErrorKind::TimedOut.into()),
            0 => std::thread::sleep(Duration::from_millis(20)),
            sent => rest = &rest[sent..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_one_file_that_its_policy_allows() {
        let site = Site::new(Vec::new(), Vec::new(), false).unwrap();
        let Reply::Whole(answer) = site.answer("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") else { panic!() };
        let (head, page) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains("default-src 'none'; style-src 'sha256-") && head.contains("connect-src 'self';")
        );
        assert!(
            page.contains(&format!("<style>{STYLE}</style>"))
                && page.contains(&format!("<script>{SCRIPT}</script>"))
        );
        for text in
            [" src=", " href=", "http:", "https:", "@import", "url(", "innerHTML", "eval(", "style=\""]
        {
            assert!(!page.contains(text), "{text}");
        }
        assert!(!page.contains(&site.guard.token), "who can read the page cannot change anything");
        let other = Site::new(Vec::new(), Vec::new(), false).unwrap();
        assert!(site.fragment().len() == 35 && site.fragment() != other.fragment());
    }

    #[test]
    fn a_client_that_takes_too_little_is_left() {
        use crate::net::stream::Stream;
        use std::io::Read;
        use std::os::unix::net::UnixStream;
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let connection = Connection::new(Stream::Unix(ours));
        let (text, begun) = ("x".repeat(8 << 20), Instant::now());
        // A byte now and then is not enough.
        let drip = std::thread::spawn(move || {
            while begun.elapsed() < Duration::from_millis(900) && theirs.read(&mut [0; 1]).is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let sent = send(&connection, &text, Duration::from_millis(300));
        assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < Duration::from_millis(800), "{:?}", begun.elapsed());
        drip.join().unwrap();
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        let site = Site::new(Vec::new(), Vec::new(), false).unwrap();
        let answer = |line: &str| {
            let request = format!("{line} HTTP/1.1\r\nX-Nvlab-Token: {}\r\n\r\n", site.guard.token);
            match site.answer(&request) {
                Reply::Whole(answer) => answer[9..12].to_string(),
                Reply::Stream(_) => "stream".to_string(),
            }
        };
        assert_eq!(answer("GET /events"), "stream");
        for (line, status) in [
            ("GET /metrics?x", "200"),
            ("HEAD /events", "200"),
            ("GET /other", "404"),
            ("GET /cut", "404"),
            ("POST /", "404"),
            ("POST /cut?device=0", "404"),
            ("POST /rate?per_s=-1", "404"),
            ("POST /rate?per_s=inf", "404"),
            ("POST /speed?times=NaN", "404"),
            ("POST /cut?device=99999999999999999999999", "404"),
        ] {
            assert_eq!(answer(line), status, "{line}");
        }
    }
}
