//! The control socket, the metrics and the FUSE file of a served device.

use crate::common::Folder;
use nvlab_design::Design;
use nvlab_serve::fuse::FuseMount;
use nvlab_serve::management::{Endpoint, ManagementServer};
use nvlab_serve::nbd::Address;
use nvlab_serve::served::{Drive, DriveOptions};
use nvlab_serve::{ServeError, TimeMode};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn drive() -> Arc<Drive> {
    let sets = ["media.mlc.blocks=64", "ftl.spare=30%", "ftl.buffer.size=1MiB"].map(String::from);
    let options = DriveOptions { time: TimeMode::Fast, seed: 3, ..DriveOptions::default() };
    Arc::new(Drive::open("mlc", &Design::load("ssd-mlc-2010", &sets).unwrap(), &options).unwrap())
}

fn ask(path: &Path, text: &str) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_control_socket_pulls_the_plug() {
    let folder = Folder::new("control");
    let (drive, path) = (drive(), folder.0.join("control"));
    let door =
        ManagementServer::open(Endpoint::Control, &Address::Unix(path.clone()), vec![Arc::clone(&drive)])
            .unwrap();
    let session = drive.session();
    drive.write(session, 0, &[1; 8192], true).unwrap();
    let status = ask(&path, "status\n");
    assert!(status.contains("nvlab_requests_total{device=\"mlc\",op=\"write\"} 1\n"), "{status}");
    assert!(ask(&path, "cut\n").starts_with("mlc: the power failed after 1 operations"));
    assert!(!drive.is_current(session));
    assert_eq!(ask(&path, "cut after 2\n"), "ok\n");
    let session = drive.session();
    drive.read(session, 0, &mut [0; 512]).unwrap();
    assert!(drive.read(session, 0, &mut [0; 512]).is_err());
    assert!(ask(&path, "cut after 0\n").starts_with("error: `0`"));
    // More operations than will ever be: no cut comes.
    assert_eq!(ask(&path, &format!("cut after {}\n", u64::MAX)), "ok\n");
    drive.read(drive.session(), 0, &mut [0; 512]).unwrap();
    assert!(ask(&path, "whatever\n").starts_with("error: write status"));
    assert!(ask(&path, "status\n").contains("nvlab_power_cuts_total{device=\"mlc\"} 2\n"));
    drop(door);
    assert!(!path.exists());
}

#[test]
fn metrics_are_served_as_http() {
    let folder = Folder::new("metrics");
    let path = folder.0.join("metrics");
    let _door = ManagementServer::open(Endpoint::Http, &Address::Unix(path.clone()), vec![drive()]).unwrap();
    let page = ask(&path, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains(&format!("Content-Length: {}", body.len())));
    assert!(
        body.contains("# TYPE nvlab_erases_total counter\nnvlab_erases_total{device=\"mlc\"} 0\n"),
        "{body}"
    );
    assert!(body.contains("nvlab_wear_cycles{device=\"mlc\",stat=\"max\"} 0\n"), "{body}");
    assert!(ask(&path, "GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
}

/// A door to a live page, and how to ask it.
struct Page {
    path: std::path::PathBuf,
    door: ManagementServer,
    _folder: Folder,
}

impl Page {
    fn of(name: &str, drive: &Arc<Drive>) -> Page {
        let folder = Folder::new(name);
        let path = folder.0.join("http");
        let address = Address::Unix(path.clone());
        let door = ManagementServer::open(Endpoint::Http, &address, vec![Arc::clone(drive)]).unwrap();
        Page { path, door, _folder: folder }
    }

    fn post(&self, what: &str) -> String {
        let page = self.door.page();
        let (_, token) = page.split_once("#t=").unwrap();
        let head = format!("POST /{what} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n");
        ask(&self.path, &format!("{head}X-Nvlab-Token: {token}\r\nContent-Length: 0\r\n\r\n"))
    }

    fn events(&self) -> BufReader<UnixStream> {
        let mut stream = UnixStream::connect(&self.path).unwrap();
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1:7070\r\n\r\n").unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        BufReader::new(stream)
    }
}

/// The next event.
fn event(events: &mut BufReader<UnixStream>) -> serde_json::Value {
    let mut line = String::new();
    while !line.starts_with("data: ") {
        line.clear();
        assert_ne!(events.read_line(&mut line).unwrap(), 0, "the stream ended");
    }
    serde_json::from_str::<serde_json::Value>(&line["data: ".len()..]).unwrap()["devices"][0].take()
}

#[test]
fn events_say_what_is_going_on() {
    let drive = drive();
    let page = Page::of("events", &drive);
    let mut events = page.events();
    let first = event(&mut events);
    assert_eq!(
        (&first["name"], &first["paused"], &first["cut_count"]),
        (&"mlc".into(), &false.into(), &0.into())
    );
    assert!(first["write"]["p99_s"].is_null() && first["maps"][0]["live"].is_string(), "{first}");
    drive.write(drive.session(), 0, &[1; 1 << 20], false).unwrap();
    let second = event(&mut events);
    assert!(
        second["write"]["bytes"] == 1 << 20 && second["write"]["p99_s"].as_f64().unwrap() > 0.0,
        "{second}"
    );
    assert!(
        second["buffer"]["used"].as_u64().unwrap() <= second["buffer"]["room"].as_u64().unwrap(),
        "{second}"
    );
    assert!(
        second["maps"][0]["live"] != first["maps"][0]["live"] && second["wa_all"].as_f64().unwrap() >= 1.0
    );
    assert!(page.post("cut").contains("\r\n\r\nthe power failed after 1 operations"));
    let third = event(&mut events);
    assert_eq!((&third["cut_count"], &third["cuts"][0]["operations"]), (&1.into(), &1.into()));
    assert!(page.post("rate?per_s=5").starts_with("HTTP/1.1 409"), "programs ask");
}

#[test]
fn a_page_without_the_token_changes_nothing() {
    let drive = drive();
    let page = Page::of("token", &drive);
    for headers in [
        "",
        "X-Nvlab-Token: 00000000000000000000000000000000\r\n",
        "Origin: http://evil.example\r\n",
        "Host: evil.example\r\n",
    ] {
        let reply = ask(&page.path, &format!("POST /cut HTTP/1.1\r\n{headers}\r\n"));
        assert!(reply.starts_with("HTTP/1.1 403"), "{headers}: {reply}");
    }
    assert!(
        ask(&page.path, "GET /events HTTP/1.1\r\nHost: evil.example\r\n\r\n").starts_with("HTTP/1.1 403")
    );
    assert!(drive.cuts().is_empty());
    assert!(page.post("cut").starts_with("HTTP/1.1 200") && drive.cuts().len() == 1);
}

#[test]
fn requests_wait_for_the_end_of_a_pause_or_for_the_power() {
    let drive = drive();
    let page = Page::of("pause", &drive);
    assert!(page.post("pause").ends_with("paused\n"));
    let session = drive.session();
    let asks = || {
        let drive = Arc::clone(&drive);
        std::thread::spawn(move || drive.read(session, 0, &mut [0; 512]).is_ok())
    };
    let first = asks();
    std::thread::sleep(Duration::from_millis(100));
    assert!(!first.is_finished() && drive.operations() == 0 && event(&mut page.events())["paused"] == true);
    assert!(page.post("resume").ends_with("resumed\n"));
    assert!(first.join().unwrap() && drive.operations() == 1);
    page.post("pause");
    let second = asks();
    std::thread::sleep(Duration::from_millis(100));
    drive.cut().unwrap();
    assert!(!second.join().unwrap(), "its session ended with the power");
    drive.resume();
    assert!(drive.read(drive.session(), 0, &mut [0; 512]).is_ok());
}

/// A page that does not read is left; the device and the other pages go on, and pages beyond the limit are refused.
#[test]
fn a_slow_page_holds_up_nobody() {
    let drive = drive();
    let page = Page::of("slow", &drive);
    let begun = Instant::now();
    let slow: Vec<_> = (0..16).map(|_| page.events()).collect();
    std::thread::sleep(Duration::from_millis(300));
    let mut refused = String::new();
    page.events().read_to_string(&mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    // All of them have sent some events by now that nobody reads.
    for _ in 0..20 {
        drive.write(drive.session(), 0, &[1; 4096], false).unwrap();
    }
    assert!(ask(&page.path, "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    drop(slow);
    // Those that left make room.
    std::thread::sleep(Duration::from_millis(1500));
    event(&mut page.events());
    let closing = Instant::now();
    drop(page);
    assert!(
        closing.elapsed() < Duration::from_secs(3),
        "streams end with the server: {:?}",
        closing.elapsed()
    );
}

#[test]
fn a_fuse_file_is_the_device() {
    let folder = Folder::new("fuse");
    let drive = drive();
    let mount = match FuseMount::open(&folder.0, vec![("disk".into(), Arc::clone(&drive))]) {
        Ok(mount) => mount,
        Err(error @ ServeError::Io { .. }) => return eprintln!("SKIPPED: {error}"),
        Err(error) => panic!("{error}"),
    };
    let path = folder.0.join("disk");
    assert_eq!(path.metadata().unwrap().len(), drive.capacity_bytes());
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    file.write_all_at(&[7; 10_000], 5000).unwrap();
    file.sync_all().unwrap();
    drive.cut().unwrap();
    let mut found = [0; 10_000];
    assert!(file.read_exact_at(&mut found, 5000).is_err(), "opened before the power failed");
    drop(file);
    let file = OpenOptions::new().read(true).open(&path).unwrap();
    file.read_exact_at(&mut found, 5000).unwrap();
    assert_eq!(found, [7; 10_000]);
    drop(file);
    mount.close().unwrap();
}

/// Callers that say nothing, or a byte now and then, keep nobody waiting.
#[test]
fn silent_callers_keep_nobody_waiting() {
    let folder = Folder::new("silent");
    for (door, question, answer) in [
        (Endpoint::Control, "status\n", "nvlab_erases_total"),
        (Endpoint::Http, "GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK"),
    ] {
        let path = folder.0.join(format!("{door:?}"));
        let _door = ManagementServer::open(door, &Address::Unix(path.clone()), vec![drive()]).unwrap();
        let silent: Vec<UnixStream> = (0..20).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let begun = Instant::now();
        assert!(ask(&path, question).contains(answer));
        assert!(begun.elapsed() < Duration::from_secs(1), "{door:?}: {:?}", begun.elapsed());
        // They are left.
        let mut drips = &silent[0];
        while begun.elapsed() < Duration::from_secs(6) && drips.write(b"s").is_ok() {
            std::thread::sleep(Duration::from_millis(200));
        }
        assert!(begun.elapsed() < Duration::from_secs(6), "{door:?}: still listened to");
    }
}
