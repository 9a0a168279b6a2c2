//! Preloaded into a program that `nvlab serve --mem` runs: turns a shared mapping of the file `$NVLAB_WINDOW` into a
//! mapping of the window, so that an unmodified program loads from and stores to a simulated memory.
//!
//! It takes the place of `mmap` and `mremap`, and adds `nvlab_window_map`. Everything else of the program is untouched,
//! and so are the mappings it makes of other files. The faults are answered by the server (`crates/serve`), to which
//! this library hands the userfaultfd of each mapping.
//!
//! Rules
//! 1. The program keeps a copy of its userfaultfd: should the server be killed, a fault waits instead of being answered
//!    with zeros by the kernel; and the kernel kills the program, because the socket of its first mapping closes.
//! 2. The window is shared memory: a private mapping of it is refused, and so is moving or growing a mapping.
//! 3. A child made by fork has no window: its pages would not be watched. It may map the file again.
//!
//! No allocation, no dependency: it runs inside programs that are not ours.

#[path = "../../serve/src/abi.rs"]
#[allow(dead_code, unreachable_pub)] // The server uses the rest.
mod abi;

use abi::Message;
use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::mem::{size_of, zeroed};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

const FAILED: *mut c_void = usize::MAX as *mut c_void;
const PROT_READ_WRITE: c_int = 1 | 2;
const MAP_SHARED: c_int = 1;
const MAP_TYPE: c_int = 0xf;
const MAP_LOCKED: c_int = 0x2000;
const MAP_POPULATE: c_int = 0x8000;
const MAP_SHARED_VALIDATE: c_int = 3;
const MADV_DONTFORK: c_int = 10;
const MADV_NOHUGEPAGE: c_int = 15;
const O_RDWR_CLOEXEC: c_int = 2 | 0o2_000_000;
const O_NONBLOCK_CLOEXEC: c_int = 0o4000 | 0o2_000_000;
const AF_UNIX: u16 = 1;
const SEQPACKET_CLOEXEC: c_int = 5 | 0o2_000_000;
const SOL_SOCKET: c_int = 1;
const SCM_RIGHTS: c_int = 1;
const MSG_NOSIGNAL: c_int = 0x4000;
const MSG_CMSG_CLOEXEC: c_int = 0x4000_0000;
const EINTR: c_int = 4;
const EIO: c_int = 5;
const EINVAL: c_int = 22;
const ENOTSUP: c_int = 95;

#[cfg(target_arch = "x86_64")]
mod numbers {
    pub const MMAP: i64 = 9;
    pub const MREMAP: i64 = 25;
    pub const USERFAULTFD: i64 = 323;
}
#[cfg(target_arch = "aarch64")]
mod numbers {
    pub const MMAP: i64 = 222;
    pub const MREMAP: i64 = 216;
    pub const USERFAULTFD: i64 = 282;
}

#[repr(C)]
struct Vector {
    base: *mut c_void,
    bytes: usize,
}

#[repr(C)]
struct MessageHeader {
    name: *mut c_void,
    name_bytes: u32,
    vectors: *mut Vector,
    vector_count: usize,
    control: *mut c_void,
    control_bytes: usize,
    flags: c_int,
}

/// A control message that carries one descriptor, padded as the kernel wants it.
#[repr(C)]
struct Rights {
    bytes: usize,
    level: c_int,
    kind: c_int,
    fd: c_int,
    padding: c_int,
}

const RIGHTS_BYTES: usize = size_of::<usize>() + 3 * size_of::<c_int>();

#[repr(C)]
struct UnixAddress {
    family: u16,
    path: [u8; 108],
}

/// Of `struct statx`, what identifies a file.
#[repr(C)]
struct Statx {
    before_inode: [u32; 8],
    inode: u64,
    between: [u64; 12],
    device_major: u32,
    device_minor: u32,
    after: [u64; 14],
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn getenv(name: *const c_char) -> *const c_char;
    fn statx(dir: c_int, path: *const c_char, flags: c_int, mask: u32, into: *mut Statx) -> c_int;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn ioctl(fd: c_int, request: u64, ...) -> c_int;
    fn madvise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int;
    fn fcntl(fd: c_int, command: c_int, ...) -> c_int;
    fn getpid() -> c_int;
    fn munmap(address: *mut c_void, bytes: usize) -> c_int;
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn connect(fd: c_int, address: *const UnixAddress, bytes: u32) -> c_int;
    fn sendmsg(fd: c_int, message: *const MessageHeader, flags: c_int) -> isize;
    fn recvmsg(fd: c_int, message: *mut MessageHeader, flags: c_int) -> isize;
    fn write(fd: c_int, bytes: *const c_void, count: usize) -> isize;
    fn __errno_location() -> *mut c_int;
}

/// A descriptor that is closed when it goes.
struct Fd(c_int);

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: the descriptor is owned by this value and used by nobody afterwards.
        unsafe { close(self.0) };
    }
}

/// Where in the window a mapping lies: the only state. Mappings are never taken out: an address range that was once
/// the window's is at worst refused by `mremap` although it is somebody else's now.
static RANGES: [(AtomicU64, AtomicU64); 64] = [const { (AtomicU64::new(0), AtomicU64::new(0)) }; 64];
static RANGE_COUNT: AtomicU32 = AtomicU32::new(0);
/// The process that is to end with the server; a child by fork is another.
static LIFELINE_OF: AtomicI32 = AtomicI32::new(0);

fn error() -> c_int {
    // SAFETY: the address of this thread's errno is always valid.
    unsafe { *__errno_location() }
}

/// Says on stderr why the window cannot be had, and fails as mmap does.
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
    // SAFETY: as in `error`; the program must not see what looking did.
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

/// A message of the kind expected, and the descriptor that came with it.
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

fn dial() -> Option<Fd> {
    let name = variable(abi::SOCKET_VARIABLE)?.to_bytes();
    let mut address = UnixAddress { family: AF_UNIX, path: [0; 108] };
    // The zero before it says that it is not a path.
    address.path[1..].get_mut(..name.len())?.copy_from_slice(name);
    // SAFETY: the address is a complete sockaddr_un and outlives the call.
    unsafe {
        let fd = socket(AF_UNIX as c_int, SEQPACKET_CLOEXEC, 0);
        let socket = (fd >= 0).then_some(Fd(fd))?;
        (connect(socket.0, &address, size_of::<UnixAddress>() as u32) == 0).then_some(socket)
    }
}

/// A userfaultfd with the features a window needs; as the server creates them for its own process.
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

/// What a mapping was asked for.
struct Request {
    address: *mut c_void,
    /// `None`: the whole window.
    bytes: Option<usize>,
    protection: c_int,
    flags: c_int,
    offset: i64,
}

/// Maps the window, or part of it, and says how many bytes.
fn map_window(request: &Request) -> (*mut c_void, usize) {
    let kind = request.flags & MAP_TYPE;
    if kind != MAP_SHARED && kind != MAP_SHARED_VALIDATE {
        return (refuse("it is shared memory: map it with MAP_SHARED", ENOTSUP), 0);
    }
    let offered = dial().and_then(|socket| {
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
    // Nothing may be mapped before it is watched: the kernel would fill what is absent with zeros.
    let flags = request.flags & !(MAP_POPULATE | MAP_LOCKED);
    // SAFETY: the system call the program asked for, on the file that stands behind the window.
    let address =
        unsafe { syscall(numbers::MMAP, request.address, bytes, request.protection, flags, file.0, offset) }
            as *mut c_void;
    if address == FAILED {
        return (FAILED, 0);
    }
    match attach(&socket, &faults, address, offset as u64, bytes) {
        Ok(()) => {
            remember(address as u64, bytes as u64);
            // Rule 1: never closed.
            std::mem::forget(faults);
            // SAFETY: no arguments.
            let process = unsafe { getpid() };
            if LIFELINE_OF.swap(process, Ordering::Relaxed) != process {
                std::mem::forget(socket);
            }
            (address, bytes)
        }
        Err(why) => {
            // SAFETY: the mapping made above, which nobody else knows of yet.
            unsafe { munmap(address, bytes) };
            (refuse(why, EIO), 0)
        }
    }
}

/// Has the faults of a fresh mapping watched, by the server.
fn attach(
    socket: &Fd,
    faults: &Fd,
    address: *mut c_void,
    offset: u64,
    bytes: usize,
) -> Result<(), &'static str> {
    let mut range =
        abi::RangeMode { start: address as u64, bytes: bytes as u64, mode: abi::MODE_ALL, answer: 0 };
    // SAFETY: the range is the mapping just made; advice changes nothing of its contents.
    unsafe {
        // A kernel without huge pages refuses the second, and need not be told.
        if madvise(address, bytes, MADV_DONTFORK) != 0 {
            return Err("it cannot be kept from children");
        }
        madvise(address, bytes, MADV_NOHUGEPAGE);
        if ioctl(faults.0, abi::IOCTL_REGISTER, &raw mut range) != 0 {
            return Err("its faults cannot be watched");
        }
    }
    let message =
        Message { magic: abi::MAGIC, kind: abi::ATTACH, a: address as u64, b: offset, c: bytes as u64 };
    if !send(socket, &message, Some(faults)) || receive(socket, abi::READY).is_none() {
        return Err("the server refused the mapping");
    }
    match end_with(socket) {
        true => Ok(()),
        false => Err("this program cannot be made to end with the server"),
    }
}

/// Has the kernel kill this process when the other side closes the socket. Nothing else comes through it any more.
fn end_with(socket: &Fd) -> bool {
    const F_SETFL: c_int = 4;
    const F_SETOWN: c_int = 8;
    const F_SETSIG: c_int = 10;
    const O_ASYNC: c_long = 0o20000;
    const SIGKILL: c_long = 9;
    // SAFETY: changes flags of a socket that is borrowed for the calls.
    unsafe {
        fcntl(socket.0, F_SETOWN, getpid() as c_long) == 0
            && fcntl(socket.0, F_SETSIG, SIGKILL) == 0
            && fcntl(socket.0, F_SETFL, O_ASYNC) == 0
    }
}

fn remember(start: u64, bytes: u64) {
    let slot = RANGE_COUNT.fetch_add(1, Ordering::Relaxed) as usize;
    let (from, to) = &RANGES[slot % RANGES.len()];
    from.store(start, Ordering::Relaxed);
    to.store(start + bytes, Ordering::Release);
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

/// As [`mmap`]: the name programs built for large files use.
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
    let (from, to) = (old as u64, (old as u64).saturating_add(old_bytes.max(1) as u64));
    let meets = |range: &(AtomicU64, AtomicU64)| {
        from < range.1.load(Ordering::Acquire) && to > range.0.load(Ordering::Relaxed)
    };
    if RANGES.iter().any(meets) {
        return refuse("a mapping of it cannot be moved or resized", ENOTSUP);
    }
    // SAFETY: the caller's promise.
    unsafe { syscall(numbers::MREMAP, old, old_bytes, new_bytes, flags, new) as *mut c_void }
}

/// Maps the whole window for loads and stores and says how many bytes it has; null with errno if it cannot be had.
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

// The kernel writes a whole `struct statx`.
const _: () = assert!(size_of::<Statx>() == 256);
