//! Durations as kubectl prints them.

use serde_json::Value;

/// The time since a timestamp of an object, or `<unknown>`.
pub(crate) fn age(timestamp: &str, now: i64) -> Value {
    match timestamp.parse::<jiff::Timestamp>() {
        Ok(then) => human(now - then.as_second()).into(),
        Err(_) => "<unknown>".into(),
    }
}

/// At most two units, and only one if the second would not matter.
pub(crate) fn human(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |big: i64, unit: char, small: i64, part: char| {
        let (whole, rest) = (seconds / big, seconds % big / small);
        if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{part}") }
    };
    match seconds {
        i64::MIN..-1 => "<invalid>".to_owned(),
        -1..0 => "0s".to_owned(),
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(MINUTE, 'm', 1, 's'),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(HOUR, 'h', MINUTE, 'm'),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(DAY, 'd', HOUR, 'h'),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(YEAR, 'y', DAY, 'd'),
        s => format!("{}y", s / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_kubectl_prints_them() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (601, "10m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 60, "3h1m"),
            (47 * 3600, "47h"),
            (49 * 3600, "2d1h"),
            (9 * 86400, "9d"),
            (800 * 86400, "2y70d"),
            (-5, "<invalid>"),
        ] {
            assert_eq!(human(seconds), text);
        }
        assert_eq!(age("nonsense", 0), "<unknown>");
        assert_eq!(age("1970-01-01T00:00:00Z", 7), "7s");
    }
}
