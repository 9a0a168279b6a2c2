//! The NBD server with TLS: who is let in, what is refused before, and bytes both ways at once.

use crate::common::Folder;
use crate::nbd_client::{Client, wait_for_operations};
use nvlab_design::Design;
use nvlab_serve::TimeMode;
use nvlab_serve::nbd::wire::{self, command, option, reply};
use nvlab_serve::nbd::{Address, Export, NbdServer, Options, Security};
use nvlab_serve::served::{Drive, DriveOptions};
use nvlab_units::Rng;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

type Secure = StreamOwned<ClientConnection, UnixStream>;
type Issuer = CertifiedIssuer<'static, KeyPair>;

fn issuer() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate of `issuer`, and its key.
fn issue(issuer: &Issuer) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".into()]).unwrap();
    (params.signed_by(&key, issuer).unwrap(), key)
}

/// A server over a small device, and who answers for it.
struct Running {
    server: NbdServer,
    drive: Arc<Drive>,
    path: PathBuf,
    issuer: Issuer,
    _folder: Folder,
}

fn serve(name: &str, time: TimeMode, required: bool, verify_peer: bool) -> Running {
    let folder = Folder::new(&format!("nbd-tls-{name}"));
    let (issuer, path) = (issuer(), folder.0.join("socket"));
    let (certificate, key) = issue(&issuer);
    fs::write(folder.0.join("ca-cert.pem"), issuer.pem()).unwrap();
    fs::write(folder.0.join("server-cert.pem"), certificate.pem()).unwrap();
    fs::write(folder.0.join("server-key.pem"), key.serialize_pem()).unwrap();
    let security = Security::load(&folder.0, required, verify_peer).unwrap();
    let sets = ["media.nand.blocks=96", "ftl.spare=30%"].map(String::from);
    let options = DriveOptions { time, seed: 3, ..DriveOptions::default() };
    let drive = Drive::open("bench-4g", &Design::load("bench-4g", &sets).unwrap(), &options).unwrap();
    let drive = Arc::new(drive);
    let exports = vec![Export { name: "bench-4g".into(), drive: Arc::clone(&drive) }];
    let options = Options { security: Some(security), ..Options::default() };
    let server = NbdServer::start_with(&Address::Unix(path.clone()), exports, options).unwrap();
    Running { server, drive, path, issuer, _folder: folder }
}

/// What a client trusts and shows.
fn client_config(trusted: &Issuer, shown: Option<&Issuer>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    match shown {
        None => builder.with_no_client_auth(),
        Some(issuer) => {
            let (certificate, key) = issue(issuer);
            let chain = vec![CertificateDer::from(certificate)];
            let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    }
}

fn begin_tls(mut client: Client, config: ClientConfig) -> Client<Secure> {
    client.option(option::STARTTLS, b"");
    assert_eq!(client.option_reply(option::STARTTLS), (reply::ACK, vec![]));
    let name = ServerName::try_from("localhost").unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    client.over(|socket| StreamOwned::new(session, socket))
}

/// A client behind TLS that has chosen the export.
fn connect(served: &Running, structured: bool) -> Client<Secure> {
    let mut client = begin_tls(Client::connect(&served.path), client_config(&served.issuer, None));
    if structured {
        client.option(option::STRUCTURED_REPLY, b"");
        assert_eq!(client.option_reply(option::STRUCTURED_REPLY).0, reply::ACK);
        client.structured = true;
    }
    client.go("").unwrap();
    client
}

#[test]
fn what_is_written_is_read_again_by_several_clients() {
    const BYTES: u64 = 8 << 20;
    for time in [TimeMode::Fast, TimeMode::Real] {
        let served = serve(&format!("array-{time:?}"), time, true, false);
        assert!(served.server.uri().starts_with("nbds+unix:///"), "{}", served.server.uri());
        let mut clients = [connect(&served, false), connect(&served, true)];
        let (mut rng, mut model) = (Rng::new(6), vec![0u8; BYTES as usize]);
        for _ in 0..120 {
            let client = &mut clients[rng.below(2) as usize];
            let most = if rng.chance(0.1) { 2 << 20 } else { 20_000 };
            let bytes = 1 + rng.below(most);
            let offset = rng.below(BYTES - bytes);
            let range = offset as usize..(offset + bytes) as usize;
            if rng.chance(0.5) {
                let data: Vec<u8> = (0..bytes).map(|_| rng.bits() as u8).collect();
                client.write(offset, &data, 0);
                client.done().unwrap();
                model[range].copy_from_slice(&data);
            } else {
                client.request(command::READ, 0, offset, bytes as u32);
                assert!(
                    client.data(offset, bytes as usize).unwrap() == model[range],
                    "{bytes} B at {offset}"
                );
            }
        }
    }
}

/// In real time one thread reads the connection while another writes it.
#[test]
fn a_deep_queue_is_answered_also_at_the_end_over_tls() {
    for time in [TimeMode::Fast, TimeMode::Real] {
        let mut served = serve(&format!("deep-{time:?}"), time, true, false);
        let mut client = connect(&served, false);
        for i in 0..32u64 {
            client.write(i * 4096, &[i as u8; 4096], 0);
            client.request(command::READ, 0, i * 4096, 4096);
        }
        wait_for_operations(&served.drive, 64);
        served.server.stop();
        let mut bytes = Vec::new();
        // The end is said in TLS: without that this would be an error.
        client.stream.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 32 * (2 * wire::SIMPLE_REPLY_BYTES + 4096), "{time:?}");
    }
}

#[test]
fn without_tls_nothing_is_told_where_it_is_required() {
    let served = serve("required", TimeMode::Fast, true, false);
    let mut client = Client::connect(&served.path);
    for (number, data) in [
        (option::LIST, &b""[..]),
        (option::INFO, b"\0\0\0\0\0\0"),
        (option::GO, b"\0\0\0\0\0\0"),
        (option::STRUCTURED_REPLY, b""),
        (99, b"whatever"),
        (99, &vec![7; 1 << 20]),
    ] {
        client.option(number, data);
        assert_eq!(client.option_reply(number).0, reply::ERR_TLS_REQD, "option {number}");
    }
    client.option(option::STARTTLS, b"x");
    assert_eq!(client.option_reply(option::STARTTLS).0, reply::ERR_INVALID);
    client.option(option::ABORT, b"");
    assert_eq!(client.option_reply(option::ABORT).0, reply::ACK);
    // EXPORT_NAME has no way to refuse.
    let mut old = Client::connect(&served.path);
    old.option(option::EXPORT_NAME, b"");
    assert_eq!(old.stream.read(&mut [0; 1]).unwrap_or(0), 0);
    // Afterwards all is as without.
    let mut client = begin_tls(Client::connect(&served.path), client_config(&served.issuer, None));
    client.option(option::STARTTLS, b"");
    assert_eq!(client.option_reply(option::STARTTLS).0, reply::ERR_INVALID);
    client.option(option::LIST, b"");
    assert_eq!(client.option_reply(option::LIST).0, reply::SERVER);
}

#[test]
fn optional_tls_also_serves_clients_without_it() {
    let served = serve("may", TimeMode::Fast, false, false);
    assert!(served.server.uri().starts_with("nbd+unix:///"), "{}", served.server.uri());
    let (mut plain, mut secure) = (crate::nbd_client::connect(&served.path, true), connect(&served, true));
    secure.write(4096, &[7; 8192], 0);
    secure.done().unwrap();
    plain.request(command::READ, 0, 4096, 8192);
    assert_eq!(plain.data(4096, 8192).unwrap(), vec![7; 8192]);
}

#[test]
fn a_client_must_show_a_certificate_of_the_right_issuer() {
    let served = serve("peer", TimeMode::Fast, true, true);
    let other = issuer();
    for (shown, let_in) in [(None, false), (Some(&other), false), (Some(&served.issuer), true)] {
        let mut client = begin_tls(Client::connect(&served.path), client_config(&served.issuer, shown));
        let go = Client::option_bytes(option::GO, b"\0\0\0\0\0\0");
        let mut answer = [0; 8];
        let answered = client.stream.write_all(&go).and_then(|()| client.stream.read_exact(&mut answer));
        assert_eq!(answered.is_ok(), let_in, "{answered:?}");
        assert_eq!(answer == wire::OPTION_REPLY_MAGIC.to_be_bytes(), let_in);
    }
    // And the server one that the client trusts.
    let mut client = begin_tls(Client::connect(&served.path), client_config(&other, Some(&served.issuer)));
    assert!(client.stream.write_all(b"x").is_err());
}

/// Somebody between client and server could have said it.
#[test]
fn what_was_said_before_tls_does_not_count() {
    let served = serve("before", TimeMode::Fast, false, false);
    let mut client = Client::connect(&served.path);
    client.option(option::STRUCTURED_REPLY, b"");
    assert_eq!(client.option_reply(option::STRUCTURED_REPLY).0, reply::ACK);
    let mut client = begin_tls(client, client_config(&served.issuer, None));
    client.go("").unwrap();
    client.request(command::READ, 0, 0, 512);
    // A simple reply.
    assert_eq!(client.data(0, 512).unwrap(), vec![0; 512]);

    let mut client = Client::connect(&served.path);
    let both =
        [Client::option_bytes(option::STARTTLS, b""), Client::option_bytes(option::LIST, b"")].concat();
    client.stream.write_all(&both).unwrap();
    assert_eq!(client.option_reply(option::STARTTLS).0, reply::ACK);
    assert_eq!(client.stream.read(&mut [0; 1]).unwrap_or(0), 0, "LIST was answered or swallowed");
}

#[test]
fn unusable_files_are_named() {
    let folder = Folder::new("nbd-tls-files");
    let why = |verify| Security::load(&folder.0, true, verify).unwrap_err().to_string();
    assert!(why(false).contains("server-cert.pem"), "{}", why(false));
    let issuer = issuer();
    let (certificate, key) = issue(&issuer);
    fs::write(folder.0.join("server-cert.pem"), certificate.pem()).unwrap();
    fs::write(folder.0.join("server-key.pem"), "no key").unwrap();
    assert!(why(false).contains("server-key.pem"), "{}", why(false));
    fs::write(folder.0.join("server-key.pem"), key.serialize_pem()).unwrap();
    Security::load(&folder.0, true, false).unwrap();
    fs::write(folder.0.join("ca-cert.pem"), "").unwrap();
    assert!(
        why(true).contains("ca-cert.pem: cannot be used for TLS: it contains no certificate"),
        "{}",
        why(true)
    );
}
