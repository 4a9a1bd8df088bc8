//! Unique identifiers of objects.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
};

/// The uid of an object: distinguishes objects that have the same name at different times.
///
/// Sixteen bytes. A canonical UUID, as of every API server, is stored exactly. Any other text (some fakes use `uid-1`) is
/// stored as a digest of 124 bits, which can be compared but not printed as the original. [`text`](Self::text) is the uid
/// for requests to a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uid([u8; 16]);

/// Positions of the hyphens in a canonical UUID.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// The UUID version that marks a digest: no UUID has it.
const DIGEST: u8 = 0xf0;

impl Uid {
    /// The uid of an object that has none.
    pub const NONE: Uid = Uid([0; 16]);

    /// The uid as the server wrote it; `None` if there was none, or if only a digest is stored.
    pub fn text(&self) -> Option<String> {
        // A UUID of this invalid version would count as a digest.
        (*self != Self::NONE && self.0[6] & DIGEST != DIGEST).then(|| self.to_string())
    }

    pub(crate) fn bytes(&self) -> &[u8; 16] {
        &self.0
    }

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

    fn digest(text: &str) -> [u8; 16] {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            (salt, text).hash(&mut hasher);
            hasher.finish().to_be_bytes()
        };
        let mut digest = [0; 16];
        digest[..8].copy_from_slice(&half(1));
        digest[8..].copy_from_slice(&half(2));
        digest[6] |= DIGEST;
        digest
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        if text.is_empty() {
            return Self::NONE;
        }
        Self(Self::canonical(text.as_bytes()).unwrap_or_else(|| Self::digest(text)))
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
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
    fn a_uuid_is_kept_exactly() {
        let uuid = "0b5ce5e2-36ce-4a0a-bd2f-9be5cf7bd0a1";
        assert_eq!(Uid::from(uuid).to_string(), uuid);
        assert_eq!(Uid::from(uuid).text().as_deref(), Some(uuid));
        assert_eq!(size_of::<Uid>(), 16);
    }

    #[test]
    fn a_digest_never_goes_back_to_a_server() {
        let texts =
            ["", "uid-1", "0B5CE5E2-36CE-4A0A-BD2F-9BE5CF7BD0A1", "0b5ce5e2-36ce-fa0a-bd2f-9be5cf7bd0a1"];
        for text in texts {
            assert_eq!(Uid::from(text).text(), None, "{text}");
        }
        assert!((0..1000).all(|n| Uid::from(format!("uid-{n}").as_str()).text().is_none()));
    }

    #[test]
    fn other_texts_are_told_apart() {
        let uuid = "0b5ce5e2-36ce-4a0a-bd2f-9be5cf7bd0a1";
        let texts = [uuid, &uuid.to_uppercase(), "uid-1", "uid-2", "", &uuid[1..], &uuid.replace('-', "+")];
        for (i, a) in texts.iter().enumerate() {
            for (j, b) in texts.iter().enumerate() {
                assert_eq!(Uid::from(*a) == Uid::from(*b), i == j, "{a} {b}");
            }
        }
    }
}
