//! Timestamps and durations, as Go reads and prints them.

use jiff::tz::TimeZone;
use jiff::{Timestamp as Instant, civil};

/// The first and last second that a timestamp may have: years 1 to 9999.
const MIN_SECOND: i64 = -62_135_596_800;
const MAX_SECOND: i64 = 253_402_300_799;
const NANOS: i64 = 1_000_000_000;

/// A point in time, with the offset of the zone it is printed in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timestamp {
    second: i64,
    nanos: u32,
    offset: i32,
}

impl Timestamp {
    /// Returns the timestamp of a Unix time, unless it is out of range.
    pub(crate) fn from_unix(second: i64) -> Option<Self> {
        (MIN_SECOND..=MAX_SECOND).contains(&second).then_some(Self { second, nanos: 0, offset: 0 })
    }

    /// Parses RFC 3339. `Some(None)` is a valid time out of range.
    pub(crate) fn parse(text: &str) -> Option<Option<Self>> {
        let (date, rest) = text.split_at_checked(10)?;
        let rest = rest.strip_prefix('T')?;
        let date = parse_date(date)?;
        let (clock, rest) = rest.split_at_checked(8)?;
        let [hour, minute, second] = fields(clock, ':', [2, 2, 2])?;
        let (fraction, zone) = match rest.strip_prefix(['.', ',']) {
            Some(rest) => {
                let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
                (Some(rest.get(..digits).filter(|digits| !digits.is_empty())?), &rest[digits..])
            }
            None => (None, rest),
        };
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let nanos = fraction.map_or(0, |digits| {
            let digits = &digits[..digits.len().min(9)];
            digits.parse::<u32>().unwrap_or(0) * 10u32.pow(9 - u32::try_from(digits.len()).unwrap_or(9))
        });
        let offset = parse_zone(zone)?;
        let days = i64::from(date.since(civil::date(1970, 1, 1)).ok()?.get_days());
        let second = days * 86_400 + i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
        let second = second - i64::from(offset);
        Some((MIN_SECOND..=MAX_SECOND).contains(&second).then_some(Self { second, nanos, offset }))
    }

    /// Parses a date; the time is midnight in UTC.
    pub(crate) fn parse_date(text: &str) -> Option<Self> {
        let days = i64::from(parse_date(text)?.since(civil::date(1970, 1, 1)).ok()?.get_days());
        Some(Self { second: days * 86_400, nanos: 0, offset: 0 })
    }

    /// Parses the forms of `date-time` that Kubernetes accepts: the separator and the zone may be in lower case.
    pub(crate) fn parse_date_time(text: &str) -> Option<Self> {
        Self::parse(&text.to_ascii_uppercase()).flatten()
    }

    pub(crate) fn instant(&self) -> (i64, u32) {
        (self.second, self.nanos)
    }

    pub(crate) fn same_instant(&self, other: &Self) -> bool {
        self.instant() == other.instant()
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.instant() == (MIN_SECOND, 0)
    }

    pub(crate) fn unix(&self) -> i64 {
        self.second
    }

    /// Adds nanoseconds, unless the sum is out of range.
    pub(crate) fn add(&self, duration: i64) -> Option<Self> {
        let nanos = i64::from(self.nanos) + duration % NANOS;
        let second = self.second + duration / NANOS + nanos.div_euclid(NANOS);
        let nanos = u32::try_from(nanos.rem_euclid(NANOS)).ok()?;
        (MIN_SECOND..=MAX_SECOND).contains(&second).then_some(Self { second, nanos, offset: self.offset })
    }

    /// Returns the nanoseconds since another timestamp, unless they are too many.
    pub(crate) fn since(&self, other: &Self) -> Option<i64> {
        let seconds = (self.second - other.second).checked_mul(NANOS)?;
        seconds.checked_add(i64::from(self.nanos) - i64::from(other.nanos))
    }

    /// Returns the date and time in a zone: UTC, an offset such as `-02:30`, or a name such as `Europe/Berlin`.
    pub(crate) fn civil(&self, zone: Option<&str>) -> Result<civil::DateTime, String> {
        let Some(name) = zone else { return Ok(self.at_offset(0)) };
        let Some((hours, minutes)) = name.split_once(':') else {
            if matches!(name, "" | "UTC") {
                return Ok(self.at_offset(0));
            }
            let zone = TimeZone::get(name).map_err(|_| format!("unknown time zone {name}"))?;
            let instant = Instant::from_second(self.second).unwrap_or(Instant::MAX);
            return Ok(self.at_offset(zone.to_offset(instant).seconds()));
        };
        let part = |text: &str| -> Result<i32, String> {
            text.parse().map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", super::quote(text)))
        };
        let (hours, minutes) = (part(hours)?, part(minutes)?);
        let sign = if name.starts_with('-') { -1 } else { 1 };
        let seconds =
            hours.saturating_mul(3600).saturating_add(minutes.saturating_mul(60).saturating_mul(sign));
        Ok(self.at_offset(seconds))
    }

    /// Returns the date and time at an offset in seconds; out of range, those of the epoch.
    fn at_offset(&self, offset: i32) -> civil::DateTime {
        let local = self.second.saturating_add(i64::from(offset));
        let days = jiff::Span::new().try_days(local.div_euclid(86_400));
        let date = days
            .and_then(|days| civil::date(1970, 1, 1).checked_add(days))
            .unwrap_or(civil::date(1970, 1, 1));
        let seconds = local.rem_euclid(86_400);
        let part = |n: i64| i8::try_from(n).unwrap_or(0);
        let nanos = i32::try_from(self.nanos).unwrap_or(0);
        date.at(part(seconds / 3600), part(seconds / 60 % 60), part(seconds % 60), nanos)
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let local = self.at_offset(self.offset);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            local.year(),
            local.month(),
            local.day(),
            local.hour(),
            local.minute(),
            local.second()
        )?;
        if self.nanos > 0 {
            let digits = format!("{:09}", self.nanos);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let minutes = self.offset.abs() / 60;
        let sign = if self.offset < 0 { '-' } else { '+' };
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

impl Timestamp {
    /// The same point in time, printed in UTC.
    pub(crate) fn in_utc(self) -> Self {
        Self { offset: 0, ..self }
    }
}

fn parse_date(text: &str) -> Option<civil::Date> {
    let [year, month, day] = fields(text, '-', [4, 2, 2])?;
    civil::Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Splits numbers of fixed widths.
fn fields(text: &str, separator: char, widths: [usize; 3]) -> Option<[u32; 3]> {
    let mut parts = text.split(separator);
    let mut out = [0; 3];
    for (value, width) in out.iter_mut().zip(widths) {
        let part = parts.next()?;
        if part.len() != width || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *value = part.parse().ok()?;
    }
    parts.next().is_none().then_some(out)
}

/// Returns the seconds east of UTC.
fn parse_zone(text: &str) -> Option<i32> {
    if text == "Z" {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text[1..].split_once(':')?;
    let two = |part: &str| {
        (part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit())).then(|| part.parse::<i32>().ok())?
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (hours <= 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Parses a duration such as `1h30m` or `-1.5s` into nanoseconds.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let whole = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, after) = rest.split_at(whole);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(after.bytes().take_while(u8::is_ascii_digit).count()),
            None => ("", after),
        };
        if digits.is_empty() && fraction.is_empty() {
            return None;
        }
        let unit_length = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_length);
        let unit: u64 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let whole: u64 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        let mut value = whole.checked_mul(unit)?;
        if !fraction.is_empty() {
            value = value.checked_add(fraction_of(fraction, unit))?;
        }
        total = total.checked_add(value).filter(|total| *total <= 1 << 63)?;
        rest = after;
    }
    if negative {
        return i64::try_from(-i128::from(total)).ok();
    }
    i64::try_from(total).ok()
}

fn fraction_of(digits: &str, unit: u64) -> u64 {
    // More digits than these are below the precision of a double.
    let digits = &digits[..digits.len().min(18)];
    let value: f64 = digits.parse().unwrap_or(0.0);
    let scale = 10f64.powi(i32::try_from(digits.len()).unwrap_or(18));
    (value * (unit as f64 / scale)) as u64
}

/// Prints nanoseconds as seconds with a fraction.
pub(crate) fn format_seconds(nanos: i64) -> String {
    let seconds = (nanos / NANOS) as f64 + (nanos % NANOS) as f64 / 1e9;
    format!("{seconds}s")
}
