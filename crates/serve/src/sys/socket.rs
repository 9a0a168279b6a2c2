//! A Unix socket of sequenced packets, each a [`Message`] and perhaps a descriptor.

use super::abi::Message;
use nvlab_os::check;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::null_mut;
use std::time::Duration;

/// A listening or connected socket.
#[derive(Debug)]
pub struct Socket(OwnedFd);

/// Descriptors accepted with one packet; the kernel closes any beyond.
const DESCRIPTORS_MAX: usize = 4;

/// A buffer for the control message with the descriptors, aligned as the kernel requires.
#[repr(C, align(8))]
struct Control([u8; 64]);

impl Socket {
    /// Listens at a name.
    pub fn listen(name: &str) -> io::Result<Socket> {
        let (socket, address) = (Socket::new()?, address(name)?);
        let bytes = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is complete and outlives the call.
        check(unsafe { libc::bind(socket.0.as_raw_fd(), (&raw const address).cast(), bytes) })?;
        // SAFETY: the descriptor is owned.
        check(unsafe { libc::listen(socket.0.as_raw_fd(), 16) })?;
        Ok(socket)
    }

    /// Connects to a name.
    pub fn connect(name: &str) -> io::Result<Socket> {
        let (socket, address) = (Socket::new()?, address(name)?);
        let bytes = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the address is complete and outlives the call.
        check(unsafe { libc::connect(socket.0.as_raw_fd(), (&raw const address).cast(), bytes) })?;
        Ok(socket)
    }

    /// Two sockets connected to each other.
    pub fn pair() -> io::Result<[Socket; 2]> {
        let (kind, mut fds) = (libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, [-1; 2]);
        // SAFETY: the kernel writes two new descriptors, owned by nobody else.
        unsafe {
            check(libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()))?;
            Ok(fds.map(|fd| Socket(OwnedFd::from_raw_fd(fd))))
        }
    }

    fn new() -> io::Result<Socket> {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: the new descriptor is owned by nobody else.
        unsafe { Ok(Socket(OwnedFd::from_raw_fd(check(libc::socket(libc::AF_UNIX, kind, 0))?))) }
    }

    pub fn accept(&self) -> io::Result<Socket> {
        // SAFETY: the address is not asked for; the new descriptor is owned by nobody else.
        unsafe {
            let fd = libc::accept4(self.0.as_raw_fd(), null_mut(), null_mut(), libc::SOCK_CLOEXEC);
            Ok(Socket(OwnedFd::from_raw_fd(check(fd)?)))
        }
    }

    /// The process and the user at the other end.
    pub fn peer(&self) -> io::Result<(i32, u32)> {
        // SAFETY: the kernel writes at most one `ucred`, whose length is passed.
        unsafe {
            let mut peer: libc::ucred = std::mem::zeroed();
            let mut bytes = size_of_val(&peer) as libc::socklen_t;
            let fd = self.0.as_raw_fd();
            let into = (&raw mut peer).cast();
            check(libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, into, &mut bytes))?;
            Ok((peer.pid, peer.uid))
        }
    }

    /// True until the other side closes it.
    pub fn is_open(&self) -> bool {
        let mut entry = libc::pollfd { fd: self.0.as_raw_fd(), events: 0, revents: 0 };
        // SAFETY: one entry, borrowed for the call, which does not wait.
        let found = unsafe { libc::poll(&mut entry, 1, 0) };
        found == 0
    }

    /// Limits how long any call waits.
    pub fn limit(&self, time: Duration) -> io::Result<()> {
        let time = libc::timeval {
            tv_sec: time.as_secs() as libc::time_t,
            tv_usec: time.subsec_micros() as libc::suseconds_t,
        };
        for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            let bytes = size_of_val(&time) as libc::socklen_t;
            // SAFETY: the option is a `timeval`, which outlives the call.
            check(unsafe {
                let value = (&raw const time).cast();
                libc::setsockopt(self.0.as_raw_fd(), libc::SOL_SOCKET, option, value, bytes)
            })?;
        }
        Ok(())
    }

    pub fn send(&self, message: &Message, fd: Option<RawFd>) -> io::Result<()> {
        let mut control = Control([0; 64]);
        let mut vector =
            libc::iovec { iov_base: (&raw const *message).cast_mut().cast(), iov_len: size_of::<Message>() };
        // SAFETY: the header points to values that live until the call returns, with their true lengths; the control
        // message is written inside its buffer, which has room for it.
        let sent = unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_iov = &mut vector;
            header.msg_iovlen = 1;
            if let Some(fd) = fd {
                header.msg_control = control.0.as_mut_ptr().cast();
                header.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
                let rights = libc::CMSG_FIRSTHDR(&header);
                (*rights).cmsg_level = libc::SOL_SOCKET;
                (*rights).cmsg_type = libc::SCM_RIGHTS;
                (*rights).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
                libc::CMSG_DATA(rights).cast::<RawFd>().write_unaligned(fd);
            }
            check(libc::sendmsg(self.0.as_raw_fd(), &header, libc::MSG_NOSIGNAL))?
        };
        match sent as usize == size_of::<Message>() {
            true => Ok(()),
            false => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Waits for a packet. One that is shorter or longer than a message, or brings more than one descriptor, is an
    /// error; all descriptors it brought are closed.
    pub fn receive(&self) -> io::Result<(Message, Option<OwnedFd>)> {
        let mut control = Control([0; 64]);
        let mut packet = [0u8; size_of::<Message>() + 1];
        let mut vector = libc::iovec { iov_base: packet.as_mut_ptr().cast(), iov_len: packet.len() };
        let mut fds: [Option<OwnedFd>; DESCRIPTORS_MAX] = [const { None }; DESCRIPTORS_MAX];
        // SAFETY: as in `send`; the kernel installs whole descriptors only and sets the lengths it used. Every
        // descriptor received is owned by exactly one entry.
        let (got, cut) = unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_iov = &mut vector;
            header.msg_iovlen = 1;
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE((DESCRIPTORS_MAX * size_of::<RawFd>()) as u32) as _;
            let got = check(libc::recvmsg(self.0.as_raw_fd(), &mut header, libc::MSG_CMSG_CLOEXEC))?;
            let rights = libc::CMSG_FIRSTHDR(&header);
            if !rights.is_null()
                && (*rights).cmsg_level == libc::SOL_SOCKET
                && (*rights).cmsg_type == libc::SCM_RIGHTS
            {
                let bytes = (*rights).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let received = libc::CMSG_DATA(rights).cast::<RawFd>();
                for (i, fd) in fds.iter_mut().take(bytes / size_of::<RawFd>()).enumerate() {
                    *fd = Some(OwnedFd::from_raw_fd(received.add(i).read_unaligned()));
                }
            }
            (got as usize, header.msg_flags & libc::MSG_CTRUNC != 0)
        };
        let [first, others @ ..] = fds;
        if got != size_of::<Message>() || cut || others.iter().any(Option::is_some) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a packet of {got} B is not a message"),
            ));
        }
        let word = |i: usize| u64::from_ne_bytes(packet[i * 8..i * 8 + 8].try_into().expect("eight bytes"));
        Ok((Message { magic: word(0), kind: word(1), a: word(2), b: word(3), c: word(4) }, first))
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// An abstract address: it vanishes with its socket, so that a killed server leaves nothing behind. Zeros to the end are
/// part of it.
fn address(name: &str) -> io::Result<libc::sockaddr_un> {
    // SAFETY: all-zero is a valid address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // A leading zero marks an abstract name.
    let into = address.sun_path[1..].get_mut(..name.len()).ok_or(io::ErrorKind::InvalidInput)?;
    for (into, from) in into.iter_mut().zip(name.bytes()) {
        *into = from as libc::c_char;
    }
    Ok(address)
}
