//! Unique identifiers of objects.

use std::{fmt, sync::Arc};

/// The uid of an object: tells apart two objects that had the same name at different times.
///
/// A canonical UUID, which is what every API server hands out, is kept as its 16 bytes. Any other text is kept
/// as it is, so that `Display` always gives back what the server sent.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Repr);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Repr {
    Uuid([u8; 16]),
    Other(Arc<str>),
}

/// Where the four hyphens of a canonical UUID stand.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

impl Uid {
    fn canonical(text: &[u8]) -> Option<[u8; 16]> {
        if text.len() != 36 {
            return None;
        }
        let (mut uuid, mut nibbles) = ([0u8; 16], 0);
        for (i, &byte) in text.iter().enumerate() {
            if HYPHENS.contains(&i) {
                if byte != b'-' {
                    return None;
                }
                continue;
            }
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => return None,
            };
            uuid[nibbles / 2] = uuid[nibbles / 2] << 4 | digit;
            nibbles += 1;
        }
        Some(uuid)
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        match Self::canonical(text.as_bytes()) {
            Some(uuid) => Self(Repr::Uuid(uuid)),
            None => Self(Repr::Other(text.into())),
        }
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Other(text) => f.write_str(text),
            Repr::Uuid(uuid) => {
                for (i, byte) in uuid.iter().enumerate() {
                    if matches!(i, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_unchanged() {
        let uuid = "0b5ce5e2-36ce-4a0a-bd2f-9be5cf7bd0a1";
        assert!(matches!(Uid::from(uuid).0, Repr::Uuid(_)));
        let others = [&uuid.to_uppercase(), "uid-1", "", &uuid[1..], "0b5ce5e2-36ce-4a0a-bd2f+9be5cf7bd0a1"];
        for text in others {
            assert!(matches!(Uid::from(text).0, Repr::Other(_)), "{text}");
            assert_eq!(Uid::from(text).to_string(), text);
        }
        assert_eq!(Uid::from(uuid).to_string(), uuid);
    }
}
