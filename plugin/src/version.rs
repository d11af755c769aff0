//! The versions of CNI that podtide speaks, and the one that a configuration states.
//!
//! The plugin does not parse the configuration, which is the agent's business. It looks for one key, because an error
//! is to be said in the caller's version also where no agent answers.

use core::fmt::Write;
use core::str::from_utf8;

use crate::answer::Answer;
use crate::text::Text;

const NEWEST: &str = "1.1.0";
const SUPPORTED: &str = r#"["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]"#;
const LONGEST: usize = 32;

/// The answer to VERSION.
pub fn answer<'a>(configuration: &[u8], space: &'a mut [u8]) -> Answer<'a> {
    let mut words = Text::new(space);
    let stated = of(configuration);
    // There is room: a version is short.
    let _ = writeln!(words, "{{\"cniVersion\":\"{stated}\",\"supportedVersions\":{SUPPORTED}}}");
    Answer { exit_status: 0, stdout: words.into_bytes() }
}

/// The configuration's `cniVersion`, or the newest where it states none that could be a version.
pub fn of(configuration: &[u8]) -> &str {
    let stated = stated(configuration).filter(|text| could_be_a_version(text));
    stated.and_then(|text| from_utf8(text).ok()).unwrap_or(NEWEST)
}

fn could_be_a_version(text: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b".+-".contains(byte);
    (1..=LONGEST).contains(&text.len()) && text.iter().all(allowed)
}

/// The string behind the first key `cniVersion` of the outermost object.
fn stated(document: &[u8]) -> Option<&[u8]> {
    let mut depth = 0_i32;
    let mut named = false;
    let mut colon = false;
    let mut rest = document;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'"' => {
                let text;
                (text, rest) = string(behind)?;
                if named && colon {
                    return Some(text);
                }
                named = depth == 1 && text == b"cniVersion";
                colon = false;
            }
            b':' if !colon => colon = true,
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => {
                named = false;
                match byte {
                    b'{' | b'[' => depth = depth.saturating_add(1),
                    b'}' | b']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
        }
    }
    None
}

/// What stands before the closing quotation mark, and what comes after it.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut escaped = false;
    let end = text.iter().position(|&byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })?;
    Some((text.get(..end)?, text.get(end.saturating_add(1)..)?))
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn the_configuration_states_its_version() {
        assert_eq!(of(br#"{"cniVersion": "0.4.0", "name": "x"}"#), "0.4.0");
        assert_eq!(of(br#"{"name":"\\\"","a":[{}],"cniVersion":"1.0.0"}"#), "1.0.0");
    }

    #[test]
    fn a_version_elsewhere_is_not_the_configurations() {
        assert_eq!(of(br#"{"prevResult": {"cniVersion": "0.4.0"}}"#), "1.1.0");
        assert_eq!(of(br#"{"name": "cniVersion", "type": "0.4.0"}"#), "1.1.0");
        assert_eq!(of(br#"{"name": "\"cniVersion\": \"0.4.0\""}"#), "1.1.0");
    }

    #[test]
    fn what_cannot_be_a_version_counts_as_none() {
        for configuration in ["", "garbage", "{\"cniVersion", "{\"cniVersion\": 4}", r#"{"cniVersion": "\n"}"#] {
            assert_eq!(of(configuration.as_bytes()), "1.1.0");
        }
    }
}
