//! Functions of lists.

use std::cmp::Ordering;

use super::{Native, no_overload, operators, strings};
use crate::meter::Meter;
use crate::value::{Eval, Failure, List, Value, compare, error};

pub(super) fn native(function: &str) -> Option<Native> {
    Some(match function {
        "isSorted" => is_sorted,
        "sum" => sum,
        "min" => |meter, _, args| extreme(meter, "min", args, Ordering::Greater),
        "max" => |meter, _, args| extreme(meter, "max", args, Ordering::Less),
        "indexOf" => |meter, _, args| index_of(meter, "indexOf", args, false),
        "lastIndexOf" => |meter, _, args| index_of(meter, "lastIndexOf", args, true),
        "slice" => slice,
        "flatten" => flatten,
        "sort" => |meter, _, args| match args {
            [Value::List(list)] => sort_by(meter, list, list),
            _ => error("no such overload: sort"),
        },
        "@sortByAssociatedKeys" => |meter, _, args| match args {
            [Value::List(list), Value::List(keys)] => sort_by(meter, list, keys),
            _ => error("no such overload: @sortByAssociatedKeys"),
        },
        "lists.range" => range,
        "reverse" => reverse,
        "distinct" => distinct,
        _ => return None,
    })
}

fn is_sorted<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let [Value::List(list)] = args else { return no_overload("isSorted", args) };
    meter.work(list.len() as u64)?;
    let mut previous: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        if let Some(previous) = previous
            && compare(&previous, &item)? == Ordering::Greater
        {
            return Ok(Value::Bool(false));
        }
        previous = Some(item);
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(meter: &mut Meter, overload: &str, args: &[Value<'a>]) -> Eval<'a> {
    let [Value::List(list)] = args else { return no_overload("sum", args) };
    let first = list.get(0).transpose()?;
    let mut total = match (overload, &first) {
        ("list_uint_sum_uint", _) | ("", Some(Value::Uint(_))) => Value::Uint(0),
        ("list_double_sum_double", _) | ("", Some(Value::Double(_))) => Value::Double(0.0),
        ("list_duration_sum_duration", _) | ("", Some(Value::Duration(_))) => Value::Duration(0),
        _ => Value::Int(0),
    };
    meter.work(list.len() as u64)?;
    for item in list.iter() {
        total = operators::add(meter, "", &[total, item?])?;
    }
    Ok(total)
}

/// Returns the element that all others are ordered after; `worse` is the order of one that is replaced.
fn extreme<'a>(meter: &mut Meter, function: &str, args: &[Value<'a>], worse: Ordering) -> Eval<'a> {
    let [Value::List(list)] = args else { return no_overload(function, args) };
    meter.work(list.len() as u64)?;
    let mut best: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        best = Some(match best {
            Some(best) if compare(&best, &item)? != worse => best,
            _ => item,
        });
    }
    best.map_or_else(|| error(format!("{function} called on empty list")), Ok)
}

fn index_of<'a>(meter: &mut Meter, function: &str, args: &[Value<'a>], last: bool) -> Eval<'a> {
    match args {
        [Value::String(text), Value::String(part)] => {
            meter.work(text.len() as u64 / 64)?;
            strings::index_of(text, part, None, last).map(Value::Int)
        }
        [Value::String(text), Value::String(part), Value::Int(offset)] => {
            meter.work(text.len() as u64 / 64)?;
            strings::index_of(text, part, Some(*offset), last).map(Value::Int)
        }
        [Value::List(list), value] => {
            let mut found = -1;
            for (i, item) in list.iter().enumerate() {
                if matches!(item.and_then(|item| item.equals(value, meter)), Ok(true)) {
                    found = i64::try_from(i).unwrap_or(-1);
                    if !last {
                        break;
                    }
                }
                meter.work(1)?;
            }
            Ok(Value::Int(found))
        }
        _ => no_overload(function, args),
    }
}

fn slice<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let [Value::List(list), Value::Int(start), Value::Int(end)] = args else {
        return no_overload("slice", args);
    };
    let cannot = |why: String| error(format!("cannot slice({start}, {end}), {why}"));
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return cannot("negative indexes not supported".to_owned());
    };
    if from > to {
        return cannot("start index must be less than or equal to end index".to_owned());
    }
    if to > list.len() {
        return cannot(format!("list is length {}", list.len()));
    }
    meter.work((to - from) as u64)?;
    let items: Result<Vec<_>, Failure> = (from..to).filter_map(|i| list.get(i)).collect();
    Ok(Value::list(items?))
}

fn flatten<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let (list, depth) = match args {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(depth)] => (list, *depth),
        _ => return no_overload("flatten", args),
    };
    if depth < 0 {
        return error("level must be non-negative");
    }
    let mut out = Vec::new();
    flatten_into(&mut out, list, depth, meter)?;
    Ok(Value::list(out))
}

fn flatten_into<'a>(
    out: &mut Vec<Value<'a>>,
    list: &List<'a>,
    depth: i64,
    meter: &mut Meter,
) -> Result<(), Failure> {
    for item in list.iter() {
        meter.work(1)?;
        match item? {
            Value::List(inner) if depth > 0 => flatten_into(out, &inner, depth - 1, meter)?,
            item => out.push(item),
        }
    }
    Ok(())
}

fn sort_by<'a>(meter: &mut Meter, list: &List<'a>, keys: &List<'a>) -> Eval<'a> {
    if list.len() != keys.len() {
        return error(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        ));
    }
    let keys = keys.values(meter)?;
    if let Some(first) = keys.first() {
        use Value::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
        if !matches!(
            first,
            Bool(_) | Bytes(_) | Double(_) | Duration(_) | Int(_) | String(_) | Timestamp(_) | Uint(_)
        ) {
            return error("list elements must be comparable");
        }
        if keys.iter().any(|key| key.type_name() != first.type_name()) {
            return error("list elements must have the same type");
        }
    }
    let mut entries: Vec<_> = keys.into_iter().zip(list.values(meter)?).collect();
    meter.work((entries.len() as u64).saturating_mul(8))?;
    // A NaN has no order, and stays where it is.
    entries.sort_by(|(a, _), (b, _)| match (a, b) {
        (Value::Double(a), Value::Double(b)) => a.total_cmp(b),
        (a, b) => compare(a, b).unwrap_or(Ordering::Equal),
    });
    Ok(Value::list(entries.into_iter().map(|(_, value)| value).collect()))
}

fn range<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let [Value::Int(n)] = args else { return no_overload("lists.range", args) };
    // The cost is charged for the result, which must not be made if it is too large.
    let size = u64::try_from(*n).unwrap_or(0);
    meter.require(size.saturating_add(11))?;
    meter.work(size)?;
    Ok(Value::list((0..*n).map(Value::Int).collect()))
}

fn reverse<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let [Value::List(list)] = args else { return no_overload("reverse", args) };
    let mut items = list.values(meter)?;
    items.reverse();
    Ok(Value::list(items))
}

fn distinct<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let [Value::List(list)] = args else { return no_overload("distinct", args) };
    let mut unique: Vec<Value<'a>> = Vec::new();
    'items: for item in list.iter() {
        let item = item?;
        for known in &unique {
            if matches!(item.equals(known, meter), Ok(true)) {
                continue 'items;
            }
            meter.work(1)?;
        }
        unique.push(item);
    }
    Ok(Value::list(unique))
}
