//! Resource quantities: `100m`, `1.5Gi`, `2e3`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A quantity, exact to a billionth; smaller fractions are rounded away from zero, as kube-apiserver does.
///
/// Equal amounts compare equal regardless of their suffixes. The canonical text has no fraction and the largest suffix of the original
/// family that keeps it exact.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity {
    nanos: i128,
    family: Family,
}

/// The family of suffixes a quantity was written with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// `n` to `E`, powers of a thousand.
    Decimal,
    /// `Ki` to `Ei`, powers of 1024.
    Binary,
    /// `e3`.
    Exponent,
}

/// The text is not a quantity, or the quantity is out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotAQuantity;

const NANO: i128 = 1_000_000_000;
/// Powers of a thousand, starting with a billionth.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Quantity {
    pub(crate) fn is_negative(self) -> bool {
        self.nanos < 0
    }

    pub(crate) fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }

    pub(crate) fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Returns a number of things.
    pub(crate) fn count(number: usize) -> Self {
        Self { nanos: i128::try_from(number).unwrap_or(i128::MAX / NANO) * NANO, family: Family::Decimal }
    }

    /// Returns the sum, with the suffixes of the first quantity that is not zero.
    pub(crate) fn plus(self, other: Self) -> Self {
        let family = if self.is_zero() { other.family } else { self.family };
        Self { nanos: self.nanos.saturating_add(other.nanos), family }
    }

    /// Returns what is more than in `other`, or zero.
    pub(crate) fn above(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_sub(other.nanos).max(0), ..self }
    }

    /// Returns the next whole number.
    pub(crate) fn rounded_up(self) -> Self {
        let missing = (NANO - self.nanos.rem_euclid(NANO)) % NANO;
        Self { nanos: self.nanos.saturating_add(missing), ..self }
    }

    pub(crate) fn as_f64(self) -> f64 {
        self.nanos as f64 / NANO as f64
    }
}

impl FromStr for Quantity {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.len() + fraction.len() == 0 || fraction.contains('.') {
            return Err(NotAQuantity);
        }
        let (numerator, denominator, family) = scale(suffix).ok_or(NotAQuantity)?;
        let digits = format!("{whole}{fraction}").parse::<i128>().map_err(|_| NotAQuantity)?;
        let places = u32::try_from(fraction.len()).ok().and_then(|places| 10i128.checked_pow(places));
        let divisor = places.and_then(|places| places.checked_mul(denominator)).ok_or(NotAQuantity)?;
        let dividend = digits.checked_mul(numerator).ok_or(NotAQuantity)?;
        let nanos = dividend / divisor + i128::from(dividend % divisor != 0);
        Ok(Self { nanos: if negative { -nanos } else { nanos }, family })
    }
}

/// Returns the factor of a suffix in billionths, as a fraction.
fn scale(suffix: &str) -> Option<(i128, i128, Family)> {
    if let Some(power) = BINARY.iter().skip(1).position(|name| *name == suffix) {
        return Some((NANO << (10 * (power + 1)), 1, Family::Binary));
    }
    if let Some(power) = DECIMAL.iter().position(|name| *name == suffix) {
        return Some((10i128.pow(3 * u32::try_from(power).ok()?), 1, Family::Decimal));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = 10i128.checked_pow(exponent.unsigned_abs())?;
    let (numerator, denominator) = if exponent < 0 { (NANO, power) } else { (NANO.checked_mul(power)?, 1) };
    Some((numerator, denominator, Family::Exponent))
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.nanos / NANO;
        if self.family == Family::Binary && self.is_whole() && whole.abs() >= 1024 {
            let (number, power) = divide_out(whole, 1024, BINARY.len() - 1);
            return write!(f, "{number}{}", BINARY[power]);
        }
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let (number, power) = divide_out(self.nanos, 1000, DECIMAL.len() - 1);
        match self.family {
            Family::Exponent if power == 3 => write!(f, "{number}"),
            Family::Exponent => write!(f, "{number}e{}", 3 * i64::try_from(power).unwrap_or(0) - 9),
            Family::Decimal | Family::Binary => write!(f, "{number}{}", DECIMAL[power]),
        }
    }
}

/// Divides by a factor as often as it divides evenly, at most `max` times. Returns the quotient and the number of divisions.
fn divide_out(mut number: i128, factor: i128, max: usize) -> (i128, usize) {
    let mut power = 0;
    while power < max && number != 0 && number % factor == 0 {
        number /= factor;
        power += 1;
    }
    (number, power)
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_the_suffixes() {
        let quantity = |text: &str| text.parse::<Quantity>().unwrap();
        assert_eq!(quantity("1Gi").plus(quantity("512Mi")).to_string(), "1536Mi");
        assert_eq!(quantity("0").plus(quantity("1Ki")).to_string(), "1Ki");
        assert_eq!(quantity("1").above(quantity("250m")).to_string(), "750m");
        assert_eq!(quantity("1").above(quantity("2")).to_string(), "0");
        assert_eq!(quantity("1500m").rounded_up().to_string(), "2");
        assert_eq!(Quantity::count(3).to_string(), "3");
    }

    fn canonical(text: &str) -> Option<String> {
        text.parse::<Quantity>().ok().map(|quantity| quantity.to_string())
    }

    #[test]
    fn quantities_are_written_in_canonical_form() {
        let cases = [
            ("0.1", "100m"),
            ("1", "1"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1.5Gi", "1536Mi"),
            ("1024Mi", "1Gi"),
            ("0.5Ki", "512"),
            ("1.0001Ki", "1024102400u"),
            ("100Gi", "100Gi"),
            ("1e3", "1e3"),
            ("1500e-3", "1500e-3"),
            ("12E", "12E"),
            ("2E3", "2e3"),
            ("1000", "1k"),
            ("-5k", "-5k"),
            ("+7", "7"),
            ("0Gi", "0"),
            (".5", "500m"),
            ("5.", "5"),
            ("0.0000000001", "1n"),
            ("1048576", "1048576"),
            ("100000", "100k"),
        ];
        for (given, expected) in cases {
            assert_eq!(canonical(given).as_deref(), Some(expected), "{given}");
        }
    }

    #[test]
    fn canonical_quantities_are_unchanged() {
        for text in ["100m", "1536Mi", "1e3", "12E", "1k", "-5k", "1n", "0"] {
            assert_eq!(canonical(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn malformed_text_is_rejected() {
        for text in [
            "",
            "x",
            "1x",
            "1.2.3",
            "--1",
            "1 Gi",
            "Gi",
            "1e",
            "1e1.5",
            "1KI",
            ".",
            "1ki",
            "999999999999999999999999999999999999E",
        ] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }

    #[test]
    fn quantities_are_compared_by_amount() {
        let quantity = |text: &str| text.parse::<Quantity>().expect("a quantity");
        assert_eq!(quantity("1Gi"), quantity("1024Mi"));
        assert!(quantity("999m") < quantity("1") && quantity("1G") < quantity("1Gi"));
        assert!(quantity("-1").is_negative() && !quantity("0").is_negative());
        assert!(quantity("1k").is_whole() && !quantity("1m").is_whole());
    }
}
