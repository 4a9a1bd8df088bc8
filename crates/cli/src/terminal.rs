//! Text for a terminal.
//!
//! Names, fields and messages come from a server, which may be hostile: a control character could move the cursor, forge a
//! line or run a command of the terminal, and a bidirectional override could reorder what is shown. Everything that this
//! program prints goes through this module.

use serde_json::Value;
use std::borrow::Cow;
use std::io::{self, Write};

/// Returns the text on one line, with the characters that a terminal would interpret as escape sequences such as `\n` or
/// `\u{1b}`.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |unsafe_char, out| out.extend(unsafe_char.escape_default()))
}

/// Returns JSON with those characters as JSON escape sequences, so that it still has the same meaning. The text must be JSON
/// on one line.
pub(crate) fn printable_json(json: &str) -> Cow<'_, str> {
    escaped(json, |unsafe_char, out| {
        for unit in unsafe_char.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    })
}

/// Returns a value whose strings and field names are printable, apart from line breaks and tabs. For formats that have no
/// escape sequences of their own everywhere.
pub(crate) fn printable_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(printable_lines(&text)),
        Value::Array(items) => items.into_iter().map(printable_value).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (printable(&name).into_owned(), printable_value(value)))
            .collect(),
        other => other,
    }
}

/// Returns printable text that keeps its line breaks and tabs.
pub(crate) fn printable_lines(text: &str) -> String {
    let keeps = |c: char| matches!(c, '\n' | '\t');
    text.split_inclusive(keeps)
        .map(|part| match part.strip_suffix(keeps) {
            Some(line) => format!("{}{}", printable(line), &part[line.len()..]),
            None => printable(part).into_owned(),
        })
        .collect()
}

/// Prints a line on standard error.
pub(crate) fn note(line: &str) {
    eprintln!("{}", printable(line));
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let Some(first) = text.find(is_unsafe) else { return Cow::Borrowed(text) };
    let mut out = text[..first].to_owned();
    for c in text[first..].chars() {
        if is_unsafe(c) { escape(c, &mut out) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// Whether a terminal may do something else with a character than to show it: C0 and C1 controls, line and paragraph
/// separators, marks and overrides of the text direction, invisible tags.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Standard error for the log: each write is one event on one line.
#[derive(Debug)]
pub(crate) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        writeln!(io::stderr(), "{}", printable(line))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HOSTILE: &str = "a\x1b[2J\r\nb\u{9b}31m\u{7f}\u{202e}\u{2066}\u{2028}\u{feff}\u{e0041}ä→";

    #[test]
    fn characters_that_a_terminal_interprets_are_escaped() {
        assert_eq!(
            printable(HOSTILE),
            r"a\u{1b}[2J\r\nb\u{9b}31m\u{7f}\u{202e}\u{2066}\u{2028}\u{feff}\u{e0041}ä→"
        );
        assert!(matches!(printable("plain ä→\\"), Cow::Borrowed("plain ä→\\")));
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = json!({HOSTILE: HOSTILE});
        let text = printable_json(&value.to_string()).into_owned();
        assert!(!text.contains(is_unsafe), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn values_keep_only_line_breaks_and_tabs() {
        let value = printable_value(json!({"a\n": ["x\ny\t\x1b"]}));
        assert_eq!(value, json!({"a\\n": ["x\ny\t\\u{1b}"]}));
        assert_eq!(printable_lines("a\r\nb\u{202e}"), "a\\r\nb\\u{202e}");
    }
}
