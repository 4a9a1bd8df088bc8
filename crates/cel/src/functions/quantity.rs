//! Quantities of resources.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Native, no_overload, semver};
use crate::meter::Meter;
use crate::value::{Eval, Value, error};

/// A quantity: an integer with a decimal scale while that is exact, and otherwise a number of nano units.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quantity {
    form: Form,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    /// `value` times ten to the power of `scale`.
    Scaled { value: i64, scale: i32 },
    /// Whole units, and nano units below one of the same sign.
    Exact { whole: i128, nanos: i64 },
}

const NANOS: i64 = 1_000_000_000;
const SYNTAX: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
/// The most decimal digits that always fit an `i64`.
const SAFE_DIGITS: i32 = 18;

pub(super) fn native(function: &str) -> Option<Native> {
    Some(match function {
        "quantity" => |_, _, args| match args {
            [Value::String(text)] => match Quantity::parse(text) {
                Ok(quantity) => Ok(Value::Quantity(Arc::new(quantity))),
                Err(why) => error(why),
            },
            _ => no_overload("quantity", args),
        },
        "isQuantity" => |_, _, args| match args {
            [Value::String(text)] => Ok(Value::Bool(Quantity::parse(text).is_ok())),
            _ => no_overload("isQuantity", args),
        },
        "sign" => |_, _, args| unary("sign", args, |q| Value::Int(q.sign())),
        "asApproximateFloat" => {
            |_, _, args| unary("asApproximateFloat", args, |q| Value::Double(q.approximate()))
        }
        "isInteger" => |_, _, args| unary("isInteger", args, |q| Value::Bool(q.as_integer().is_some())),
        "asInteger" => |_, _, args| match args {
            [Value::Quantity(q)] => match q.as_integer() {
                Some(n) => Ok(Value::Int(n)),
                None => error("cannot convert value to integer"),
            },
            _ => no_overload("asInteger", args),
        },
        "isGreaterThan" => |meter, _, args| semver::compared(meter, "isGreaterThan", args),
        "isLessThan" => |meter, _, args| semver::compared(meter, "isLessThan", args),
        "compareTo" => |meter, _, args| semver::compared(meter, "compareTo", args),
        "add" => |meter, _, args| sum(meter, "add", args, false),
        "sub" => |meter, _, args| sum(meter, "sub", args, true),
        _ => return None,
    })
}

fn unary<'a>(function: &str, args: &[Value<'a>], map: fn(&Quantity) -> Value<'a>) -> Eval<'a> {
    match args {
        [Value::Quantity(q)] => Ok(map(q)),
        _ => no_overload(function, args),
    }
}

fn sum<'a>(_: &mut Meter, function: &str, args: &[Value<'a>], subtract: bool) -> Eval<'a> {
    let (a, b) = match args {
        [Value::Quantity(a), Value::Quantity(b)] => (a, **b),
        [Value::Quantity(a), Value::Int(n)] => (a, Quantity { form: Form::Scaled { value: *n, scale: 0 } }),
        _ => return no_overload(function, args),
    };
    let b = if subtract { b.negated() } else { b };
    Ok(Value::Quantity(Arc::new(a.plus(&b))))
}

impl Quantity {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (negative, unsigned) = match text.strip_prefix(['+', '-']) {
            Some(rest) => (text.starts_with('-'), rest),
            None => (false, text),
        };
        let digits = unsigned.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let (number, suffix) = unsigned.split_at(digits);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || whole.is_empty() && fraction.is_empty() {
            return Err(SYNTAX);
        }
        let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let digits = letters.strip_prefix(['+', '-']).unwrap_or(letters);
        if !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(SYNTAX);
        }
        let (binary, exponent) = parse_suffix(suffix).ok_or("unable to parse quantity's suffix")?;
        let whole = whole.trim_start_matches('0');
        if whole.len() + fraction.len() > 400 {
            return Err(SYNTAX);
        }
        Ok(Self {
            form: fast(whole, fraction, binary, exponent, negative)
                .unwrap_or_else(|| exact(whole, fraction, binary, exponent, negative)),
        })
    }

    fn sign(&self) -> i64 {
        let (whole, nanos) = self.parts();
        (whole.signum() as i64 + nanos.signum()).signum()
    }

    fn approximate(&self) -> f64 {
        match self.form {
            Form::Scaled { value, scale: 0 } => value as f64,
            Form::Scaled { value, scale } => value as f64 * 10f64.powi(scale),
            Form::Exact { whole, nanos } => whole as f64 + nanos as f64 / 1e9,
        }
    }

    /// Kubernetes does not reduce: `2000m` is no integer.
    fn as_integer(&self) -> Option<i64> {
        match self.form {
            Form::Scaled { value, scale } => {
                let factor = 10i64.checked_pow(u32::try_from(scale).ok()?)?;
                value.checked_mul(factor)
            }
            Form::Exact { .. } => None,
        }
    }

    fn parts(&self) -> (i128, i64) {
        match self.form {
            Form::Exact { whole, nanos } => (whole, nanos),
            Form::Scaled { value, scale } if scale >= 0 => {
                (i128::from(value).saturating_mul(10i128.saturating_pow(scale.unsigned_abs())), 0)
            }
            Form::Scaled { value, scale } => {
                let unit = 10i64.saturating_pow(scale.unsigned_abs());
                (i128::from(value / unit), value % unit * (NANOS / unit.min(NANOS)))
            }
        }
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.parts().cmp(&other.parts())
    }

    fn negated(self) -> Self {
        let form = match self.form {
            Form::Scaled { value, scale } => Form::Scaled { value: value.saturating_neg(), scale },
            Form::Exact { whole, nanos } => Form::Exact { whole: -whole, nanos: -nanos },
        };
        Self { form }
    }

    fn plus(&self, other: &Self) -> Self {
        if let (Form::Scaled { value: a, scale: x }, Form::Scaled { value: b, scale: y }) =
            (self.form, other.form)
        {
            let form = match (a, b) {
                (_, 0) => Some(self.form),
                (0, _) => Some(other.form),
                (a, b) => {
                    let scale = x.min(y);
                    let raise = |value: i64, from: i32| {
                        value.checked_mul(10i64.checked_pow((from - scale).unsigned_abs())?)
                    };
                    raise(a, x)
                        .zip(raise(b, y))
                        .and_then(|(a, b)| a.checked_add(b))
                        .map(|value| Form::Scaled { value, scale })
                }
            };
            if let Some(form) = form {
                return Self { form };
            }
        }
        let ((a, x), (b, y)) = (self.parts(), other.parts());
        let nanos = x + y;
        let mut whole = a.saturating_add(b).saturating_add(i128::from(nanos / NANOS));
        let mut nanos = nanos % NANOS;
        // Both parts have the sign of the sum.
        if whole > 0 && nanos < 0 {
            whole -= 1;
            nanos += NANOS;
        } else if whole < 0 && nanos > 0 {
            whole += 1;
            nanos -= NANOS;
        }
        Self { form: Form::Exact { whole, nanos } }
    }
}

/// Returns whether the exponent is that of two, and the exponent.
fn parse_suffix(suffix: &str) -> Option<(bool, i32)> {
    Some(match suffix {
        "" => (false, 0),
        "n" => (false, -9),
        "u" => (false, -6),
        "m" => (false, -3),
        "k" => (false, 3),
        "M" => (false, 6),
        "G" => (false, 9),
        "T" => (false, 12),
        "P" => (false, 15),
        "E" => (false, 18),
        "Ki" => (true, 10),
        "Mi" => (true, 20),
        "Gi" => (true, 30),
        "Ti" => (true, 40),
        "Pi" => (true, 50),
        "Ei" => (true, 60),
        other => {
            let exponent = other.strip_prefix(['e', 'E'])?;
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            (
                false,
                exponent
                    .parse()
                    .unwrap_or(if exponent.starts_with('-') { -400 } else { 400 })
                    .clamp(-400, 400),
            )
        }
    })
}

/// Returns the quantity as a scaled integer if it surely fits.
fn fast(whole: &str, fraction: &str, binary: bool, exponent: i32, negative: bool) -> Option<Form> {
    let length = |text: &str| i32::try_from(text.len()).ok();
    let (precision, scale, mantissa) = if binary {
        if !fraction.is_empty() {
            return None;
        }
        (15 - length(whole)? - (exponent as f32 * 3.0 / 10.0) as i32 - 1, 0, 1i64 << exponent)
    } else {
        (SAFE_DIGITS - length(whole)? - length(fraction)?, exponent, 1)
    };
    let scale = scale - length(fraction)?;
    if precision < 0 || scale < -9 {
        return None;
    }
    let digits = format!("{whole}{fraction}");
    let value: i64 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let value = value.checked_mul(mantissa)?;
    Some(Form::Scaled { value: if negative { -value } else { value }, scale })
}

/// Returns the quantity in nano units, rounded away from zero and at most what fits 64 bits.
fn exact(whole: &str, fraction: &str, binary: bool, exponent: i32, negative: bool) -> Form {
    let largest = i128::from(i64::MAX) * i128::from(NANOS);
    let fraction = fraction.trim_end_matches('0');
    // Digits of the number in nano units, before the binary factor.
    let shift = 9 + if binary { 0 } else { exponent };
    let digits = format!("{whole}{fraction}");
    let places = i64::from(shift) - i64::try_from(fraction.len()).unwrap_or(0);
    let mut value: i128 = 0;
    let mut rest = false;
    let keep = i64::try_from(digits.len()).unwrap_or(0) + places.min(0);
    for (i, digit) in digits.bytes().enumerate() {
        if (i as i64) < keep {
            value = value.saturating_mul(10).saturating_add(i128::from(digit - b'0'));
        } else {
            rest |= digit != b'0';
        }
    }
    for _ in 0..places.clamp(0, 60) {
        value = value.saturating_mul(10);
    }
    if binary {
        value = value.saturating_mul(1i128 << exponent);
    }
    let value = (value + i128::from(rest)).min(largest);
    let value = if negative { -value } else { value };
    Form::Exact {
        whole: value / i128::from(NANOS),
        nanos: i64::try_from(value % i128::from(NANOS)).unwrap_or(0),
    }
}
