//! The text of an expression and the errors in it, printed with an excerpt.

use std::fmt::Write as _;

/// Errors after these are only counted.
const MAX_ERRORS: usize = 100;
/// A longer line is not printed below its error.
const MAX_EXCERPT: usize = 16_384;

/// A place in the text, in code points from its start. `None` is nowhere in particular.
pub(crate) type Offset = Option<u32>;

/// The errors of one expression.
#[derive(Debug, Default)]
pub(crate) struct Issues {
    errors: Vec<(Offset, String)>,
    count: usize,
}

impl Issues {
    pub(crate) fn report(&mut self, at: Offset, message: String) {
        self.count += 1;
        if self.errors.len() < MAX_ERRORS {
            self.errors.push((at, message));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Prints the errors in the order of their places, with the line that contains each.
    pub(crate) fn render(mut self, text: &str) -> String {
        let lines: Vec<&str> = text.split('\n').collect();
        let starts: Vec<u32> = lines
            .iter()
            .scan(0u32, |at, line| {
                let start = *at;
                *at += u32::try_from(line.chars().count()).unwrap_or(u32::MAX - 1) + 1;
                Some(start)
            })
            .collect();
        let place = |at: Offset| -> (i64, i64) {
            let Some(at) = at else { return (-1, -1) };
            let line = starts.partition_point(|start| *start <= at).max(1);
            (line as i64, i64::from(at - starts[line - 1]))
        };
        self.errors.sort_by_key(|(at, _)| place(*at));
        let mut out = String::new();
        for (i, (at, message)) in self.errors.iter().enumerate() {
            if i > 0 {
                out.push('\n');
            }
            let (line, column) = place(*at);
            let _ = write!(out, "ERROR: <input>:{line}:{}: {message}", column + 1);
            let excerpt = usize::try_from(line - 1).ok().and_then(|line| lines.get(line));
            if let Some(excerpt) = excerpt.filter(|excerpt| excerpt.len() <= MAX_EXCERPT) {
                push_excerpt(&mut out, excerpt, usize::try_from(column).unwrap_or(0));
            }
        }
        if self.count > self.errors.len() {
            let _ = write!(out, "\n{} more errors were truncated", self.count - self.errors.len());
        }
        out
    }
}

fn push_excerpt(out: &mut String, line: &str, column: usize) {
    let line = line.replace('\t', " ");
    let _ = write!(out, "\n | {line}\n | ");
    let mut chars = line.chars();
    for c in chars.by_ref().take(column) {
        out.push(if c.len_utf8() > 1 { '\u{ff0e}' } else { '.' });
    }
    out.push(if chars.next().is_some_and(|c| c.len_utf8() > 1) { '\u{ff3e}' } else { '^' });
}
