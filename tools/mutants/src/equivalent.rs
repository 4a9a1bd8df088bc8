//! The list of mutants that behave like the code.

use crate::mutant::Mutant;
use anyhow::{Context, Result, ensure};
use std::{collections::BTreeSet, fs, path::Path};

/// Descriptions of the mutants in the list.
pub struct Equivalent(BTreeSet<String>);

impl Equivalent {
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{} is malformed", path.display()))
    }

    /// Parses lines with descriptions of mutants, each group followed by an indented reason. `#` begins a comment.
    fn parse(text: &str) -> Result<Self> {
        let mut mutants = BTreeSet::new();
        let mut without_reason = None;
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
            if line.starts_with(' ') {
                without_reason = None;
                continue;
            }
            let is_description = line.split(" | ").count() >= 3;
            ensure!(is_description, "not `file | function | change: code`, nor an indented reason: {line}");
            ensure!(mutants.insert(line.trim_end().to_owned()), "listed twice: {line}");
            without_reason = Some(line);
        }
        ensure!(without_reason.is_none(), "no reason for {}", without_reason.unwrap_or_default());
        Ok(Self(mutants))
    }

    pub fn contains(&self, mutant: &Mutant) -> bool {
        self.0.contains(&mutant.description())
    }

    /// Entries of these crates that are no mutant.
    pub fn unknown<'a>(&'a self, mutants: &[&Mutant], directories: &[String]) -> Vec<&'a str> {
        let known: BTreeSet<String> = mutants.iter().map(|mutant| mutant.description()).collect();
        let is_selected =
            |entry: &&str| directories.iter().any(|directory| entry.starts_with(&format!("{directory}/")));
        self.0
            .iter()
            .map(String::as_str)
            .filter(|entry| !known.contains(*entry))
            .filter(is_selected)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str =
        "# comment\na/src/b.rs | f | delete !: !x\na/src/b.rs | f | delete !: !y\n    Both do the same.\n";

    fn mutant(code: &str) -> Mutant {
        let (file, function, change) = ("a/src/b.rs".to_owned(), "f".to_owned(), "delete !".to_owned());
        Mutant { id: 1, file, line: 3, function, change, code: code.to_owned(), repetition: 0 }
    }

    #[test]
    fn mutants_are_found_by_their_texts() {
        let list = Equivalent::parse(LIST).unwrap();
        assert!(list.contains(&mutant("!x")) && !list.contains(&mutant("!z")));
        assert_eq!(list.unknown(&[&mutant("!x")], &["a".to_owned()]), ["a/src/b.rs | f | delete !: !y"]);
        assert!(list.unknown(&[], &["b".to_owned()]).is_empty());
    }

    #[test]
    fn an_entry_needs_a_reason() {
        assert!(Equivalent::parse("a/src/b.rs | f | delete !: !x\n").is_err());
        assert!(Equivalent::parse("a/src/b.rs f\n  reason").is_err());
    }
}
