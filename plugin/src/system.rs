//! What the plugin asks of Linux: the few calls that it needs, each with nothing around it that could go wrong.
//!
//! The numbers are Linux's promise to every program ever built. What is opened here is never closed: the process ends
//! a moment later, and Linux does it then.

use core::arch::asm;
use core::fmt;
use core::mem::size_of;
use core::time::Duration;

#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
enum Number {
    Read = 0,
    Write = 1,
    SetSignalAction = 13,
    ProcessId = 39,
    Socket = 41,
    Connect = 42,
    Time = 228,
    Exit = 231,
    Open = 257,
    MakeDirectory = 258,
    Remove = 263,
    Rename = 264,
    Poll = 271,
}

#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy)]
enum Number {
    MakeDirectory = 34,
    Remove = 35,
    Rename = 38,
    Open = 56,
    Read = 63,
    Write = 64,
    Poll = 73,
    Exit = 94,
    Time = 113,
    SetSignalAction = 134,
    ProcessId = 172,
    Socket = 198,
    Connect = 203,
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the plugin in Rust is for x86_64 and aarch64; elsewhere, use the script podtide.py");

// The same on both.
const HERE: usize = -100_isize as usize;
const O_RDONLY: usize = 0;
const O_WRONLY: usize = 1;
const O_CREAT: usize = 0o100;
const O_TRUNC: usize = 0o1000;
const AF_UNIX: u16 = 1;
const SOCK_STREAM: usize = 1;
const SOCK_NONBLOCK: usize = 0o4000;
const POLLIN: u16 = 1;
const POLLOUT: u16 = 4;
const CLOCK_MONOTONIC: usize = 1;
const SIGPIPE: usize = 13;
const SIG_IGN: usize = 1;
const SIGNALS_BYTES: usize = 8;
const LONGEST_PATH: usize = 4096;
const LONGEST_SOCKET_PATH: usize = 108;
const STDERR: i32 = 2;

pub const STDIN: File = File(0);
pub const STDOUT: File = File(1);

/// # Safety
/// That of the call which the number stands for.
unsafe fn ask(number: Number, [first, second, third, fourth, fifth]: [usize; 5]) -> Result<usize, Errno> {
    let result: isize;
    #[cfg(target_arch = "x86_64")]
    asm!(
        "syscall",
        inlateout("rax") number as isize => result,
        in("rdi") first, in("rsi") second, in("rdx") third, in("r10") fourth, in("r8") fifth,
        lateout("rcx") _, lateout("r11") _,
        options(nostack)
    );
    #[cfg(target_arch = "aarch64")]
    asm!(
        "svc 0",
        in("x8") number as isize,
        inlateout("x0") first as isize => result,
        in("x1") second, in("x2") third, in("x3") fourth, in("x4") fifth,
        options(nostack)
    );
    usize::try_from(result).map_err(|_| Errno(result.wrapping_neg() as i32))
}

/// An error of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(i32);

impl Errno {
    const INTERRUPTED: Errno = Errno(4);
    pub const NOT_NOW: Errno = Errno(11);
    const EXISTS: Errno = Errno(17);
    const LONG_NAME: Errno = Errno(36);
}

/// Those that the plugin's few calls can meet.
const IN_WORDS: [(Errno, &str); 25] = [
    (Errno(1), "Operation not permitted"),
    (Errno(2), "No such file or directory"),
    (Errno(5), "Input/output error"),
    (Errno(9), "Bad file descriptor"),
    (Errno(11), "Resource temporarily unavailable"),
    (Errno(12), "Cannot allocate memory"),
    (Errno(13), "Permission denied"),
    (Errno(17), "File exists"),
    (Errno(20), "Not a directory"),
    (Errno(21), "Is a directory"),
    (Errno(22), "Invalid argument"),
    (Errno(23), "Too many open files in system"),
    (Errno(24), "Too many open files"),
    (Errno(27), "File too large"),
    (Errno(28), "No space left on device"),
    (Errno(30), "Read-only file system"),
    (Errno(31), "Too many links"),
    (Errno(32), "Broken pipe"),
    (Errno(36), "File name too long"),
    (Errno(40), "Too many levels of symbolic links"),
    (Errno(91), "Protocol wrong type for socket"),
    (Errno(104), "Connection reset by peer"),
    (Errno(105), "No buffer space available"),
    (Errno(111), "Connection refused"),
    (Errno(122), "Disk quota exceeded"),
];

impl fmt::Display for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let words = IN_WORDS.iter().find(|(known, _)| known == self).map_or("Unknown error", |(_, words)| words);
        write!(formatter, "{words} (os error {})", self.0)
    }
}

/// The variables that this process was started with.
#[derive(Clone, Copy)]
pub struct Environment {
    first: *const *const u8,
}

impl Environment {
    /// # Safety
    /// The stack must be as Linux makes it for a new process: the count of arguments, the arguments, nothing, the
    /// variables, nothing.
    pub unsafe fn on_stack(stack: *const usize) -> Environment {
        Environment { first: stack.add(2).add(*stack).cast() }
    }

    /// Each `NAME=value`, with the NUL behind it. What has no value is no variable.
    pub fn variables(self) -> impl Iterator<Item = &'static [u8]> {
        self.texts().filter(|text| text.contains(&b'='))
    }

    fn texts(self) -> impl Iterator<Item = &'static [u8]> {
        let mut next = self.first;
        core::iter::from_fn(move || {
            // SAFETY: every pointer but the last, which is null, is to a text that ends with a NUL, and all of it stays
            // where it is for as long as the process lives.
            unsafe {
                let text = *next;
                if text.is_null() {
                    return None;
                }
                next = next.add(1);
                // Volatile, or the compiler would call the C library's strlen, which is not there.
                let length = (0_usize..).find(|&place| text.add(place).read_volatile() == 0)?;
                Some(core::slice::from_raw_parts(text, length.saturating_add(1)))
            }
        })
    }
}

/// A file or a socket that is open.
pub struct File(i32);

impl File {
    /// How many bytes came into the space: none, at the end.
    pub fn read(&self, space: &mut [u8]) -> Result<usize, Errno> {
        // SAFETY: Linux writes to the space and not beyond it.
        let read = || unsafe { ask(Number::Read, [self.0 as usize, space.as_mut_ptr() as usize, space.len(), 0, 0]) };
        uninterrupted(read)
    }

    /// How many of the bytes were taken.
    pub fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        // SAFETY: Linux reads the bytes and none beyond them.
        let write = || unsafe { ask(Number::Write, [self.0 as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0]) };
        uninterrupted(write)
    }

    pub fn write_all(&self, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            bytes = bytes.get(self.write(bytes)?..).unwrap_or_default();
        }
        Ok(())
    }

    /// Open it to write it anew, for its owner alone.
    pub fn create(path: &Path) -> Result<File, Errno> {
        open(path, O_WRONLY | O_CREAT | O_TRUNC)
    }

    /// A socket that never waits by itself.
    pub fn socket() -> Result<File, Errno> {
        // SAFETY: it takes numbers alone.
        let socket = unsafe { ask(Number::Socket, [AF_UNIX.into(), SOCK_STREAM | SOCK_NONBLOCK, 0, 0, 0]) };
        socket.map(|descriptor| File(descriptor as i32))
    }

    /// Connect it; `NOT_NOW` if the listener's queue is full.
    pub fn connect(&self, address: &Address) -> Result<(), Errno> {
        let place: *const Address = address;
        // SAFETY: the address is laid out as Linux has it, to its whole length.
        unsafe { ask(Number::Connect, [self.0 as usize, place as usize, size_of::<Address>(), 0, 0]) }.map(drop)
    }

    /// Wait until something can be read, or the time is over.
    pub fn wait_for_more(&self, time: Duration) -> Result<(), Errno> {
        wait(&mut [Awaited { descriptor: self.0, events: POLLIN, happened: 0 }], time)
    }

    /// Wait until something can be written, or the time is over.
    pub fn wait_for_room(&self, time: Duration) -> Result<(), Errno> {
        wait(&mut [Awaited { descriptor: self.0, events: POLLOUT, happened: 0 }], time)
    }
}

/// The address of a unix socket.
#[repr(C)]
pub struct Address {
    family: u16,
    path: [u8; LONGEST_SOCKET_PATH],
}

impl Address {
    /// None where the path is too long for a socket: a NUL ends it.
    pub fn of(path: &[u8]) -> Option<Address> {
        let mut address = Address { family: AF_UNIX, path: [0; LONGEST_SOCKET_PATH] };
        let (_nul, room) = address.path.split_last_mut()?;
        room.get_mut(..path.len())?.copy_from_slice(path);
        Some(address)
    }
}

/// A file's path, with the NUL behind it.
pub struct Path([u8; LONGEST_PATH]);

impl Path {
    /// The parts, one behind the other.
    pub fn joined(parts: &[&[u8]]) -> Result<Path, Errno> {
        let mut path = Path([0; LONGEST_PATH]);
        let mut room = path.0.iter_mut();
        let _nul = room.next_back();
        for byte in parts.iter().copied().flatten() {
            *room.next().ok_or(Errno::LONG_NAME)? = *byte;
        }
        Ok(path)
    }

    fn place(&self) -> usize {
        self.0.as_ptr() as usize
    }
}

fn open(path: &Path, flags: usize) -> Result<File, Errno> {
    // SAFETY: the path ends with a NUL.
    let file = unsafe { ask(Number::Open, [HERE, path.place(), flags, 0o600, 0]) };
    file.map(|descriptor| File(descriptor as i32))
}

/// Make a directory for its owner alone, if there is nothing of that name.
pub fn make_directory(path: &Path) -> Result<(), Errno> {
    // SAFETY: the path ends with a NUL.
    match unsafe { ask(Number::MakeDirectory, [HERE, path.place(), 0o700, 0, 0]) } {
        Ok(_) | Err(Errno::EXISTS) => Ok(()),
        Err(error) => Err(error),
    }
}

pub fn rename(from: &Path, to: &Path) -> Result<(), Errno> {
    // SAFETY: the paths end with a NUL.
    unsafe { ask(Number::Rename, [HERE, from.place(), HERE, to.place(), 0]) }.map(drop)
}

pub fn remove(path: &Path) -> Result<(), Errno> {
    // SAFETY: the path ends with a NUL.
    unsafe { ask(Number::Remove, [HERE, path.place(), 0, 0, 0]) }.map(drop)
}

pub fn process_id() -> usize {
    // SAFETY: it takes nothing, and cannot fail.
    unsafe { ask(Number::ProcessId, [0; 5]) }.unwrap_or_default()
}

/// The time since the machine started.
pub fn now() -> Duration {
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    let place: *mut Time = &mut time;
    // SAFETY: Linux writes one time to that place. It cannot fail: there is such a clock.
    let _ = unsafe { ask(Number::Time, [CLOCK_MONOTONIC, place as usize, 0, 0, 0]) };
    Duration::new(time.seconds, time.nanoseconds as u32)
}

pub fn sleep(time: Duration) {
    // Whoever is woken too early looks at the clock.
    let _ = wait(&mut [], time);
}

#[repr(C)]
struct Time {
    seconds: u64,
    nanoseconds: u64,
}

#[repr(C)]
struct Awaited {
    descriptor: i32,
    events: u16,
    happened: u16,
}

/// Until one of them has happened, or the time is over, or there was a signal.
fn wait(awaited: &mut [Awaited], time: Duration) -> Result<(), Errno> {
    let mut left = Time { seconds: time.as_secs(), nanoseconds: time.subsec_nanos().into() };
    match poll(awaited, &mut left) {
        Ok(_) | Err(Errno::INTERRUPTED) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Linux writes back how much of the time is left, so the time is lent to it to write, and is no caller's own.
fn poll(awaited: &mut [Awaited], left: &mut Time) -> Result<usize, Errno> {
    let place: *mut Time = left;
    // SAFETY: both are laid out as Linux has them. It writes to both and not beyond them.
    unsafe { ask(Number::Poll, [awaited.as_mut_ptr() as usize, awaited.len(), place as usize, 0, 0]) }
}

/// Where the runtime closed one of the three standard files, the socket must not come to stand in its place. What does
/// can be read, and is empty, but not written: an answer must not vanish in it as if somebody had it.
pub fn occupy_standard_files() {
    if let Ok(null) = Path::joined(&[b"/dev/null"]) {
        while matches!(open(&null, O_RDONLY), Ok(File(descriptor)) if descriptor <= STDERR) {}
    }
}

/// Whoever writes to nobody gets an error, instead of being killed.
pub fn ignore_broken_pipes() {
    let action = [SIG_IGN, 0, 0, 0];
    // SAFETY: handler, flags, restorer and mask, as Linux has them. It cannot fail: there is such a signal.
    let _ = unsafe { ask(Number::SetSignalAction, [SIGPIPE, action.as_ptr() as usize, 0, SIGNALS_BYTES, 0]) };
}

pub fn exit(status: u8) -> ! {
    loop {
        // SAFETY: nothing comes after it.
        let _ = unsafe { ask(Number::Exit, [status.into(), 0, 0, 0, 0]) };
    }
}

fn uninterrupted(mut attempt: impl FnMut() -> Result<usize, Errno>) -> Result<usize, Errno> {
    loop {
        match attempt() {
            Err(Errno::INTERRUPTED) => {}
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Error;
    use std::string::ToString;
    use std::vec::Vec;

    use super::{now, poll, Environment, Errno, Path, Time, IN_WORDS};

    #[test]
    fn the_variables_stand_behind_the_arguments() {
        let texts = [&b"podtide\0"[..], b"an=argument\0", b"", b"A=1\0", b"no variable\0", b"B=\0", b"", b"C=3\0"];
        let place = |text: &[u8]| if text.is_empty() { 0 } else { text.as_ptr() as usize };
        let stack: Vec<usize> = [2].into_iter().chain(texts.map(place)).collect();
        // SAFETY: two arguments, nothing, the variables, nothing.
        let environment = unsafe { Environment::on_stack(stack.as_ptr()) };
        assert_eq!(environment.variables().collect::<Vec<_>>(), [b"A=1\0", &b"B=\0"[..]]);
    }

    #[test]
    fn errors_are_told_in_the_systems_words() {
        for (Errno(number), _) in IN_WORDS {
            assert_eq!(Errno(number).to_string(), Error::from_raw_os_error(number).to_string());
        }
        assert_eq!(Errno(4000).to_string(), "Unknown error (os error 4000)");
    }

    #[test]
    fn a_path_has_room_for_its_end() {
        assert!(Path::joined(&[b"/", &[b'a'; 4094]]).is_ok());
        assert_eq!(Path::joined(&[b"/", &[b'a'; 4095]]).err(), Some(Errno::LONG_NAME));
    }

    #[test]
    fn the_time_left_is_written_to_the_waits_own_copy() {
        let mut left = Time { seconds: 0, nanoseconds: 1_000_000 };
        assert_eq!(poll(&mut [], &mut left), Ok(0));
        assert_eq!((left.seconds, left.nanoseconds), (0, 0));
    }

    #[test]
    fn the_clock_goes_on() {
        let before = now();
        assert!(!before.is_zero() && now() >= before);
    }
}
