//! A DEL that found no agent: a file beside the socket, which the agent carries out when it is back.

use core::fmt::{self, Write};

use crate::call::Call;
use crate::system::{make_directory, process_id, remove, rename, Errno, File, Path};
use crate::text::{Readable, Text};

const DIRECTORY: &[u8] = b"deleted";
const LONGEST_INTERFACE: usize = 15;

/// Why there is no note.
pub enum Obstacle {
    Nameless,
    Unwritable { beside: &'static [u8], error: Errno },
}

/// In words that go on after "no note can be left".
impl fmt::Display for Obstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Obstacle::Nameless => formatter.write_str("without a proper CNI_CONTAINERID and CNI_IFNAME"),
            Obstacle::Unwritable { beside, error } => {
                write!(formatter, "in {}{}: {error}", Readable(beside), Readable(DIRECTORY))
            }
        }
    }
}

/// Leave the call as a note, which is all that a DEL needs to succeed.
pub fn leave(call: &Call) -> Result<(), Obstacle> {
    let (container, interface) = (call.variable(b"CNI_CONTAINERID"), call.variable(b"CNI_IFNAME"));
    if !is_container_id(container) || !is_interface(interface) {
        return Err(Obstacle::Nameless);
    }
    let beside = directory_of(call.socket());
    write(beside, container, interface, call.body()).map_err(|error| Obstacle::Unwritable { beside, error })
}

/// The path up to its last slash, and with it.
fn directory_of(path: &[u8]) -> &[u8] {
    let length = path.iter().rposition(|&byte| byte == b'/').map_or(0, |place| place.saturating_add(1));
    path.get(..length).unwrap_or_default()
}

fn is_container_id(text: &[u8]) -> bool {
    let begins_well = text.first().map_or(false, u8::is_ascii_alphanumeric);
    begins_well && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(byte))
}

fn is_interface(text: &[u8]) -> bool {
    let length_fits = (1..=LONGEST_INTERFACE).contains(&text.len());
    length_fits && text != b"." && text != b".." && !text.iter().any(|byte| b"/: \t\n\x0b\x0c\r".contains(byte))
}

/// Written under another name and renamed, so that the agent never reads half a note.
fn write(beside: &[u8], container: &[u8], interface: &[u8], content: &[u8]) -> Result<(), Errno> {
    make_directories(beside)?;
    // `<container id>@<interface>`: the first `@` parts them, since no container id has one.
    let finished = Path::joined(&[beside, DIRECTORY, b"/", container, b"@", interface])?;
    let mut digits = [0; 20];
    let mut process = Text::new(&mut digits);
    // There is room, for any number.
    let _ = write!(process, "{}", process_id());
    let unfinished = Path::joined(&[beside, DIRECTORY, b"/.", container, b"@", interface, b".", process.bytes()])?;
    let written = File::create(&unfinished)?.write_all(content).and_then(|()| rename(&unfinished, &finished));
    if written.is_err() {
        // Whether this works changes nothing: the first error is the one to tell.
        let _ = remove(&unfinished);
    }
    written
}

/// Before the agent's first start not even the socket's directory is there.
fn make_directories(beside: &[u8]) -> Result<(), Errno> {
    let slashes = beside.iter().enumerate().skip(1).filter(|(_, &byte)| byte == b'/');
    for (place, _) in slashes {
        make_directory(&Path::joined(&[beside.get(..place).unwrap_or_default()])?)?;
    }
    make_directory(&Path::joined(&[beside, DIRECTORY])?)
}
