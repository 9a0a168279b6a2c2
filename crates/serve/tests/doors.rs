//! The control socket, the metrics and the FUSE file of a served device.

mod common;

use common::Folder;
use nvlab_lab::design::Design;
use nvlab_serve::fuse::FuseMount;
use nvlab_serve::management::{Endpoint, ManagementServer};
use nvlab_serve::nbd::Address;
use nvlab_serve::served::{Drive, DriveOptions};
use nvlab_serve::{ServeError, TimeMode};
use std::fs::OpenOptions;
use std::io::{Read, Write};
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

#[test]
fn the_live_page_says_what_is_going_on_without_scripts() {
    let folder = Folder::new("page");
    let (drive, path) = (drive(), folder.0.join("http"));
    let _door =
        ManagementServer::open(Endpoint::Http, &Address::Unix(path.clone()), vec![Arc::clone(&drive)])
            .unwrap();
    let look = || ask(&path, "GET / HTTP/1.1\r\nHost: 127.0.0.1:7070\r\n\r\n");
    assert!(look().contains("power on.</p>"));
    drive.write(drive.session(), 0, &[1; 1 << 20], true).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(600));
    let page = look();
    assert!(page.contains("<th scope=\"row\">write</th>") && page.contains(">1.00 MiB</td>"), "{page}");
    assert!(page.contains("write amplification 1.") && page.contains("cycles on average"), "{page}");
    drive.cut().unwrap();
    let page = look();
    assert!(page.contains("1 power cut so far, the last after 1 operations"), "{page}");
    // It loads nothing, and server and page state the same policy.
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert_eq!((body.matches("href").count(), body.matches("src=").count()), (0, 0), "{page}");
    assert!(head.contains(&nvlab_lab::report::page::policy()), "{page}");
    assert!(
        head.contains("default-src 'none'") && !body.contains("<script") && !body.contains("style="),
        "{page}"
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
