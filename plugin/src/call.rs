//! One call of the runtime: its `CNI_*` variables and the network configuration.
//!
//! Both are bytes and stay bytes: whether they make sense is for the agent to say.

use std::env;
use std::os::unix::ffi::OsStringExt;

pub struct Call<'a> {
    variables: Vec<(Vec<u8>, Vec<u8>)>,
    configuration: &'a [u8],
}

impl<'a> Call<'a> {
    pub fn from_environment(configuration: &'a [u8]) -> Call<'a> {
        let variables = env::vars_os()
            .map(|(name, value)| (name.into_vec(), value.into_vec()))
            .filter(|(name, _)| name.starts_with(b"CNI_"))
            .collect();
        Call { variables, configuration }
    }

    pub fn configuration(&self) -> &[u8] {
        self.configuration
    }

    /// The variable's value; empty counts as missing, as it does for every plugin.
    pub fn variable(&self, name: &str) -> &[u8] {
        let found = self.variables.iter().find(|(known, _)| known == name.as_bytes());
        found.map_or(b"", |(_, value)| value)
    }

    pub fn verb(&self) -> &[u8] {
        self.variable("CNI_COMMAND")
    }

    /// The call as the agent reads it, from its socket or from a note.
    pub fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for (name, value) in &self.variables {
            body.extend_from_slice(name);
            body.push(b'=');
            body.extend_from_slice(value);
            body.push(0);
        }
        body.push(0);
        body.extend_from_slice(self.configuration);
        body
    }
}
