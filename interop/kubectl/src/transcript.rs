//! Transcripts: commands and their output.

use crate::{Error, pattern, server::Server};
use std::fmt;

/// A shell session.
///
/// A line that starts with `$ ` is a command. The lines up to the next command are its output, of both streams, followed
/// by `exit N` if it fails. The output may contain patterns: see [`pattern`].
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    commands: Vec<Command>,
}

#[derive(Debug)]
struct Command {
    text: String,
    output: Vec<String>,
}

impl Transcript {
    pub(crate) fn parse(text: &str) -> Self {
        let mut transcript = Self::default();
        for line in text.lines() {
            match (line.strip_prefix("$ "), transcript.commands.last_mut()) {
                (Some(command), _) => {
                    transcript.commands.push(Command { text: command.to_owned(), output: Vec::new() });
                }
                (None, Some(command)) => command.output.push(line.to_owned()),
                (None, None) => {}
            }
        }
        transcript
    }

    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Runs the commands and returns a transcript with the actual output.
    pub(crate) fn replay(&self, server: &Server) -> Result<Self, Error> {
        let replay = |command: &Command| -> Result<Command, Error> {
            let (printed, code) = server.shell(&command.text)?;
            let mut output: Vec<String> = printed.lines().map(|line| line.trim_end().to_owned()).collect();
            if code != 0 {
                output.push(format!("exit {code}"));
            }
            Ok(Command { text: command.text.clone(), output })
        };
        Ok(Self { commands: self.commands.iter().map(replay).collect::<Result<_, _>>()? })
    }

    /// Describes the commands whose actual output does not match this transcript.
    pub(crate) fn differences(&self, actual: &Self) -> Vec<String> {
        let difference = |(expected, actual): (&Command, &Command)| {
            (!pattern::matches(&expected.output, &actual.output)).then(|| {
                let (command, output) = (&actual.text, actual.output.join("\n    "));
                let expected = expected.output.join("\n    ");
                format!("  $ {command}\n  expected\n    {expected}\n  actual\n    {output}")
            })
        };
        self.commands.iter().zip(&actual.commands).filter_map(difference).collect()
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for command in &self.commands {
            writeln!(f, "$ {}", command.text)?;
            command.output.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        }
        Ok(())
    }
}
