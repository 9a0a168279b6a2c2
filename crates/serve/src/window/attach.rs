//! The thread that programs connect to, to have the faults of their mappings of the window answered.
//!
//! A client is a process of the same user, and still nothing that it sends is trusted: packets have one length, a
//! mapping must lie inside the window, a descriptor must be a userfaultfd that watches the range it claims. A silent
//! client is disconnected after [`PATIENCE`]; none can end the server.
//!
//! With READY a program receives a lifeline (see `sys/abi.rs`), whose other end stays open here as long as the program has
//! it: the preloaded library has the kernel kill the process when it closes, so that no program waits for a killed server.

use super::engine::Client;
use super::handler::Shared;
use super::state::random_id;
use crate::ServeError;
use crate::sys::abi::{self, Message, PAGE_BYTES};
use crate::sys::process;
use crate::sys::socket::Socket;
use crate::sys::userfaultfd::{Answered, Userfaultfd};
use std::io::{self, Error, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time for each packet of a client.
const PATIENCE: Duration = Duration::from_secs(2);

/// A listening socket and its thread.
#[derive(Debug)]
pub(crate) struct AttachListener {
    name: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl AttachListener {
    /// Listens for programs that want to map the window of `bytes`.
    pub(crate) fn open(shared: Arc<Shared>, bytes: u64) -> Result<AttachListener, ServeError> {
        let name = random_id().map_err(ServeError::io("cannot get random numbers"))?;
        let name = format!("nvlab-window-{name}");
        let socket = Socket::listen(&name).map_err(ServeError::io("cannot listen for programs"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let listen = move || {
            let mut lifelines = Vec::new();
            while !stopped.load(Ordering::Acquire) {
                // The client has gone again, or no descriptor is left: others may connect later.
                let Ok(caller) = socket.accept() else {
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                };
                if stopped.load(Ordering::Acquire) {
                    return;
                }
                lifelines.retain(Socket::is_open);
                match welcome(&caller, &shared, bytes) {
                    Ok(lifeline) => lifelines.push(lifeline),
                    Err(error) => eprintln!("nvlab: the memory window: a caller was refused: {error}"),
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("nvlab-door".into())
            .spawn(listen)
            .map_err(ServeError::io("cannot start a thread"))?;
        Ok(AttachListener { name, stop, thread: Some(thread) })
    }

    /// The abstract name that programs connect to.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for AttachListener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // The thread waits for a connection. If this one fails, it goes on listening, to nobody.
        if Socket::connect(&self.name).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// The handshake (see `sys/abi.rs`). Returns this side of the program's lifeline.
fn welcome(caller: &Socket, shared: &Shared, window: u64) -> io::Result<Socket> {
    caller.limit(PATIENCE)?;
    let (caller_process, caller_user) = caller.peer()?;
    if caller_user != process::user() {
        return Err(Error::new(ErrorKind::PermissionDenied, format!("it belongs to user {caller_user}")));
    }
    expect(caller, abi::HELLO)?;
    let offer = Message { magic: abi::MAGIC, kind: abi::OFFER, a: window, b: PAGE_BYTES as u64, c: 0 };
    let file = shared.engine().resident().as_raw_fd();
    caller.send(&offer, Some(file))?;
    let (message, fd) = expect(caller, abi::ATTACH)?;
    let (address, offset, bytes) = (message.a, message.b, message.c);
    let aligned = [address, offset, bytes].iter().all(|value| value.is_multiple_of(PAGE_BYTES as u64));
    let inside = offset.checked_add(bytes).is_some_and(|end| end <= window);
    if !aligned || !inside || bytes == 0 || address.checked_add(bytes).is_none() {
        return Err(invalid(format!("{bytes} B at {offset} are not pages of a window of {window} B")));
    }
    let faults = Userfaultfd::from_other(fd.ok_or_else(|| invalid("it sent no userfaultfd".into()))?)?;
    // Nothing is mapped yet, so this changes nothing; it fails if the userfaultfd does not watch this range.
    match faults.watches(address, bytes)? {
        Answered::Done => {}
        other => {
            return Err(invalid(format!("its userfaultfd is not registered for its mapping ({other:?})")));
        }
    }
    let page = PAGE_BYTES as u64;
    let (first_page, pages) = ((offset / page) as u32, (bytes / page) as u32);
    let [lifeline, theirs] = Socket::pair()?;
    shared.admit(Client { faults, process: caller_process, address, first_page, pages })?;
    let ready = Message { magic: abi::MAGIC, kind: abi::READY, ..Message::default() };
    caller.send(&ready, Some(theirs.as_raw_fd()))?;
    Ok(lifeline)
}

fn expect(caller: &Socket, kind: u64) -> io::Result<(Message, Option<OwnedFd>)> {
    let (message, fd) = caller.receive()?;
    match message.magic == abi::MAGIC && message.kind == kind {
        true => Ok((message, fd)),
        false => Err(invalid(format!("message {:#x}/{} instead of {kind}", message.magic, message.kind))),
    }
}

fn invalid(why: String) -> Error {
    Error::new(ErrorKind::InvalidData, why)
}
