//! Parts of timestamps and durations.

use jiff::civil::DateTime;

use super::{Native, no_overload};
use crate::value::{Eval, Value, error};

pub(super) fn native(function: &str) -> Option<Native> {
    Some(match function {
        "getFullYear" => |_, _, args| part("getFullYear", args, |t| t.year().into(), None),
        "getMonth" => |_, _, args| part("getMonth", args, |t| i64::from(t.month()) - 1, None),
        "getDayOfYear" => |_, _, args| part("getDayOfYear", args, |t| i64::from(t.day_of_year()) - 1, None),
        "getDayOfMonth" => |_, _, args| part("getDayOfMonth", args, |t| i64::from(t.day()) - 1, None),
        "getDate" => |_, _, args| part("getDate", args, |t| t.day().into(), None),
        "getDayOfWeek" => {
            |_, _, args| part("getDayOfWeek", args, |t| t.weekday().to_sunday_zero_offset().into(), None)
        }
        "getHours" => |_, _, args| part("getHours", args, |t| t.hour().into(), Some(3_600_000_000_000)),
        "getMinutes" => |_, _, args| part("getMinutes", args, |t| t.minute().into(), Some(60_000_000_000)),
        "getSeconds" => |_, _, args| part("getSeconds", args, |t| t.second().into(), Some(1_000_000_000)),
        "getMilliseconds" => |_, _, args| {
            part("getMilliseconds", args, |t| t.subsec_nanosecond() as i64 / 1_000_000, Some(1_000_000))
        },
        _ => return None,
    })
}

/// Returns a part of a timestamp in a zone, or of a duration in whole units.
fn part<'a>(function: &str, args: &[Value<'a>], part: fn(DateTime) -> i64, unit: Option<i64>) -> Eval<'a> {
    let local = match (args, unit) {
        ([Value::Timestamp(t)], _) => t.civil(None),
        ([Value::Timestamp(t), Value::String(zone)], _) => t.civil(Some(zone)),
        ([Value::Duration(d)], Some(unit)) => return Ok(Value::Int(d / unit)),
        _ => return no_overload(function, args),
    };
    match local {
        Ok(local) => Ok(Value::Int(part(local))),
        Err(why) => error(why),
    }
}
