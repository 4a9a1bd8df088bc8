//! Times on the wire, and as text in JSON.

use super::ProtobufError;
use super::fields::Fields;

/// A point in time: seconds since 1970 and nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    seconds: i64,
    nanos: i32,
}

/// Text of a fixed length, such as `2026-01-02T03:04:05Z`.
pub(super) struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Reads a time; `None` for the zero time, which has no fields.
pub(super) fn read(bytes: &[u8]) -> Result<Option<Time>, ProtobufError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut time = Time { seconds: 0, nanos: 0 };
    for field in Fields(bytes) {
        match field? {
            (1, wire) => time.seconds = wire.integer()?,
            (2, wire) => time.nanos = wire.integer()? as i32,
            _ => {}
        }
    }
    Ok(Some(time))
}

/// The first second of the year 0, and the first of the year 10000: JSON has years of four digits.
const YEARS: std::ops::Range<i64> = -62_167_219_200..253_402_300_800;

const SECONDS_PER_DAY: i64 = 86_400;

impl Time {
    /// The text of a `Time`, which has whole seconds.
    pub(super) fn seconds_text(self) -> Result<Text<20>, ProtobufError> {
        let mut text = *b"0000-00-00T00:00:00Z";
        self.write(&mut text)?;
        Ok(Text(text))
    }

    /// The text of a `MicroTime`.
    pub(super) fn micros_text(self) -> Result<Text<27>, ProtobufError> {
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        self.write(&mut text)?;
        let micros = u32::try_from(self.nanos / 1000).ok().filter(|micros| *micros < 1_000_000);
        digits(&mut text[20..26], micros.ok_or(ProtobufError::Malformed)?);
        Ok(Text(text))
    }

    /// Writes date and time of day into the first 19 bytes.
    fn write(self, text: &mut [u8]) -> Result<(), ProtobufError> {
        if !YEARS.contains(&self.seconds) {
            return Err(ProtobufError::Malformed);
        }
        let (year, month, day) = date(self.seconds.div_euclid(SECONDS_PER_DAY));
        let second = self.seconds.rem_euclid(SECONDS_PER_DAY) as u32;
        digits(&mut text[..4], year);
        digits(&mut text[5..7], month);
        digits(&mut text[8..10], day);
        digits(&mut text[11..13], second / 3600);
        digits(&mut text[14..16], second / 60 % 60);
        digits(&mut text[17..19], second % 60);
        Ok(())
    }
}

fn digits(text: &mut [u8], mut number: u32) {
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Year, month and day of a day counted from 1970-01-01, for years from 0 on.
///
/// Counts from 1 March of the year 0, so that a leap day is the last day of its year; 400 years have 146,097 days.
fn date(day: i64) -> (u32, u32, u32) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let day = day.rem_euclid(146_097) as u32;
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    ((i64::from(year) + era * 400 + next_year) as u32, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_that_of_a_calendar() {
        let mut random = fastrand::Rng::with_seed(1);
        let ends = [YEARS.start, 253_402_207_200, 0, -1, 951_782_400, 951_868_799];
        let some: Vec<i64> = (0..100_000).map(|_| random.i64(YEARS.start..253_402_207_200)).collect();
        for seconds in some.into_iter().chain(ends) {
            let nanos = random.i32(0..1_000_000_000);
            let text = Time { seconds, nanos }.seconds_text().unwrap();
            let expected =
                jiff::Timestamp::new(seconds, 0).unwrap().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            assert_eq!(text.as_str(), expected);
            let text = Time { seconds, nanos }.micros_text().unwrap();
            assert_eq!(text.as_str(), format!("{}.{:06}Z", &expected[..19], nanos / 1000));
        }
        for seconds in [YEARS.start - 1, YEARS.end, i64::MAX, i64::MIN] {
            assert!(Time { seconds, nanos: 0 }.seconds_text().is_err());
        }
        assert!(Time { seconds: 0, nanos: -1000 }.micros_text().is_err());
    }
}
