//! HTTP requests: parsing and permission.
//!
//! 1. A request comes from this machine's own page or from a tool: its Host is an address or `localhost`, unless the
//!    endpoint is open to other machines (a foreign page could have sent it by DNS rebinding), and its Origin, if it
//!    has one, is that Host.
//! 2. A request that changes something is a POST and carries the token of the page's address in a header. A foreign
//!    page cannot read the address, and cannot send that header without a permission that is never given.

use std::net::IpAddr;

/// Most bytes of a request with all its headers.
pub(crate) const REQUEST_MAX: usize = 16 << 10;
/// The header with the token.
const TOKEN: &str = "x-nvlab-token";

/// A request that may be answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    /// Something is to be changed: it had the token.
    pub changes: bool,
    pub path: &'a str,
    query: &'a str,
}

/// Why a request is refused: a status line and a sentence.
pub(crate) type Refusal = (&'static str, &'static str);

/// Who may ask.
pub(crate) struct Guard {
    /// Whether any Host is accepted.
    pub remote: bool,
    /// What a request that changes something has to name.
    pub token: String,
}

impl Guard {
    /// Reads a request, which ends with an empty line or was cut off.
    pub fn admit<'a>(&self, text: &'a str) -> Result<Request<'a>, Refusal> {
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            return Err(match text.len() < REQUEST_MAX {
                true => ("400 Bad Request", "the request has no end"),
                false => ("431 Request Header Fields Too Large", "a request has at most 16 KiB"),
            });
        };
        if !body.is_empty() {
            return Err(("413 Content Too Large", "a request has no body"));
        }
        let mut words = head.lines().next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let changes = match method {
            "GET" | "HEAD" => false,
            "POST" => true,
            _ => return Err(("405 Method Not Allowed", "only GET and POST are supported")),
        };
        let host = one(head, "host")?;
        if !self.remote && !host.is_none_or(is_here) {
            return Err(("403 Forbidden", "use this machine's address or localhost as host name"));
        }
        if let Some(origin) = one(head, "origin")?
            && origin.strip_prefix("http://") != host
        {
            return Err(("403 Forbidden", "the request comes from another origin"));
        }
        if changes && !one(head, TOKEN)?.is_some_and(|token| same(token, &self.token)) {
            return Err(("403 Forbidden", "the token of the page's address is missing or wrong"));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Ok(Request { changes, path, query })
    }
}

impl<'a> Request<'a> {
    pub fn value(&self, key: &str) -> Option<&'a str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(name, _)| *name == key).map(|(_, value)| value).next()
    }
}

/// The value of a header that may be there once.
fn one<'a>(head: &'a str, name: &str) -> Result<Option<&'a str>, Refusal> {
    let values = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut values =
        values.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim());
    match (values.next(), values.next()) {
        (_, Some(_)) => Err(("400 Bad Request", "a header is given twice")),
        (value, None) => Ok(value),
    }
}

/// Compares in a time that does not depend on where they differ.
fn same(one: &str, other: &str) -> bool {
    let differ = one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    one.len() == other.len() && differ == 0
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

    fn admitted(remote: bool, request: &str) -> Result<(), &'static str> {
        let guard = Guard { remote, token: "0123abcd".into() };
        guard.admit(request).map(|_| ()).map_err(|(status, _)| &status[..3])
    }

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
        let asked = |host: &str| format!("GET /metrics HTTP/1.1\r\nhOsT:{host}\r\n\r\n");
        assert_eq!(admitted(false, &asked(" 127.0.0.1")), Ok(()));
        assert_eq!(admitted(false, &asked("evil.example")), Err("403"));
        assert_eq!(admitted(true, &asked("lab.example")), Ok(()));
        assert_eq!(admitted(true, &asked("lab.example\r\nHost: other")), Err("400"));
    }

    #[test]
    fn what_changes_something_needs_the_token_and_the_right_origin() {
        let post = |headers: &str| {
            admitted(false, &format!("POST /cut HTTP/1.1\r\nHost: localhost:7\r\n{headers}\r\n"))
        };
        assert_eq!(post("X-Nvlab-Token: 0123abcd\r\n"), Ok(()));
        assert_eq!(post("x-nvlab-token:0123abcd\r\nOrigin: http://localhost:7\r\n"), Ok(()));
        for headers in [
            "",
            "X-Nvlab-Token: \r\n",
            "X-Nvlab-Token: 0123abce\r\n",
            "X-Nvlab-Token: 0123abc\r\n",
            "X-Nvlab-Token: 0123abcd0\r\n",
            "X-Nvlab-Token: 0123abcd\r\nOrigin: http://evil.example\r\n",
            "X-Nvlab-Token: 0123abcd\r\nOrigin: http://localhost:8\r\n",
            "X-Nvlab-Token: 0123abcd\r\nOrigin: https://localhost:7\r\n",
            "X-Nvlab-Token: 0123abcd\r\nOrigin: null\r\n",
        ] {
            assert_eq!(post(headers), Err("403"), "{headers:?}");
        }
        assert_eq!(post("X-Nvlab-Token: 0123abcd\r\nX-Nvlab-Token: x\r\n"), Err("400"));
        // A page of elsewhere may not even look.
        let look = "GET /events HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n";
        assert_eq!(admitted(false, look), Err("403"));
        let token = "X-Nvlab-Token: 0123abcd\r\n";
        let rebound =
            format!("POST /cut HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n{token}\r\n");
        assert_eq!(admitted(false, &rebound), Err("403"));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (request, status) in [
            ("GET / HTTP/1.1\r\n\r\n", Ok(())),
            ("HEAD / HTTP/1.1\r\n\r\n", Ok(())),
            ("PUT / HTTP/1.1\r\n\r\n", Err("405")),
            ("POST / HTTP/1.1\r\n\r\n", Err("403")),
            ("GET / HTTP/1.1\r\n\r\nbody", Err("413")),
            ("GET / HTTP/1.1\r\n", Err("400")),
            ("\r\n\r\n", Err("405")),
            ("", Err("400")),
        ] {
            assert_eq!(admitted(false, request), status, "{request:?}");
        }
        let long = "GET / HTTP/1.1\r\n".to_string() + &"x".repeat(REQUEST_MAX);
        assert_eq!(admitted(false, &long), Err("431"));
        let guard = Guard { remote: false, token: String::new() };
        let asked = guard.admit("GET /a?b=1&c=2&b=3 HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!((asked.path, asked.value("b"), asked.value("d")), ("/a", Some("1"), None));
    }
}
