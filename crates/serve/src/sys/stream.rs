//! Options and calls of stream sockets that the standard library does not have.

use super::poll::milliseconds;
use nvlab_os::check;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Requests a send buffer of this many bytes; the system may grant less.
pub fn send_buffer(socket: &impl AsRawFd, bytes: usize) -> io::Result<()> {
    let bytes = bytes as libc::c_int;
    let length = size_of_val(&bytes) as libc::socklen_t;
    let (socket, value) = (socket.as_raw_fd(), (&raw const bytes).cast());
    // SAFETY: the option is an `int`, which outlives the call.
    check(unsafe { libc::setsockopt(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, value, length) }).map(|_| ())
}

/// Parts that one call may send (`IOV_MAX`).
const PARTS_MAX: usize = 1024;

/// Sends what a socket accepts without waiting, of the first [`PARTS_MAX`] parts; returns the number of bytes.
pub fn send_now(socket: &impl AsRawFd, parts: &[IoSlice<'_>]) -> io::Result<usize> {
    let parts = &parts[..parts.len().min(PARTS_MAX)];
    // SAFETY: all-zero is an empty message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // The kernel only reads them.
    message.msg_iov = parts.as_ptr().cast_mut().cast();
    message.msg_iovlen = parts.len() as _;
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: an `IoSlice` is an `iovec`; the parts and what they point to are borrowed for the call.
    let sent = check(unsafe { libc::sendmsg(socket.as_raw_fd(), &message, flags) });
    match sent {
        Ok(bytes) => Ok(bytes as usize),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
        Err(error) => Err(error),
    }
}

/// Waits until a good part of the send buffer is free; after `time` it fails like a write.
pub fn wait_writable(socket: &impl AsRawFd, time: Option<Duration>) -> io::Result<()> {
    let mut waiting = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one entry, borrowed for the call.
    match check(unsafe { libc::poll(&mut waiting, 1, milliseconds(time)) }) {
        Ok(0) => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_is_writable_again_after_most_of_it_was_read() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (data, brief) = (vec![0; 64 << 10], Some(Duration::from_millis(1)));
        wait_writable(&ours, brief).unwrap();
        let mut left = 0;
        loop {
            match send_now(&ours, &[IoSlice::new(&data)]).unwrap() {
                0 => break,
                sent => left += sent,
            }
        }
        assert_eq!(wait_writable(&ours, brief).unwrap_err().kind(), ErrorKind::WouldBlock);
        let reader = std::thread::spawn(move || {
            theirs.read_exact(&mut vec![0; left]).unwrap();
            theirs
        });
        wait_writable(&ours, Some(Duration::from_secs(60))).unwrap();
        drop(reader.join().unwrap());
        // A closed peer is not waited for: the next write reports it.
        wait_writable(&ours, None).unwrap();
    }
}
