//! Preloaded into a program that `nvlab serve --mem` runs: turns a shared mapping of the file `$NVLAB_WINDOW` into a
//! mapping of the window, so that an unmodified program loads from and stores to a simulated memory.
//!
//! It replaces `mmap`, `munmap`, `mremap` and `madvise`, and adds `nvlab_window_map`. Nothing else in the program changes,
//! nor do its mappings of other files. The faults are answered by the server (`crates/serve`), to which this library sends
//! the userfaultfd of each mapping.
//!
//! Rules
//! 1. The program keeps a copy of its userfaultfd: if the server is killed, a fault waits instead of being answered with
//!    zeros by the kernel; and the kernel kills the program, because the lifeline of its first mapping closes.
//! 2. The window is shared memory: a private mapping of it is refused, and so are moving or growing a mapping and
//!    discarding its contents (MADV_REMOVE). A raw system call bypasses this; the server then kills the program.
//! 3. A child created by fork has no window: its pages would not be watched. It may map the file again.
//! 4. At most 64 mappings at a time. One that is removed otherwise than by one `munmap` of all of it (in parts, or under a
//!    fixed mapping) keeps its slot and its descriptor until the program ends.
//!
//! No allocation, no dependency: it runs inside programs that are not ours.

#[path = "../../serve/src/sys/abi.rs"]
#[allow(dead_code, unreachable_pub)] // The server uses the rest.
mod abi;
mod ranges;
mod system;

use abi::Message;
use ranges::{Range, meets_window};
use std::ffi::{CStr, c_int, c_long, c_void};
use std::mem::{size_of, zeroed};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, Ordering};
use system::*;

/// A descriptor, closed when dropped.
struct Fd(c_int);

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: the descriptor is owned by this value and used by nobody afterwards.
        unsafe { close(self.0) };
    }
}

/// The process that ends with the server; a child created by fork is another.
static LIFELINE_OF: AtomicI32 = AtomicI32::new(0);

fn error() -> c_int {
    // SAFETY: the address of this thread's errno is always valid.
    unsafe { *__errno_location() }
}

/// Reports on stderr why the window cannot be mapped, and fails like mmap.
fn refuse(why: &str, errno: c_int) -> *mut c_void {
    for part in ["nvlab: the memory window: ", why, "\n"] {
        // SAFETY: the bytes are those of a string that outlives the call.
        unsafe { write(2, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: as in `error`.
    unsafe { *__errno_location() = errno };
    FAILED
}

fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name is a C string; the answer is null or a C string in the environment, which a program that
    // changes its environment while it maps files would have to keep alive.
    unsafe {
        let value = getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

/// What identifies a file, by descriptor (with an empty path) or by path.
fn identity(fd: c_int, path: &CStr) -> Option<(u64, u32, u32)> {
    const AT_EMPTY_PATH: c_int = 0x1000;
    const INODE: u32 = 0x100;
    // SAFETY: all-zero is a valid Statx, and the kernel writes no more than 256 bytes, which it is long.
    unsafe {
        let mut found: Statx = zeroed();
        let rc = statx(fd, path.as_ptr(), AT_EMPTY_PATH, INODE, &mut found);
        (rc == 0).then_some((found.inode, found.device_major, found.device_minor))
    }
}

fn is_window(fd: c_int) -> bool {
    const AT_FDCWD: c_int = -100;
    let saved = error();
    let found = variable(abi::WINDOW_VARIABLE).and_then(|path| identity(AT_FDCWD, path));
    let same = found.is_some() && found == identity(fd, c"");
    // SAFETY: as in `error`; the program must not see an error of this check.
    unsafe { *__errno_location() = saved };
    same
}

fn send(socket: &Fd, message: &Message, fd: Option<&Fd>) -> bool {
    let mut vector = Vector { base: (&raw const *message).cast_mut().cast(), bytes: size_of::<Message>() };
    let mut rights = Rights {
        bytes: RIGHTS_BYTES,
        level: SOL_SOCKET,
        kind: SCM_RIGHTS,
        fd: fd.map_or(-1, |fd| fd.0),
        padding: 0,
    };
    let header = MessageHeader {
        name: null_mut(),
        name_bytes: 0,
        vectors: &mut vector,
        vector_count: 1,
        control: if fd.is_some() { (&raw mut rights).cast() } else { null_mut() },
        control_bytes: if fd.is_some() { size_of::<Rights>() } else { 0 },
        flags: 0,
    };
    // SAFETY: the header points to values that live until the call returns, with their true lengths.
    unsafe { sendmsg(socket.0, &header, MSG_NOSIGNAL) == size_of::<Message>() as isize }
}

/// Receives a message of the expected kind, and the descriptor sent with it.
fn receive(socket: &Fd, kind: u64) -> Option<(Message, Option<Fd>)> {
    let mut message = Message::default();
    let mut rights = Rights { bytes: 0, level: 0, kind: 0, fd: -1, padding: 0 };
    let mut vector = Vector { base: (&raw mut message).cast(), bytes: size_of::<Message>() };
    let mut header = MessageHeader {
        name: null_mut(),
        name_bytes: 0,
        vectors: &mut vector,
        vector_count: 1,
        control: (&raw mut rights).cast(),
        control_bytes: size_of::<Rights>(),
        flags: 0,
    };
    let got = loop {
        // SAFETY: as in `send`; the kernel writes no more than the lengths given, all of plain integers.
        let got = unsafe { recvmsg(socket.0, &mut header, MSG_CMSG_CLOEXEC) };
        if got >= 0 || error() != EINTR {
            break got;
        }
    };
    let carries = header.control_bytes >= RIGHTS_BYTES && rights.kind == SCM_RIGHTS;
    let fd = (carries && rights.fd >= 0).then_some(Fd(rights.fd));
    let good = got == size_of::<Message>() as isize && message.magic == abi::MAGIC && message.kind == kind;
    good.then_some((message, fd))
}

fn connect_to_server() -> Option<Fd> {
    let name = variable(abi::SOCKET_VARIABLE)?.to_bytes();
    let mut address = UnixAddress { family: AF_UNIX, path: [0; 108] };
    // A leading zero marks an abstract name.
    address.path[1..].get_mut(..name.len())?.copy_from_slice(name);
    // SAFETY: the address is a complete sockaddr_un and outlives the call.
    unsafe {
        let fd = socket(AF_UNIX as c_int, SEQPACKET_CLOEXEC, 0);
        let socket = (fd >= 0).then_some(Fd(fd))?;
        (connect(socket.0, &address, size_of::<UnixAddress>() as u32) == 0).then_some(socket)
    }
}

/// A userfaultfd with the features that a window needs, created as the server does for its own process.
fn faults() -> Option<Fd> {
    // SAFETY: plain system calls on strings and integers; the descriptor is owned from here on.
    unsafe {
        let device = open(abi::DEVICE.as_ptr(), O_RDWR_CLOEXEC);
        let mut fd = -1;
        if device >= 0 {
            fd = ioctl(device, abi::DEVICE_NEW, O_NONBLOCK_CLOEXEC as c_long);
            close(device);
        }
        for flags in [O_NONBLOCK_CLOEXEC, O_NONBLOCK_CLOEXEC | abi::USER_MODE_ONLY] {
            if fd < 0 {
                fd = syscall(numbers::USERFAULTFD, flags as c_long) as c_int;
            }
        }
        let faults = (fd >= 0).then_some(Fd(fd))?;
        let mut api = abi::Api { api: abi::API, features: abi::FEATURES, ioctls: 0 };
        (ioctl(faults.0, abi::IOCTL_API, &raw mut api) == 0).then_some(faults)
    }
}

/// The arguments of a requested mapping.
struct Request {
    address: *mut c_void,
    /// `None`: the whole window.
    bytes: Option<usize>,
    protection: c_int,
    flags: c_int,
    offset: i64,
}

/// Maps the window, or part of it; returns the address and the number of bytes.
fn map_window(request: &Request) -> (*mut c_void, usize) {
    let kind = request.flags & MAP_TYPE;
    if kind != MAP_SHARED && kind != MAP_SHARED_VALIDATE {
        return (refuse("it is shared memory: map it with MAP_SHARED", ENOTSUP), 0);
    }
    let offered = connect_to_server().and_then(|socket| {
        let hello = Message { magic: abi::MAGIC, kind: abi::HELLO, ..Message::default() };
        send(&socket, &hello, None).then_some(())?;
        let (offer, file) = receive(&socket, abi::OFFER)?;
        Some((socket, offer, file?))
    });
    let Some((socket, offer, file)) = offered else {
        return (refuse("the server does not answer", EIO), 0);
    };
    let window = offer.a as usize;
    let offset = request.offset;
    let room = usize::try_from(offset).ok().and_then(|offset| window.checked_sub(offset));
    let bytes = request.bytes.unwrap_or(window).checked_next_multiple_of(abi::PAGE_BYTES).unwrap_or(0);
    if bytes == 0 || offset % abi::PAGE_BYTES as i64 != 0 || room.is_none_or(|room| bytes > room) {
        return (refuse("the mapping does not lie inside the window", EINVAL), 0);
    }
    let Some(faults) = faults() else {
        return (refuse("userfaultfd is not permitted here (see nvlab doctor)", error()), 0);
    };
    let Some(range) = Range::claim() else {
        return (refuse("it is mapped too many times: unmap some of its mappings completely", ENOMEM), 0);
    };
    match map_watched(request, &socket, &file, &faults, bytes) {
        Ok((address, lifeline)) => {
            range.fill(address as u64, bytes as u64, faults);
            // SAFETY: no arguments.
            let process = unsafe { getpid() };
            if LIFELINE_OF.swap(process, Ordering::Relaxed) != process {
                std::mem::forget(lifeline);
            }
            (address, bytes)
        }
        Err(why) => {
            range.give_back();
            (why.map_or(FAILED, |why| refuse(why, EIO)), 0)
        }
    }
}

/// Maps `bytes` of the file and has their faults watched; also returns the lifeline. For an error without a text, errno is
/// set.
fn map_watched(
    request: &Request,
    socket: &Fd,
    file: &Fd,
    faults: &Fd,
    bytes: usize,
) -> Result<(*mut c_void, Fd), Option<&'static str>> {
    // No page may be populated before it is watched, or the kernel would fill absent pages with zeros. In a program that
    // locks all its memory (mlockall) every mapping is populated at once, except an inaccessible one.
    let flags = request.flags & !(MAP_POPULATE | MAP_LOCKED);
    // SAFETY: the system call the program asked for, on the file that stands behind the window.
    let address =
        unsafe { syscall(numbers::MMAP, request.address, bytes, PROT_NONE, flags, file.0, request.offset) }
            as *mut c_void;
    if address == FAILED {
        return Err(None);
    }
    // SAFETY: the mapping just made. Pages must remain evictable, so it is not locked.
    unsafe { munlock(address, bytes) };
    let attached = attach(socket, faults, address, request.offset as u64, bytes).and_then(|lifeline| {
        // SAFETY: as before; the program asked for this protection.
        match unsafe { mprotect(address, bytes, request.protection) } {
            0 => Ok((address, lifeline)),
            _ => Err("it cannot be made accessible"),
        }
    });
    attached.map_err(|why| {
        // SAFETY: the mapping made above, which nothing else uses yet.
        unsafe { syscall(numbers::MUNMAP, address, bytes) };
        Some(why)
    })
}

/// Has the faults of a new mapping answered by the server; returns the lifeline.
fn attach(
    socket: &Fd,
    faults: &Fd,
    address: *mut c_void,
    offset: u64,
    bytes: usize,
) -> Result<Fd, &'static str> {
    let mut range =
        abi::RangeMode { start: address as u64, bytes: bytes as u64, mode: abi::MODE_ALL, answer: 0 };
    // SAFETY: the range is the mapping just made; advice changes nothing of its contents.
    unsafe {
        // A kernel without huge pages refuses the second, which changes nothing.
        if syscall(numbers::MADVISE, address, bytes, MADV_DONTFORK as c_long) != 0 {
            return Err("it cannot be kept from children");
        }
        syscall(numbers::MADVISE, address, bytes, MADV_NOHUGEPAGE as c_long);
        if ioctl(faults.0, abi::IOCTL_REGISTER, &raw mut range) != 0 {
            return Err("its faults cannot be watched");
        }
    }
    let message =
        Message { magic: abi::MAGIC, kind: abi::ATTACH, a: address as u64, b: offset, c: bytes as u64 };
    let ready = send(socket, &message, Some(faults)).then(|| receive(socket, abi::READY)).flatten();
    let Some((_, Some(lifeline))) = ready else {
        return Err("the server refused the mapping");
    };
    match end_with(&lifeline) {
        true => Ok(lifeline),
        false => Err("this program cannot be made to end with the server"),
    }
}

/// Has the kernel kill this process when the other side closes the lifeline. Nothing may ever be sent through it: the kernel
/// might signal that long after it was received. Fails if it is closed already: that raises no signal.
fn end_with(lifeline: &Fd) -> bool {
    const F_SETFL: c_int = 4;
    const F_SETOWN: c_int = 8;
    const F_SETSIG: c_int = 10;
    const O_ASYNC: c_long = 0o20000;
    const SIGKILL: c_long = 9;
    let mut byte = 0u8;
    // SAFETY: changes flags of a socket that is borrowed for the calls, and has room for the byte it looks at.
    unsafe {
        fcntl(lifeline.0, F_SETOWN, getpid() as c_long) == 0
            && fcntl(lifeline.0, F_SETSIG, SIGKILL) == 0
            && fcntl(lifeline.0, F_SETFL, O_ASYNC) == 0
            && recv(lifeline.0, (&raw mut byte).cast(), 1, MSG_PEEK_AT_ONCE) == -1
            && error() == EAGAIN
    }
}

/// mmap(2), except for the file `$NVLAB_WINDOW`.
///
/// # Safety
/// As mmap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    if fd >= 0 && is_window(fd) {
        return map_window(&Request { address, bytes: Some(bytes), protection, flags, offset }).0;
    }
    // SAFETY: the caller's promise.
    unsafe { syscall(numbers::MMAP, address, bytes, protection, flags, fd, offset) as *mut c_void }
}

/// As [`mmap`]: the name used by programs built for large files.
///
/// # Safety
/// As mmap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    bytes: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { mmap(address, bytes, protection, flags, fd, offset) }
}

/// munmap(2); unmapping a whole mapping of the window closes its descriptor.
///
/// # Safety
/// As munmap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(address: *mut c_void, bytes: usize) -> c_int {
    // Before the call: after it another thread may map the window at these addresses. The server has its own descriptor.
    ranges::release(address, bytes);
    // SAFETY: the caller's promise.
    unsafe { syscall(numbers::MUNMAP, address, bytes) as c_int }
}

/// madvise(2), except that the contents of the window cannot be removed.
///
/// # Safety
/// As madvise(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    if advice == MADV_REMOVE && meets_window(address, bytes) {
        refuse("its contents cannot be removed (MADV_REMOVE): store zeros", ENOTSUP);
        return -1;
    }
    // SAFETY: the caller's promise.
    unsafe { syscall(numbers::MADVISE, address, bytes, advice as c_long) as c_int }
}

/// mremap(2), except for the window, which stays where it is.
///
/// # Safety
/// As mremap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_bytes: usize,
    new_bytes: usize,
    flags: c_int,
    new: *mut c_void,
) -> *mut c_void {
    if meets_window(old, old_bytes) {
        return refuse("a mapping of it cannot be moved or resized", ENOTSUP);
    }
    // SAFETY: the caller's promise.
    unsafe { syscall(numbers::MREMAP, old, old_bytes, new_bytes, flags, new) as *mut c_void }
}

/// Maps the whole window for loads and stores and stores its size in `bytes`; returns null and sets errno on failure.
///
/// # Safety
/// `bytes` is null or points to a writable `size_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvlab_window_map(bytes: *mut usize) -> *mut c_void {
    let request = Request {
        address: null::<c_void>().cast_mut(),
        bytes: None,
        protection: PROT_READ_WRITE,
        flags: MAP_SHARED,
        offset: 0,
    };
    let (address, mapped) = map_window(&request);
    if !bytes.is_null() {
        // SAFETY: the caller's promise.
        unsafe { bytes.write(mapped) };
    }
    if address == FAILED { null_mut() } else { address }
}
