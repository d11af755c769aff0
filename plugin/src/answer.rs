//! What the agent sends back: an acknowledgement at once, and the answer when it has one.

use core::str::from_utf8;

use crate::agent::{Received, Silence};
use crate::text::split_once;

/// What the plugin prints, and how it ends.
pub struct Answer<'a> {
    pub exit_status: u8,
    pub stdout: &'a [u8],
}

const MOST_HEAD: usize = 1 << 16;
const MOST_LINE: usize = 16;
const MOST_STDOUT: usize = 1 << 20;
const USUAL_WAIT_SECONDS: u32 = 5;
const LONGEST_WAIT_SECONDS: u32 = 3600;

/// All that is ever read of an answer.
pub const MOST_BYTES: usize = MOST_HEAD + MOST_LINE + MOST_STDOUT;

/// Read status line and headers: for how many seconds the agent may take from here on.
pub fn read_acknowledgement(agent: &mut Received) -> Result<u32, Silence> {
    let head = agent.through(b"\r\n\r\n", MOST_HEAD)?;
    let (status, mut rest) = split_once(head, b"\r\n").ok_or(Silence::Stranger)?;
    let mut status = status.split(|&byte| byte == b' ');
    if !matches!(status.next(), Some(b"HTTP/1.0" | b"HTTP/1.1")) || status.next() != Some(b"200") {
        return Err(Silence::Stranger);
    }
    while let Some((line, behind)) = split_once(rest, b"\r\n") {
        match split_once(line, b":") {
            Some((name, value)) if name.eq_ignore_ascii_case(b"Podtide-Wait") => {
                let wait = from_utf8(value).ok().and_then(|text| number(text.trim_matches([' ', '\t'].as_slice())));
                return Ok(wait.unwrap_or(USUAL_WAIT_SECONDS).min(LONGEST_WAIT_SECONDS));
            }
            _ => rest = behind,
        }
    }
    Ok(USUAL_WAIT_SECONDS)
}

/// Read `<exit status> <length>`, then so many bytes.
pub fn read_answer<'a>(mut agent: Received<'a>) -> Result<Answer<'a>, Silence> {
    let line = agent.through(b"\n", MOST_LINE)?;
    let (exit_status, length) = parse_line(line).ok_or(Silence::Stranger)?;
    Ok(Answer { exit_status, stdout: agent.exactly(length)? })
}

fn parse_line(line: &[u8]) -> Option<(u8, usize)> {
    let line = from_utf8(line).ok()?.strip_suffix('\n')?;
    let exit_status = match line.get(..2)? {
        "0 " => 0,
        "1 " => 1,
        _ => return None,
    };
    let length = usize::try_from(number(line.get(2..)?)?).ok()?;
    (length <= MOST_STDOUT).then_some((exit_status, length))
}

/// Digits alone, and few of them: neither a sign nor an overflow.
fn number(text: &str) -> Option<u32> {
    let plain = text.len() <= 7 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}
