//! `Retry-After` in responses: usual ones, and those that no clock or parser can represent.

/// The `Retry-After` of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryAfter {
    None,
    Seconds(u32),
    /// This text in the header.
    Header(&'static str),
    /// A header of many digits.
    LongHeader,
    /// This text in the body, as `details.retryAfterSeconds`.
    Body(&'static str),
}

/// Headers that are no number of seconds, or a number without a meaning.
const HEADERS: [&str; 10] = [
    "18446744073709551615",
    "99999999999999999999999999999999",
    " 7 ",
    "-1",
    "+3",
    "1.5",
    "1e3",
    "0x10",
    "",
    "Wed, 21 Oct 2065 07:28:00 GMT",
];

const BODIES: [&str; 7] = ["1e400", "-1", "1.5", "18446744073709551616", "\"7\"", "null", "[[[7]]]"];

impl RetryAfter {
    /// Mostly seconds, sometimes a day or a text that makes no sense.
    pub(crate) fn random(rng: &mut fastrand::Rng) -> Self {
        match rng.u8(0..12) {
            0 => Self::Seconds(86_400),
            1 => Self::Seconds(u32::MAX),
            2 | 3 => Self::Header(rng.choice(HEADERS).unwrap_or_default()),
            4 => Self::LongHeader,
            5 => Self::Body(rng.choice(BODIES).unwrap_or_default()),
            _ => Self::Seconds(rng.u32(1..20)),
        }
    }

    /// The seconds that a client must wait, if the server names a number of them.
    pub(crate) fn seconds(self) -> Option<u64> {
        match self {
            Self::None | Self::Body(_) => None,
            Self::Seconds(seconds) => Some(seconds.into()),
            Self::LongHeader => Some(u64::MAX),
            Self::Header(text) => {
                let digits = text.trim();
                let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                number.then(|| digits.parse().unwrap_or(u64::MAX))
            }
        }
    }

    pub(crate) fn header(self) -> Option<String> {
        match self {
            Self::None | Self::Body(_) => None,
            Self::Seconds(seconds) => Some(seconds.to_string()),
            Self::Header(text) => Some(text.to_owned()),
            Self::LongHeader => Some("9".repeat(10_000)),
        }
    }

    /// The text of `details.retryAfterSeconds` in the body.
    pub(crate) fn body(self) -> Option<&'static str> {
        match self {
            Self::Body(text) => Some(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_are_a_number_of_seconds() {
        let seconds = HEADERS.map(|text| RetryAfter::Header(text).seconds());
        assert_eq!(seconds[..3], [Some(u64::MAX), Some(u64::MAX), Some(7)]);
        assert!(seconds[3..].iter().all(Option::is_none), "{seconds:?}");
        assert_eq!(RetryAfter::LongHeader.seconds(), Some(u64::MAX));
    }
}
