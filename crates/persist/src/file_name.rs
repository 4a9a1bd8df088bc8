//! Names of files.
//!
//! ```text
//! NAME.log                the current log; its header has the generation
//! NAME.GENERATION.bodies  the bodies of a generation
//! NAME.log.new            a log that is being written; a rename makes it the current one
//! ```

use ring::digest;
use std::fmt::Write;

const LOG: &str = ".log";
const NEW_LOG: &str = ".log.new";
const BODIES: &str = ".bodies";
/// The longest encoded name. File systems allow 255 bytes, with the suffix.
const LONGEST: usize = 200;

/// The part of file names that stands for a log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Stem(String);

impl Stem {
    /// Encodes the name of a log: bytes that may not be in a file name become `%XX`; a long name ends with a hash.
    pub(crate) fn new(name: &str) -> Self {
        let mut stem = String::with_capacity(name.len());
        for (at, byte) in name.bytes().enumerate() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => stem.push(char::from(byte)),
                b'.' if at > 0 => stem.push('.'),
                _ => write!(stem, "%{byte:02X}").expect("a string can be written to"),
            }
        }
        if stem.len() > LONGEST {
            stem.truncate(LONGEST - 33);
            stem.push('~');
            for byte in &digest::digest(&digest::SHA256, name.as_bytes()).as_ref()[..16] {
                write!(stem, "{byte:02x}").expect("a string can be written to");
            }
        }
        Self(stem)
    }

    pub(crate) fn log(&self) -> String {
        format!("{}{LOG}", self.0)
    }

    pub(crate) fn new_log(&self) -> String {
        format!("{}{NEW_LOG}", self.0)
    }

    pub(crate) fn bodies(&self, generation: u64) -> String {
        format!("{}.{generation}{BODIES}", self.0)
    }
}

/// A file of a cache directory, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileName {
    Log(Stem),
    NewLog(Stem),
    Bodies(Stem, u64),
}

impl FileName {
    /// Parses a name. `None` for a file of another kind.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        if let Some(stem) = name.strip_suffix(NEW_LOG) {
            return Some(Self::NewLog(Stem(stem.to_owned())));
        }
        if let Some(stem) = name.strip_suffix(LOG) {
            return Some(Self::Log(Stem(stem.to_owned())));
        }
        let (stem, generation) = name.strip_suffix(BODIES)?.rsplit_once('.')?;
        Some(Self::Bodies(Stem(stem.to_owned()), generation.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_file_names_and_distinct() {
        let names = [
            "pods",
            "apps/v1/deployments",
            "a.b",
            ".a",
            "..",
            "",
            "a%2Fb",
            "a/b",
            "Ä",
            "pods.log",
            "pods.log.new",
        ];
        let stems: std::collections::HashSet<String> =
            names.iter().map(|name| Stem::new(name).log()).collect();
        assert_eq!(stems.len(), names.len());
        for stem in stems {
            assert!(stem.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'), "{stem}");
        }
    }

    #[test]
    fn long_names_stay_distinct() {
        let (one, other) = ("x".repeat(300) + "1", "x".repeat(300) + "2");
        assert_ne!(Stem::new(&one), Stem::new(&other));
        assert!(Stem::new(&one).bodies(u64::MAX).len() <= 255);
    }

    #[test]
    fn names_are_parsed_as_what_they_were_made_for() {
        for name in ["pods", "a.b", "pods.log", "pods.log.new", "pods.1.bodies", ".."] {
            let stem = Stem::new(name);
            assert_eq!(FileName::parse(&stem.log()), Some(FileName::Log(stem.clone())));
            assert_eq!(FileName::parse(&stem.new_log()), Some(FileName::NewLog(stem.clone())));
            assert_eq!(FileName::parse(&stem.bodies(7)), Some(FileName::Bodies(stem.clone(), 7)));
        }
        assert_eq!(FileName::parse("lock"), None);
        assert_eq!(FileName::parse("a.x.bodies"), None);
    }
}
