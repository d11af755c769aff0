//! From the runtime's call to the answer that is printed. See `main.rs` for how it starts.

#![no_std]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unsafe_code
)]

#[cfg(test)]
extern crate std;

mod agent;
mod answer;
mod call;
mod fault;
mod note;
#[allow(unsafe_code)]
pub mod system;
mod text;
mod version;

use agent::{ask, Silence};
use answer::{Answer, MOST_BYTES};
use call::{Call, MOST_REQUEST};
use fault::{Fault, NoAnswer};
use system::{ignore_broken_pipes, occupy_standard_files, Environment, STDIN, STDOUT};

/// A call's verb and socket come from the environment, of which Linux allows 128 kB a piece; in JSON they grow.
const MOST_WORDS: usize = 1 << 21;

/// All the memory there is: nothing is allocated.
pub struct Memory {
    request: [u8; MOST_REQUEST],
    answer: [u8; MOST_BYTES],
    words: [u8; MOST_WORDS],
}

impl Memory {
    pub const EMPTY: Memory = Memory { request: [0; MOST_REQUEST], answer: [0; MOST_BYTES], words: [0; MOST_WORDS] };
}

/// Carry out the call that this process was started for, print the answer, and say with which status to exit.
pub fn run(environment: Environment, memory: &mut Memory) -> u8 {
    occupy_standard_files();
    ignore_broken_pipes();
    let mut call = Call::new(environment, &mut memory.request);
    let answer = call.read(&STDIN).and_then(|()| carry_out(&mut call, &mut memory.answer));
    print(&answer.unwrap_or_else(|fault| fault.answer(version::of(call.configuration()), &mut memory.words)))
}

fn carry_out<'a>(call: &mut Call, space: &'a mut [u8]) -> Result<Answer<'a>, Fault> {
    match call.verb() {
        b"" => Err(Fault::NoCommand),
        b"VERSION" => Ok(version::answer(call.configuration(), space)),
        _ => ask(call.socket(), call.request(), space).or_else(|why| without_agent(call, why)),
    }
}

/// The agent is away. A sandbox that is gone must not wait for it: a note tells the agent when it is back.
fn without_agent(call: &Call, why: Silence) -> Result<Answer<'static>, Fault> {
    let silence = NoAnswer { verb: call.verb(), socket: call.socket(), why };
    if silence.verb != b"DEL" {
        return Err(Fault::NoAnswer(silence));
    }
    note::leave(call).map_err(|obstacle| Fault::NoNote(silence, obstacle))?;
    Ok(Answer { exit_status: 0, stdout: b"" })
}

/// An answer that does not reach the runtime was none: then the call has failed, whatever the agent did.
fn print(answer: &Answer) -> u8 {
    STDOUT.write_all(answer.stdout).map_or(1, |()| answer.exit_status)
}
