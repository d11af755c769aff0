//! Asking the node's agent, and how long that may take.

use core::fmt;
use core::time::Duration;

use crate::answer::{read_acknowledgement, read_answer, Answer};
use crate::system::{now, sleep, Address, Errno, File};
use crate::text::{split_once, Text};

/// How long the agent has to take the connection and to acknowledge. After that it says itself how long it needs.
const PATIENCE_SECONDS: u32 = 2;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// Why there is no answer.
pub enum Silence {
    Failed(Errno),
    LongPath,
    Late { awaited: &'static str, seconds: u32 },
    CutShort,
    Stranger,
}

impl From<Errno> for Silence {
    fn from(error: Errno) -> Silence {
        Silence::Failed(error)
    }
}

/// In words that follow a colon.
impl fmt::Display for Silence {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Silence::Failed(error) => write!(formatter, "{error}"),
            Silence::LongPath => formatter.write_str("the path is too long for a socket"),
            Silence::Late { awaited, seconds } => write!(formatter, "no {awaited} within {seconds} seconds"),
            Silence::CutShort => formatter.write_str("it ended the connection before its answer was whole"),
            Silence::Stranger => formatter.write_str("what answers there is not podtide's agent"),
        }
    }
}

/// Send the request and wait for the answer, which is put into the space.
pub fn ask<'a>(socket: &[u8], request: &[u8], space: &'a mut [u8]) -> Result<Answer<'a>, Silence> {
    let address = Address::of(socket).ok_or(Silence::LongPath)?;
    let limit = Limit::new("acknowledgement", PATIENCE_SECONDS);
    let agent = connect(&address, &limit)?;
    send(&agent, request, &limit)?;
    let mut received = Received { agent, limit, text: Text::new(space), taken: 0 };
    let wait = read_acknowledgement(&mut received)?;
    received.limit = Limit::new("answer", wait);
    read_answer(received)
}

/// Where the agent's queue is full, it is tried again as long as the limit allows.
fn connect(address: &Address, limit: &Limit) -> Result<File, Silence> {
    let agent = File::socket()?;
    while let Err(error) = agent.connect(address) {
        if error != Errno::NOT_NOW {
            return Err(error.into());
        }
        limit.time_left()?;
        sleep(BETWEEN_TRIES);
    }
    Ok(agent)
}

fn send(agent: &File, mut request: &[u8], limit: &Limit) -> Result<(), Silence> {
    while !request.is_empty() {
        match agent.write(request) {
            Ok(length) => request = request.get(length..).unwrap_or_default(),
            Err(Errno::NOT_NOW) => agent.wait_for_room(limit.time_left()?)?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// For how long something is awaited.
struct Limit {
    awaited: &'static str,
    seconds: u32,
    begin: Duration,
}

impl Limit {
    fn new(awaited: &'static str, seconds: u32) -> Limit {
        Limit { awaited, seconds, begin: now() }
    }

    fn time_left(&self) -> Result<Duration, Silence> {
        let elapsed = now().saturating_sub(self.begin);
        let left = Duration::from_secs(self.seconds.into()).checked_sub(elapsed).filter(|left| !left.is_zero());
        left.ok_or(Silence::Late { awaited: self.awaited, seconds: self.seconds })
    }
}

/// What has come from the agent; nothing outlasts the limit, however slowly it comes.
pub struct Received<'a> {
    agent: File,
    limit: Limit,
    text: Text<'a>,
    taken: usize,
}

impl<'a> Received<'a> {
    /// Everything up to and with the ending, which must come within so many bytes.
    pub fn through(&mut self, ending: &[u8], most: usize) -> Result<&[u8], Silence> {
        let length = loop {
            let rest = self.rest();
            let within = rest.get(..most).unwrap_or(rest);
            match split_once(within, ending) {
                Some((_, behind)) => break within.len().saturating_sub(behind.len()),
                None if rest.len() >= most => return Err(Silence::Stranger),
                None => self.receive()?,
            }
        };
        let start = self.taken;
        self.taken = start.saturating_add(length);
        Ok(self.text.bytes().get(start..self.taken).unwrap_or_default())
    }

    /// Exactly so many bytes, and then nothing more.
    pub fn exactly(mut self, length: usize) -> Result<&'a [u8], Silence> {
        while self.rest().len() < length {
            self.receive()?;
        }
        let rest = self.text.into_bytes().get(self.taken..).unwrap_or_default();
        Ok(rest.get(..length).unwrap_or_default())
    }

    fn rest(&self) -> &[u8] {
        self.text.bytes().get(self.taken..).unwrap_or_default()
    }

    fn receive(&mut self) -> Result<(), Silence> {
        self.agent.wait_for_more(self.limit.time_left()?)?;
        match self.agent.read(self.text.room()) {
            Ok(0) => Err(Silence::CutShort),
            Ok(length) => {
                self.text.grow(length);
                Ok(())
            }
            Err(Errno::NOT_NOW) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
