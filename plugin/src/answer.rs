//! What the agent sends back: an acknowledgement at once, and the answer when it has one.

use std::io::{self, BufRead, Read};
use std::time::Duration;

/// What the plugin prints, and how it ends.
pub struct Answer {
    pub exit_status: u8,
    pub stdout: Vec<u8>,
}

/// Why there is no answer, in words that follow a colon.
pub struct Silence(pub String);

impl From<io::Error> for Silence {
    fn from(error: io::Error) -> Silence {
        Silence(error.to_string())
    }
}

const MOST_HEAD: usize = 1 << 16;
const MOST_LINE: usize = 16;
const MOST_STDOUT: u32 = 1 << 20;
const USUAL_WAIT_SECONDS: u32 = 5;
const LONGEST_WAIT_SECONDS: u32 = 3600;

/// Read status line and headers: for how long the agent may take from here on.
pub fn read_acknowledgement(agent: &mut impl BufRead) -> Result<Duration, Silence> {
    let head = read_through(agent, b"\r\n\r\n", MOST_HEAD)?;
    let head = String::from_utf8_lossy(&head);
    let mut lines = head.split("\r\n");
    let mut status = lines.next().unwrap_or_default().split(' ');
    if !matches!(status.next(), Some("HTTP/1.0" | "HTTP/1.1")) || status.next() != Some("200") {
        return Err(stranger());
    }
    let wait = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("Podtide-Wait"))
        .and_then(|(_, value)| number(value.trim_matches(|space| space == ' ' || space == '\t')))
        .unwrap_or(USUAL_WAIT_SECONDS);
    Ok(Duration::from_secs(wait.min(LONGEST_WAIT_SECONDS).into()))
}

/// Read `<exit status> <length>`, then so many bytes.
pub fn read_answer(agent: &mut impl BufRead) -> Result<Answer, Silence> {
    let line = read_through(agent, b"\n", MOST_LINE)?;
    let (exit_status, length) = parse_line(&line).ok_or_else(stranger)?;
    let mut stdout = Vec::new();
    agent.take(length.into()).read_to_end(&mut stdout)?;
    if stdout.len() < length as usize {
        return Err(cut_short());
    }
    Ok(Answer { exit_status, stdout })
}

fn parse_line(line: &[u8]) -> Option<(u8, u32)> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let exit_status = match line.get(..2)? {
        "0 " => 0,
        "1 " => 1,
        _ => return None,
    };
    let length = number(line.get(2..)?).filter(|&length| length <= MOST_STDOUT)?;
    Some((exit_status, length))
}

/// Digits alone, and few of them: neither a sign nor an overflow.
fn number(text: &str) -> Option<u32> {
    let plain = text.len() <= 7 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

/// Everything up to and with the ending, which must come within so many bytes.
fn read_through(agent: &mut impl BufRead, ending: &[u8], most: usize) -> Result<Vec<u8>, Silence> {
    let mut text = Vec::new();
    let mut within = agent.take(most as u64);
    while !text.ends_with(ending) {
        if within.read_until(b'\n', &mut text)? == 0 {
            return Err(if text.len() < most { cut_short() } else { stranger() });
        }
    }
    Ok(text)
}

fn cut_short() -> Silence {
    Silence("it ended the connection before its answer was whole".to_owned())
}

fn stranger() -> Silence {
    Silence("what answers there is not podtide's agent".to_owned())
}
