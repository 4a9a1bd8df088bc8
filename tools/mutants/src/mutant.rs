//! One change of the code, and its place in a file.

use std::fmt;

/// One change of the code. It is compiled in, and does nothing unless it is switched on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// Number that switches the mutant on. It changes if code before it in its file, or the set of files, changes.
    pub id: u32,
    /// Path of the file in the repository.
    pub file: String,
    pub line: usize,
    /// Function with its type, such as `Queue::add` or `<Queue as Drop>::drop`.
    pub function: String,
    /// The change, such as `replace < with <=`.
    pub change: String,
    /// The code that is changed, in one line.
    pub code: String,
    /// 0 for the first mutant of a file with these texts, 1 for the second and so on.
    pub repetition: usize,
}

impl Mutant {
    /// Describes the mutant by texts that survive changes elsewhere in the file.
    pub fn description(&self) -> String {
        format!("{} | {} | {}: {}", self.file, self.function, self.change, self.code)
    }

    /// Like [`Self::description`], and unique.
    pub fn key(&self) -> String {
        match self.repetition {
            0 => self.description(),
            repetition => format!("{} #{}", self.description(), repetition + 1),
        }
    }

    /// Top-level module with `::`, as in names of tests.
    pub fn module(&self) -> String {
        let path = self.file.split_once("/src/").map_or("", |(_, path)| path);
        let module = path.split('/').next().unwrap_or_default();
        format!("{}::", module.trim_end_matches(".rs"))
    }

    /// Directory of the crate.
    pub fn package(&self) -> &str {
        self.file.split_once("/src/").map_or("", |(package, _)| package)
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, file, line, function, change, code, .. } = self;
        write!(f, "{file}:{line}: {change}: {code}   [in {function}, id {id}]")
    }
}
