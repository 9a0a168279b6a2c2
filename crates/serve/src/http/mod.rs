//! HTTP for browsers and Prometheus.
//!
//! | path | what |
//! |---|---|
//! | `/` | a page that refreshes itself and loads nothing else ([`page`]) |
//! | `/metrics` | counts in the text format of Prometheus ([`metrics`]) |
//!
//! Nothing can be changed here: power cuts are requested on the control socket. A request has at most 16 KiB and a few
//! seconds. One whose Host is neither an address nor `localhost` is refused, unless the endpoint is open to other machines: a
//! foreign page could have made the browser send it (DNS rebinding).

pub mod metrics;
pub mod page;

use crate::served::Drive;
use nvlab_lab::report::page::policy;
use page::Page;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes of a request with all its headers.
pub(crate) const REQUEST_MAX: usize = 16 << 10;

/// Answers requests about these devices.
pub(crate) struct Site {
    drives: Vec<Arc<Drive>>,
    page: Mutex<Page>,
    /// Any Host is accepted.
    remote: bool,
}

/// A response.
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Site {
    pub(crate) fn new(drives: Vec<Arc<Drive>>, remote: bool) -> Site {
        Site { drives, page: Mutex::default(), remote }
    }

    /// Its devices.
    pub(crate) fn drives(&self) -> &[Arc<Drive>] {
        &self.drives
    }

    /// The response to a request; `request` ends with an empty line, or was cut off.
    pub(crate) fn answer(&self, request: &str) -> String {
        let Answer { status, kind, body } = self.find(request);
        let mut text =
            format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
        text +=
            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n";
        text += &format!("Content-Security-Policy: {}; frame-ancestors 'none'\r\n", policy());
        text += "Connection: close\r\n\r\n";
        if !request.starts_with("HEAD ") {
            let _ = write!(text, "{body}");
        }
        text
    }

    fn find(&self, request: &str) -> Answer {
        let plain = "text/plain; charset=utf-8";
        let refused = |status, why: &str| Answer { status, kind: plain, body: format!("{why}\n") };
        if !request.ends_with("\r\n\r\n") {
            return match request.len() < REQUEST_MAX {
                true => refused("400 Bad Request", "the request has no end"),
                false => refused("431 Request Header Fields Too Large", "a request has at most 16 KiB"),
            };
        }
        let mut words = request.lines().next().unwrap_or_default().split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        if !matches!(method, "GET" | "HEAD") {
            return refused("405 Method Not Allowed", "only GET is here");
        }
        if !self.remote && !host(request).is_none_or(is_here) {
            return refused("403 Forbidden", "name this machine by its address or as localhost");
        }
        let ok = |kind, body| Answer { status: "200 OK", kind, body };
        match path.split('?').next().unwrap_or_default() {
            "/" => {
                // A panic can damage curves only.
                let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
                ok("text/html; charset=utf-8", page.html(&self.drives))
            }
            "/metrics" => ok("text/plain; version=0.0.4", metrics::metrics(&self.drives)),
            _ => refused("404 Not Found", "there are / and /metrics"),
        }
    }
}

/// The Host of a request.
fn host(request: &str) -> Option<&str> {
    let header =
        |line: &'_ str| line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("host")).is_some();
    let line = request.lines().skip(1).find(|line| header(line))?;
    Some(line.split_once(':')?.1.trim())
}

/// An address or `localhost`, with or without a port.
fn is_here(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_by_its_own_names_is_answered() {
        for here in ["127.0.0.1:7070", "localhost", "LOCALHOST:1", "[::1]:80", "10.0.0.1"] {
            assert!(is_here(here), "{here}");
        }
        for elsewhere in
            ["example.org", "localhost.example.org:80", "", "[example.org]", "127.0.0.1.example.org"]
        {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
        let mut site = Site::new(Vec::new(), false);
        let asked = |host: &str| format!("GET /metrics HTTP/1.1\r\nhOsT:{host}\r\n\r\n");
        assert!(site.answer(&asked(" 127.0.0.1")).starts_with("HTTP/1.1 200 "));
        assert!(site.answer(&asked("evil.example")).starts_with("HTTP/1.1 403 "));
        site.remote = true;
        assert!(site.answer(&asked("lab.example")).starts_with("HTTP/1.1 200 "));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let site = Site::new(Vec::new(), false);
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", "200"),
            ("HEAD / HTTP/1.1\r\n\r\n", "200"),
            ("GET /metrics?x HTTP/1.1\r\n\r\n", "200"),
            ("POST / HTTP/1.1\r\n\r\n", "405"),
            ("GET /other HTTP/1.1\r\n\r\n", "404"),
            ("GET / HTTP/1.1\r\n", "400"),
            ("\r\n\r\n", "405"),
            ("", "400"),
        ] {
            let answer = site.answer(request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
        }
        let long = "GET / HTTP/1.1\r\n".to_string() + &"x".repeat(REQUEST_MAX);
        assert!(site.answer(&long).starts_with("HTTP/1.1 431 "));
        assert!(site.answer("HEAD / HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
    }
}
