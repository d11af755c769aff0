//! One call of the runtime: its `CNI_*` variables and the network configuration, as the request that they become.
//!
//! Both are bytes and stay bytes: whether they make sense is for the agent to say. They are put where they are sent
//! from, one behind the other, and the head in front of them when it is known how long they are.

use core::fmt::Write;

use crate::fault::Fault;
use crate::system::{Environment, File};
use crate::text::{split_once, Text};

const USUAL_SOCKET: &[u8] = b"/run/podtide/agent.sock";

/// Far more than any network needs. A runtime that sends more is broken, and must not fill our memory.
const MOST_CONFIGURATION: usize = 1 << 20;

/// Linux starts no process with more.
const MOST_ENVIRONMENT: usize = 6 << 20;

const MOST_HEAD: usize = 64;

/// Head, environment, the NUL that ends it, configuration, and one byte more that tells when it is too long.
pub const MOST_REQUEST: usize = MOST_HEAD + MOST_ENVIRONMENT + 1 + MOST_CONFIGURATION + 1;

pub struct Call<'a> {
    environment: Environment,
    request: Text<'a>,
    configuration_at: usize,
}

impl<'a> Call<'a> {
    /// The call without its configuration, which is still to be read.
    pub fn new(environment: Environment, space: &'a mut [u8]) -> Call<'a> {
        let mut request = Text::new(space);
        request.grow(MOST_HEAD);
        for variable in environment.variables().filter(|variable| variable.starts_with(b"CNI_")) {
            // There is room: see MOST_ENVIRONMENT.
            let _ = request.push(variable);
        }
        let _ = request.push(b"\0");
        let configuration_at = request.bytes().len();
        Call { environment, request, configuration_at }
    }

    /// Read the configuration to its end. What was read before a fault is there too: it may state a version.
    pub fn read(&mut self, stdin: &File) -> Result<(), Fault> {
        while self.configuration().len() <= MOST_CONFIGURATION {
            match stdin.read(self.request.room()) {
                Ok(0) => return Ok(()),
                Ok(length) => self.request.grow(length),
                Err(error) => return Err(Fault::Unreadable(error)),
            }
        }
        Err(Fault::TooLarge)
    }

    pub fn configuration(&self) -> &[u8] {
        self.request.bytes().get(self.configuration_at..).unwrap_or_default()
    }

    /// The variable's value; empty counts as missing, as it does for every plugin.
    pub fn variable(&self, name: &[u8]) -> &'static [u8] {
        let mut pairs = self.environment.variables().filter_map(|variable| split_once(variable, b"="));
        let value = pairs.find_map(|(known, value)| (known == name).then_some(value));
        value.and_then(|value| value.strip_suffix(b"\0")).unwrap_or_default()
    }

    pub fn verb(&self) -> &'static [u8] {
        self.variable(b"CNI_COMMAND")
    }

    /// Where the agent is.
    pub fn socket(&self) -> &'static [u8] {
        match self.variable(b"PODTIDE_SOCKET") {
            b"" => USUAL_SOCKET,
            named => named,
        }
    }

    /// What is sent to the agent.
    pub fn request(&mut self) -> &[u8] {
        let mut head = [0; MOST_HEAD];
        let mut head = Text::new(&mut head);
        let length = self.body().len();
        // There is room, for any length.
        let _ = write!(head, "POST /cni HTTP/1.0\r\nContent-Length: {length}\r\n\r\n");
        let start = MOST_HEAD.saturating_sub(head.bytes().len());
        self.request.overwrite(start, head.bytes());
        self.request.bytes().get(start..).unwrap_or_default()
    }

    /// The call as the agent reads it, from its socket or from a note.
    pub fn body(&self) -> &[u8] {
        self.request.bytes().get(MOST_HEAD..).unwrap_or_default()
    }
}
