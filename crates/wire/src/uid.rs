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

/// Positions of the first digit of each byte in a canonical UUID.
const DIGITS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/// All bits: no digit, and no combination of digits, has them.
const NOT_A_DIGIT: u8 = 0xff;

/// The value of each character as a hexadecimal digit in lower case. Every event has a uid, and a table needs no branches.
const VALUES: [u8; 256] = {
    let mut values = [NOT_A_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        values[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digit += 1;
    }
    values
};

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

    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    fn canonical(text: &[u8]) -> Option<[u8; 16]> {
        let text: &[u8; 36] = text.try_into().ok()?;
        if HYPHENS.iter().any(|&at| text[at] != b'-') {
            return None;
        }
        let (mut uuid, mut seen) = ([0; 16], 0);
        for (byte, at) in uuid.iter_mut().zip(DIGITS) {
            let [high, low] = [text[at], text[at + 1]].map(|digit| VALUES[usize::from(digit)]);
            seen |= high | low;
            *byte = high << 4 | low;
        }
        (seen != NOT_A_DIGIT).then_some(uuid)
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
    fn each_digit_counts_at_each_position() {
        let uuid = "0123abcd-4567-89ab-cdef-00112233aabb";
        assert_eq!(Uid::from(uuid).to_string(), uuid);
        for at in (0..uuid.len()).filter(|at| !HYPHENS.contains(at)) {
            for other in ["g", "/", ":", "`", "A", "F", "-"] {
                let mut text = uuid.to_owned();
                text.replace_range(at..=at, other);
                assert_eq!(Uid::from(text.as_str()).text(), None, "{text}");
            }
        }
        for at in HYPHENS {
            let mut text = uuid.to_owned();
            text.replace_range(at..=at, "0");
            assert_eq!(Uid::from(text.as_str()).text(), None, "{text}");
        }
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
