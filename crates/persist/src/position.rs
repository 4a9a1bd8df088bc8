//! Positions in the stream of changes.

use crate::codec::{Decoder, put_bytes, put_i64, put_u32};
use std::time::{Duration, SystemTime};

/// A position in the stream of changes: the state after all changes up to a resource version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The resource version that the stream had reached.
    pub version: String,
    /// When it had, by the clock of the process that wrote it. It may be in the future of this clock.
    pub saved_at: SystemTime,
}

impl Position {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (seconds, nanos) = since_epoch(self.saved_at);
        put_i64(out, seconds);
        put_u32(out, nanos);
        put_bytes(out, self.version.as_bytes());
    }

    pub(crate) fn decode(from: &mut Decoder<'_>) -> Option<Self> {
        let (seconds, nanos) = (from.i64()?, from.u32()?);
        let version = std::str::from_utf8(from.bytes()?).ok()?.to_owned();
        Some(Self { version, saved_at: from_epoch(seconds, nanos)? })
    }
}

/// Seconds since 1970, rounded down, and the nanoseconds after them.
fn since_epoch(time: SystemTime) -> (i64, u32) {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => (i64::try_from(after.as_secs()).unwrap_or(i64::MAX), after.subsec_nanos()),
        Err(error) => {
            let before = error.duration();
            let seconds = 0_i64.saturating_sub_unsigned(before.as_secs());
            match before.subsec_nanos() {
                0 => (seconds, 0),
                nanos => (seconds.saturating_sub(1), 1_000_000_000 - nanos),
            }
        }
    }
}

fn from_epoch(seconds: i64, nanos: u32) -> Option<SystemTime> {
    if nanos >= 1_000_000_000 {
        return None;
    }
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let time = match seconds {
        0.. => SystemTime::UNIX_EPOCH.checked_add(whole),
        _ => SystemTime::UNIX_EPOCH.checked_sub(whole),
    };
    time?.checked_add(Duration::from_nanos(nanos.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_the_same_after_it_was_written_and_read() {
        for (seconds, nanos) in [(0, 0), (0, 1), (1_800_000_000, 999_999_999), (-1, 1), (-1, 0), (-86_400, 5)]
        {
            let saved_at = from_epoch(seconds, nanos).expect("a time");
            let position = Position { version: "123".into(), saved_at };
            let mut bytes = Vec::new();
            position.encode(&mut bytes);
            assert_eq!(Position::decode(&mut Decoder::new(&bytes)), Some(position));
        }
    }

    #[test]
    fn a_time_that_the_clock_cannot_represent_is_malformed() {
        for (seconds, nanos) in [(i64::MAX, 999_999_999), (i64::MIN, 0), (0, 1_000_000_000)] {
            if let Some(time) = from_epoch(seconds, nanos) {
                // The clock of this platform can represent it: then it must be the same afterwards.
                assert_eq!(since_epoch(time), (seconds, nanos));
            }
        }
        assert_eq!(from_epoch(0, 1_000_000_000), None);
    }
}
