//! What went wrong, as CNI says it: a code that the runtime acts on, and a sentence for a person.

use core::fmt::{self, Write};

use crate::agent::Silence;
use crate::answer::Answer;
use crate::note::Obstacle;
use crate::system::Errno;
use crate::text::{Quoted, Readable, Text};

/// The codes of the CNI specification that a plugin which decides nothing can need.
#[derive(Clone, Copy)]
enum Code {
    InvalidEnvironment = 4,
    IoFailure = 5,
    Undecodable = 6,
    TryAgainLater = 11,
    NotAvailable = 50,
}

impl Code {
    /// The code in words; the agent uses the same.
    fn meaning(self) -> &'static str {
        match self {
            Code::InvalidEnvironment => "an environment variable is missing or malformed",
            Code::IoFailure => "reading or writing failed",
            Code::Undecodable => "the network configuration is not JSON of the right shape",
            Code::TryAgainLater => "a passing condition: the same call may succeed later",
            Code::NotAvailable => "the plugin cannot serve ADD now",
        }
    }
}

/// Every fault there is.
pub enum Fault {
    NoCommand,
    Unreadable(Errno),
    TooLarge,
    NoAnswer(NoAnswer),
    NoNote(NoAnswer, Obstacle),
}

/// The agent is away.
pub struct NoAnswer {
    pub verb: &'static [u8],
    pub socket: &'static [u8],
    pub why: Silence,
}

impl Fault {
    fn code(&self) -> Code {
        match self {
            Fault::NoCommand | Fault::NoNote(_, Obstacle::Nameless) => Code::InvalidEnvironment,
            Fault::Unreadable(_) => Code::IoFailure,
            Fault::TooLarge => Code::Undecodable,
            Fault::NoAnswer(NoAnswer { verb: b"STATUS", .. }) => Code::NotAvailable,
            Fault::NoAnswer(_) | Fault::NoNote(_, Obstacle::Unwritable { .. }) => Code::TryAgainLater,
        }
    }

    /// The fault as the runtime reads it, in the caller's version.
    pub fn answer<'a>(&self, cni_version: &str, space: &'a mut [u8]) -> Answer<'a> {
        let mut words = Text::new(space);
        let (version, message) = (Quoted(cni_version), Quoted(self));
        let (code, meaning) = (self.code() as u8, Quoted(self.code().meaning()));
        // There is room: see MOST_WORDS.
        let _ = writeln!(words, "{{\"cniVersion\":{version},\"code\":{code},\"msg\":{message},\"details\":{meaning}}}");
        Answer { exit_status: 1, stdout: words.into_bytes() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Fault::NoCommand => {
                formatter.write_str("CNI_COMMAND is not set; this is a CNI plugin, and container runtimes start it")
            }
            Fault::Unreadable(error) => {
                write!(formatter, "the network configuration on stdin cannot be read: {error}")
            }
            Fault::TooLarge => formatter.write_str(
                "the network configuration on stdin has more than 1 MiB; a network needs a few hundred bytes",
            ),
            Fault::NoAnswer(silence) => write!(formatter, "{silence}"),
            Fault::NoNote(silence, obstacle) => write!(formatter, "{silence}; and no note can be left {obstacle}"),
        }
    }
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let (verb, socket, why) = (Readable(self.verb), Readable(self.socket), &self.why);
        write!(formatter, "{verb}: podtide's agent gave no answer on {socket}: {why}")
    }
}
