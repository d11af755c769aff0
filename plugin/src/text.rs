//! Words in memory that was set aside for them, and bytes made readable.

use core::fmt::{Display, Error, Formatter, Result, Write};
use core::str::from_utf8;

/// Bytes, as many as there is room for.
pub struct Text<'a> {
    space: &'a mut [u8],
    length: usize,
}

impl<'a> Text<'a> {
    pub fn new(space: &'a mut [u8]) -> Text<'a> {
        Text { space, length: 0 }
    }

    pub fn bytes(&self) -> &[u8] {
        self.space.get(..self.length).unwrap_or_default()
    }

    /// All of it, or an error and nothing.
    pub fn push(&mut self, bytes: &[u8]) -> Result {
        let free = self.room().get_mut(..bytes.len()).ok_or(Error)?;
        free.copy_from_slice(bytes);
        self.grow(bytes.len());
        Ok(())
    }

    /// Put these in the place of others; those for which there are none are left out.
    pub fn overwrite(&mut self, start: usize, bytes: &[u8]) {
        let others = self.space.iter_mut().take(self.length).skip(start);
        others.zip(bytes).for_each(|(place, byte)| *place = *byte);
    }

    /// What is still free, for somebody to write to and then to `grow` by.
    pub fn room(&mut self) -> &mut [u8] {
        self.space.get_mut(self.length..).unwrap_or_default()
    }

    pub fn grow(&mut self, length: usize) {
        self.length = self.length.saturating_add(length).min(self.space.len());
    }

    pub fn into_bytes(self) -> &'a [u8] {
        self.space.get(..self.length).unwrap_or_default()
    }
}

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> Result {
        self.push(text.as_bytes())
    }
}

/// What stands before the first such separator, and what stands behind it.
pub fn split_once<'a>(text: &'a [u8], separator: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let place = text.windows(separator.len()).position(|window| window == separator)?;
    let (before, rest) = text.split_at(place);
    Some((before, rest.get(separator.len()..)?))
}

/// For a person: what is not UTF-8 becomes a mark.
pub struct Readable<'a>(pub &'a [u8]);

impl Display for Readable<'_> {
    fn fmt(&self, formatter: &mut Formatter) -> Result {
        let mut rest = self.0;
        while !rest.is_empty() {
            let (good, bad) = match from_utf8(rest) {
                Ok(_) => (rest.len(), 0),
                Err(error) => (error.valid_up_to(), error.error_len().unwrap_or(rest.len())),
            };
            let (text, behind) = rest.split_at(good);
            formatter.write_str(from_utf8(text).unwrap_or_default())?;
            if bad > 0 {
                formatter.write_char(char::REPLACEMENT_CHARACTER)?;
            }
            rest = behind.get(bad..).unwrap_or_default();
        }
        Ok(())
    }
}

/// As a string of JSON.
pub struct Quoted<T: Display>(pub T);

impl<T: Display> Display for Quoted<T> {
    fn fmt(&self, formatter: &mut Formatter) -> Result {
        formatter.write_char('"')?;
        write!(Escaping(formatter), "{}", self.0)?;
        formatter.write_char('"')
    }
}

struct Escaping<'a, 'b>(&'a mut Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> Result {
        text.chars().try_for_each(|character| match character {
            '"' | '\\' => write!(self.0, "\\{character}"),
            '\0'..='\x1f' => write!(self.0, "\\u{:04x}", u32::from(character)),
            _ => self.0.write_char(character),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::string::{String, ToString};

    use super::{split_once, Quoted, Readable, Text};

    #[test]
    fn whatever_json_reserves_is_escaped() {
        assert_eq!(Quoted("plain é").to_string(), "\"plain é\"");
        assert_eq!(Quoted("a\"b\\c\n\0").to_string(), r#""a\"b\\c\u000a\u0000""#);
    }

    #[test]
    fn what_is_no_text_is_marked() {
        for bytes in [&b"plain \xc3\xa9"[..], b"\xff", b"a\xffb\xc3", b"\xf0\x9f\x98", b"\xe2\x82x\xed\xa0\x80", b""] {
            assert_eq!(Readable(bytes).to_string(), String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn what_does_not_fit_is_not_there() {
        let mut space = [0; 4];
        let mut text = Text::new(&mut space);
        assert!(text.push(b"abc").is_ok());
        assert!(text.push(b"de").is_err());
        assert_eq!(text.bytes(), b"abc");
        assert!(text.push(b"d").is_ok());
        assert_eq!(text.into_bytes(), b"abcd");
    }

    #[test]
    fn the_first_separator_parts() {
        assert_eq!(split_once(b"a\r\nb\r\nc", b"\r\n"), Some((&b"a"[..], &b"b\r\nc"[..])));
        assert_eq!(split_once(b"a\nb\r", b"\r\n"), None);
    }
}
