//! Equality and order of values.

use std::cmp::Ordering;

use super::{Failure, Value, error};
use crate::meter::Meter;

impl<'a> Value<'a> {
    /// Returns whether two values are equal; numbers are across their types.
    pub(crate) fn equals(&self, other: &Value<'a>, meter: &mut Meter) -> Result<bool, Failure> {
        use Value::{
            Bool, Bytes, Cidr, Double, Duration, Format, Int, Ip, List, Map, Null, Optional, Preserved,
            Quantity, Semver, String, Timestamp, Type, Uint, Url,
        };
        meter.work(1)?;
        Ok(match (self, other) {
            (Null, Null) => true,
            (Null, _) | (_, Null) => false,
            (Bool(a), Bool(b)) => a == b,
            (Int(_) | Uint(_) | Double(_), Int(_) | Uint(_) | Double(_)) => {
                compare_numbers(self, other) == Some(Ordering::Equal)
            }
            (String(a), String(b)) => {
                meter.work(a.len() as u64 / 64)?;
                **a == **b
            }
            (Bytes(a), Bytes(b)) => a == b,
            (Duration(a), Duration(b)) => a == b,
            (Timestamp(a), Timestamp(b)) => a.same_instant(b),
            (List(a), List(b)) => a.equals(b, meter)?,
            (Map(a), Map(b)) => a.equals(b, meter)?,
            (Type(a), Type(b)) => a == b,
            (Optional(Some(a)), Optional(Some(b))) => a.equals(b, meter)?,
            (Optional(a), Optional(b)) => a.is_none() && b.is_none(),
            (Url(a), Url(b)) => a.text == b.text,
            (Ip(a), Ip(b)) => a == b,
            (Cidr(a), Cidr(b)) => a == b,
            (Quantity(a), Quantity(b)) => a.compare(b) == Ordering::Equal,
            (Semver(a), Semver(b)) => a.compare(b) == Ordering::Equal,
            (Format(a), Format(b)) => a.name == b.name,
            (Preserved(a), Preserved(b)) => a == b,
            (Url(_) | Ip(_) | Cidr(_) | Quantity(_) | Semver(_) | Format(_), _) => {
                return error("no such overload");
            }
            _ => false,
        })
    }
}

/// Returns the order of two values of an ordered type; numbers are ordered across their types.
pub(crate) fn compare(a: &Value<'_>, b: &Value<'_>) -> Result<Ordering, Failure> {
    use Value::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    Ok(match (a, b) {
        (Int(_) | Uint(_) | Double(_), Int(_) | Uint(_) | Double(_)) => match compare_numbers(a, b) {
            Some(order) => order,
            None => return error("NaN values cannot be ordered"),
        },
        (Bool(a), Bool(b)) => a.cmp(b),
        (String(a), String(b)) => (**a).cmp(&**b),
        (Bytes(a), Bytes(b)) => a.cmp(b),
        (Duration(a), Duration(b)) => a.cmp(b),
        (Timestamp(a), Timestamp(b)) => a.instant().cmp(&b.instant()),
        _ => return error("no such overload"),
    })
}

fn compare_numbers(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    let integer = |value: &Value<'_>| match value {
        Value::Int(n) => Some(i128::from(*n)),
        Value::Uint(n) => Some(i128::from(*n)),
        _ => None,
    };
    match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), b) => compare_mixed(*a, b),
        (a, Value::Double(b)) => compare_mixed(*b, a).map(Ordering::reverse),
        (a, b) => Some(integer(a)?.cmp(&integer(b)?)),
    }
}

/// Compares in floating point, except that a double beyond the range of the integer type is not converted.
fn compare_mixed(double: f64, integer: &Value<'_>) -> Option<Ordering> {
    let (low, high, integer) = match integer {
        Value::Int(n) => (i64::MIN as f64, i64::MAX as f64, *n as f64),
        Value::Uint(n) => (0.0, u64::MAX as f64, *n as f64),
        _ => return None,
    };
    if double < low {
        return Some(Ordering::Less);
    }
    if double > high {
        return Some(Ordering::Greater);
    }
    double.partial_cmp(&integer)
}
