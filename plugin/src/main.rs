//! The executable that a container runtime starts for every pod. It hands the call to the node's agent and prints
//! the answer; PROTOCOL.md is all it knows. `podtide.py` beside it does the same, word for word.

#![deny(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    unsafe_code
)]

mod agent;
mod answer;
mod call;
#[allow(unsafe_code)]
mod connection;
mod fault;
mod note;
mod version;

use std::io::{self, Read, Write};
use std::process::ExitCode;

use agent::Agent;
use answer::Answer;
use call::Call;
use fault::{Code, Fault};

/// Far more than any network needs. A runtime that sends more is broken, and must not fill our memory.
const MOST_CONFIGURATION: usize = 1 << 20;

fn main() -> ExitCode {
    let mut configuration = Vec::new();
    let answer = read_configuration(&mut configuration)
        .and_then(|()| carry_out(&Call::from_environment(&configuration)))
        .unwrap_or_else(|fault| fault.answer(&version::of(&configuration)));
    print(&answer)
}

fn read_configuration(configuration: &mut Vec<u8>) -> Result<(), Fault> {
    let just_too_much = MOST_CONFIGURATION.saturating_add(1);
    io::stdin().lock().take(just_too_much as u64).read_to_end(configuration).map_err(|error| {
        Fault::new(Code::IoFailure, format!("the network configuration on stdin cannot be read: {error}"))
    })?;
    if configuration.len() > MOST_CONFIGURATION {
        let message = "the network configuration on stdin has more than 1 MiB; a network needs a few hundred bytes";
        return Err(Fault::new(Code::Undecodable, message));
    }
    Ok(())
}

fn carry_out(call: &Call) -> Result<Answer, Fault> {
    match call.verb() {
        b"" => Err(Fault::new(
            Code::InvalidEnvironment,
            "CNI_COMMAND is not set; this is a CNI plugin, and container runtimes start it",
        )),
        b"VERSION" => Ok(version::answer(call.configuration())),
        _ => {
            let agent = Agent::of_this_node();
            agent.ask(&call.body()).or_else(|silence| without_agent(call, &agent, &silence.0))
        }
    }
}

/// The agent is away. A sandbox that is gone must not wait for it: a note tells the agent when it is back.
fn without_agent(call: &Call, agent: &Agent, why: &str) -> Result<Answer, Fault> {
    let said = format!(
        "{}: podtide's agent gave no answer on {}: {why}",
        String::from_utf8_lossy(call.verb()),
        agent.socket().display()
    );
    match call.verb() {
        b"DEL" => note::leave(call, agent.socket(), &said),
        b"STATUS" => Err(Fault::new(Code::NotAvailable, said)),
        _ => Err(Fault::new(Code::TryAgainLater, said)),
    }
}

/// An answer that does not reach the runtime was none: then the call has failed, whatever the agent did.
fn print(answer: &Answer) -> ExitCode {
    let mut stdout = io::stdout().lock();
    let printed = stdout.write_all(&answer.stdout).and_then(|()| stdout.flush());
    match printed {
        Ok(()) => ExitCode::from(answer.exit_status),
        Err(_) => ExitCode::FAILURE,
    }
}
