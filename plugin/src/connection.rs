//! Connecting to a unix socket without waiting, which is the one thing that Rust's standard library has no way to say.
//!
//! Its `connect` waits for room in the listener's queue for as long as that takes. Doing it in a thread would put a
//! limit to it, and takes a third of the time that this whole program takes.

use std::io::{Error, ErrorKind, Result};
use std::os::raw::c_int;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::io::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

// As Linux has them on every architecture that Kubernetes runs on.
const AF_UNIX: u16 = 1;
const SOCK_STREAM: c_int = 1;
const SOCK_NONBLOCK: c_int = 0o4000;
const SOCK_CLOEXEC: c_int = 0o2_000_000;
const LONGEST_PATH: usize = 108;

#[repr(C)]
struct Address {
    family: u16,
    path: [u8; LONGEST_PATH],
}

extern "C" {
    fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int;
    fn connect(socket: c_int, address: *const Address, length: u32) -> c_int;
}

/// A connection, or at once the reason why there is none: `WouldBlock` if the listener's queue is full.
pub fn connect_at_once(path: &Path) -> Result<UnixStream> {
    let address = address_of(path)?;
    // SAFETY: it takes numbers alone.
    let descriptor = unsafe { socket(AF_UNIX.into(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) };
    if descriptor < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the descriptor was opened just now, and nobody else knows it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // SAFETY: the address outlives the call, and is laid out as Linux has it, to its whole length.
    let connected = unsafe { connect(descriptor.as_raw_fd(), &address, std::mem::size_of::<Address>() as u32) };
    if connected < 0 {
        return Err(Error::last_os_error());
    }
    let stream = UnixStream::from(descriptor);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// The path with a NUL behind it, which ends it.
fn address_of(path: &Path) -> Result<Address> {
    let bytes = path.as_os_str().as_bytes();
    let mut address = Address { family: AF_UNIX, path: [0; LONGEST_PATH] };
    if bytes.len() >= LONGEST_PATH {
        return Err(Error::new(ErrorKind::InvalidInput, "the path is too long for a socket"));
    }
    address.path.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    Ok(address)
}
