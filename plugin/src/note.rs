//! A DEL that found no agent: a file beside the socket, which the agent carries out when it is back.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process;

use crate::answer::Answer;
use crate::call::Call;
use crate::fault::{Code, Fault};

const DIRECTORY: &str = "deleted";
const LONGEST_INTERFACE: usize = 15;

/// Leave the call as a note, which is all that a DEL needs to succeed; `why` says what made it necessary.
pub fn leave(call: &Call, socket: &Path, why: &str) -> Result<Answer, Fault> {
    let name = name(call).ok_or_else(|| {
        let message = "and no note can be left without a proper CNI_CONTAINERID and CNI_IFNAME";
        Fault::new(Code::InvalidEnvironment, format!("{why}; {message}"))
    })?;
    let directory = socket.with_file_name(DIRECTORY);
    write(&directory, &name, &call.body()).map_err(|error| {
        let place = directory.display();
        Fault::new(Code::TryAgainLater, format!("{why}; and no note can be left in {place}: {error}"))
    })?;
    Ok(Answer { exit_status: 0, stdout: Vec::new() })
}

/// `<container id>@<interface>`: the first `@` parts them, since no container id has one.
fn name(call: &Call) -> Option<Vec<u8>> {
    let container = call.variable("CNI_CONTAINERID");
    let interface = call.variable("CNI_IFNAME");
    (is_container_id(container) && is_interface(interface)).then(|| [container, b"@", interface].concat())
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
fn write(directory: &Path, name: &[u8], content: &[u8]) -> io::Result<()> {
    // Before the agent's first start not even the socket's directory is there.
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let unfinished = [b".", name, b".", process::id().to_string().as_bytes()].concat();
    let unfinished = directory.join(OsStr::from_bytes(&unfinished));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    let written =
        file.write_all(content).and_then(|()| fs::rename(&unfinished, directory.join(OsStr::from_bytes(name))));
    if written.is_err() {
        // Whether this works changes nothing: the first error is the one to tell.
        let _ = fs::remove_file(unfinished);
    }
    written
}
