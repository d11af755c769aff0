//! Asking the node's agent, and how long that may take.

use std::env;
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::answer::{read_acknowledgement, read_answer, Answer, Silence};
use crate::connection::connect_at_once;

/// How long the agent has to take the connection and to acknowledge. After that it says itself how long it needs.
const PATIENCE: Duration = Duration::from_secs(2);
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// Linux takes so much in one step: nothing that is sent is waited for twice.
const MOST_AT_ONCE: usize = 1 << 15;

const USUAL_SOCKET: &str = "/run/podtide/agent.sock";

pub struct Agent {
    socket: PathBuf,
}

impl Agent {
    pub fn of_this_node() -> Agent {
        let named = env::var_os("PODTIDE_SOCKET").filter(|path| !path.is_empty());
        Agent { socket: named.unwrap_or_else(|| USUAL_SOCKET.into()).into() }
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Send the call and wait for the answer.
    pub fn ask(&self, body: &[u8]) -> Result<Answer, Silence> {
        let mut agent = Conversation::open(&self.socket, Limit::new("acknowledgement", PATIENCE))?;
        let mut request = format!("POST /cni HTTP/1.0\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        request.extend_from_slice(body);
        agent.write_all(&request)?;
        let mut agent = BufReader::new(agent);
        let wait = read_acknowledgement(&mut agent)?;
        agent.get_mut().limit = Limit::new("answer", wait);
        read_answer(&mut agent)
    }
}

/// For how long something is awaited.
struct Limit {
    awaited: &'static str,
    time: Duration,
    begin: Instant,
}

impl Limit {
    fn new(awaited: &'static str, time: Duration) -> Limit {
        Limit { awaited, time, begin: Instant::now() }
    }

    fn time_left(&self) -> io::Result<Duration> {
        let left = self.time.checked_sub(self.begin.elapsed()).filter(|left| !left.is_zero());
        left.ok_or_else(|| self.passed())
    }

    fn passed(&self) -> io::Error {
        let words = format!("no {} within {} seconds", self.awaited, self.time.as_secs());
        io::Error::new(ErrorKind::TimedOut, words)
    }

    /// The outcome of a step that had only so much time: that it ran out is told in words.
    fn judge<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.map_err(|error| if error.kind() == ErrorKind::WouldBlock { self.passed() } else { error })
    }
}

/// A connection on which no step outlasts the limit, however slowly the other side takes and gives.
struct Conversation {
    stream: UnixStream,
    limit: Limit,
}

impl Conversation {
    /// Where the agent's queue is full, it is tried again as long as the limit allows.
    fn open(socket: &Path, limit: Limit) -> io::Result<Conversation> {
        loop {
            match connect_at_once(socket) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    limit.time_left()?;
                    thread::sleep(BETWEEN_TRIES);
                }
                connected => return Ok(Conversation { stream: connected?, limit }),
            }
        }
    }
}

impl Read for Conversation {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.limit.time_left()?))?;
        self.limit.judge(self.stream.read(buffer))
    }
}

impl Write for Conversation {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.limit.time_left()?))?;
        self.limit.judge(self.stream.write(bytes.get(..MOST_AT_ONCE).unwrap_or(bytes)))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
