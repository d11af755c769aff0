//! What went wrong, as CNI says it: a code that the runtime acts on, and a sentence for a person.

use std::borrow::Cow;

use crate::answer::Answer;

/// The codes of the CNI specification that a plugin which decides nothing can need.
#[derive(Clone, Copy)]
pub enum Code {
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

pub struct Fault {
    code: Code,
    message: Cow<'static, str>,
}

impl Fault {
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Fault {
        Fault { code, message: message.into() }
    }

    /// The fault as the runtime reads it, in the caller's version.
    pub fn answer(&self, cni_version: &str) -> Answer {
        let document = format!(
            "{{\"cniVersion\":{},\"code\":{},\"msg\":{},\"details\":{}}}\n",
            json_string(cni_version),
            self.code as u8,
            json_string(&self.message),
            json_string(self.code.meaning()),
        );
        Answer { exit_status: 1, stdout: document.into_bytes() }
    }
}

fn json_string(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\0'..='\x1f' => quoted.push_str(&format!("\\u{:04x}", u32::from(character))),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::json_string;

    #[test]
    fn whatever_json_reserves_is_escaped() {
        assert_eq!(json_string("plain é"), "\"plain é\"");
        assert_eq!(json_string("a\"b\\c\n\0"), r#""a\"b\\c\u000a\u0000""#);
    }
}
