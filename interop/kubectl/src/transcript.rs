//! Commands and what they print.

use crate::{Error, pattern, server::Server};
use std::fmt;

/// One shell, from its first command to its last.
///
/// A line that begins with `$ ` is a command; what follows up to the next one is what it prints, to either stream,
/// with `exit N` at the end if it fails. Patterns: see [`pattern`].
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

    /// Runs the commands; the result says what they printed.
    pub(crate) fn play(&self, server: &Server) -> Result<Self, Error> {
        let play = |command: &Command| -> Result<Command, Error> {
            let (printed, code) = server.shell(&command.text)?;
            let mut output: Vec<String> = printed.lines().map(|line| line.trim_end().to_owned()).collect();
            if code != 0 {
                output.push(format!("exit {code}"));
            }
            Ok(Command { text: command.text.clone(), output })
        };
        Ok(Self { commands: self.commands.iter().map(play).collect::<Result<_, _>>()? })
    }

    /// The commands that printed something else than is written down here.
    pub(crate) fn differences(&self, played: &Self) -> Vec<String> {
        let differs = |(expected, got): (&Command, &Command)| {
            (!pattern::matches(&expected.output, &got.output)).then(|| {
                let (expected, got) = (expected.output.join("\n    "), got);
                format!("  $ {}\n  expected\n    {expected}\n  printed\n    {}", got.text, got.output.join("\n    "))
            })
        };
        self.commands.iter().zip(&played.commands).filter_map(differs).collect()
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
