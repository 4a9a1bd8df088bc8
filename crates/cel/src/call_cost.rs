//! The cost of a call, from the sizes of its arguments and its result.

use crate::value::Value;

/// How the cost of a function is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum CallCost {
    Fixed(u64),
    /// The traversal of the receiver with everything in it.
    Traversal,
    /// A multiple of the size of the first argument.
    First(f64),
    /// A multiple of the size of the result.
    Result(f64),
    /// The product of text and pattern.
    Pattern,
    ContainsIp {
        parses: bool,
    },
    ContainsCidr {
        parses: bool,
    },
    Validate,
    /// The smaller of two sizes.
    Smaller,
    Equality,
    /// Both sizes.
    Both,
    /// The product of two texts.
    Search,
    /// The size of the second argument.
    Second,
    /// The creation of a list of the size of the result.
    NewList,
    Flatten,
    /// The comparison of all elements of an argument with each other.
    SelfCompare(usize),
    /// A multiple of the product of two sizes.
    Product(f64),
}

/// The cost of one character.
const CHARACTER: f64 = 0.1;
/// The cost of one character of a pattern.
const PATTERN_CHARACTER: f64 = 0.25;
/// The cost of making a list.
pub(crate) const LIST: u64 = 10;
/// The cost of making a map.
pub(crate) const MAP: u64 = 30;

impl CallCost {
    /// Returns the rule for a function, and for the overload if there is only one.
    pub(crate) fn of(function: &str, overload: &str) -> Self {
        match overload {
            "list_slice" | "lists_range" | "list_reverse" => return Self::NewList,
            "list_flatten" | "list_flatten_int" => return Self::Flatten,
            "list_distinct" => return Self::SelfCompare(0),
            "list_sets_contains_list" | "list_sets_intersects_list" => return Self::Product(1.0),
            "list_sets_equivalent_list" => return Self::Product(2.0),
            sort if sort.ends_with("_sort") => return Self::SelfCompare(0),
            sort if sort.ends_with("_sortByAssociatedKeys") => return Self::SelfCompare(1),
            _ => {}
        }
        match function {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => Self::Traversal,
            "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" => Self::First(CHARACTER),
            "replace" | "split" | "ip.isCanonical" => Self::First(2.0 * CHARACTER),
            "join" => Self::Result(2.0 * CHARACTER),
            "find" | "findAll" => Self::Pattern,
            "ip" if overload == "cidr_ip" => Self::Fixed(1),
            "cidr" | "isIP" | "isCIDR" | "ip" => Self::First(CHARACTER),
            "containsIP" => Self::ContainsIp { parses: overload == "cidr_contains_ip_string" },
            "containsCIDR" => Self::ContainsCidr { parses: overload == "cidr_contains_cidr_string" },
            "quantity" | "isQuantity" | "semver" | "isSemver" => Self::First(CHARACTER),
            "validate" => Self::Validate,
            "_==_" | "_!=_" => Self::Equality,
            _ => Self::of_overload(overload),
        }
    }

    fn of_overload(overload: &str) -> Self {
        match overload {
            "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
            | "strings_quote" | "string_format" => Self::First(CHARACTER),
            "in_list" => Self::Second,
            "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes" => Self::Smaller,
            "add_string" | "add_bytes" => Self::Both,
            "matches_string" => Self::Pattern,
            "contains_string" => Self::Search,
            _ => Self::Fixed(1),
        }
    }

    /// Returns the cost of a call; an argument or a result that is an error is `None`.
    pub(crate) fn cost(self, args: &[Option<&Value<'_>>], result: Option<&Value<'_>>) -> u64 {
        let value = |at: usize| args.get(at).copied().flatten();
        let size = |at: usize| value(at).map_or(1, Value::size);
        match self {
            Self::Fixed(cost) => cost,
            Self::Traversal => value(0).map_or(1, traversal),
            Self::First(factor) => scaled(size(0), factor),
            Self::Result(factor) => scaled(result.map_or(1, Value::size), factor),
            Self::Pattern => pattern_cost(size(0), size(1)),
            Self::ContainsIp { parses } => {
                scaled(2 * size(0), CHARACTER) + if parses { scaled(size(1), CHARACTER) } else { 0 }
            }
            Self::ContainsCidr { parses } => {
                let cidr = size(0);
                let parsing = if parses { scaled(size(1), CHARACTER) } else { 0 };
                scaled(2 * cidr, CHARACTER) + scaled(cidr, CHARACTER) + 1 + parsing
            }
            Self::Validate => match value(0) {
                Some(Value::Format(format)) => pattern_cost(size(1), format.regex_size),
                _ => 1,
            },
            Self::Equality if value(0).is_some_and(is_opaque) => 1,
            Self::Equality | Self::Smaller => scaled(size(0).min(size(1)), CHARACTER),
            Self::Both => scaled(size(0) + size(1), CHARACTER),
            Self::Search => scaled(size(0), CHARACTER).saturating_mul(scaled(size(1), CHARACTER)),
            Self::Second => size(1),
            Self::NewList => list_cost(1.0, result.map_or(1, Value::size)),
            Self::Flatten => {
                let depth = match value(1) {
                    Some(Value::Int(depth)) => *depth as f64,
                    _ => 1.0,
                };
                list_cost(depth, size(0))
            }
            Self::SelfCompare(at) => self_compare(value(at)),
            Self::Product(factor) => 1 + (size(0).saturating_mul(size(1)) as f64 * factor) as u64,
        }
    }
}

fn is_opaque(value: &Value<'_>) -> bool {
    use Value::{Cidr, Format, Ip, Quantity, Semver, Url};
    matches!(value, Quantity(_) | Ip(_) | Cidr(_) | Format(_) | Url(_) | Semver(_))
}

fn scaled(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

fn pattern_cost(text: u64, pattern: u64) -> u64 {
    scaled(text + 1, CHARACTER).saturating_mul(scaled(pattern, PATTERN_CHARACTER))
}

fn list_cost(factor: f64, size: u64) -> u64 {
    let product = size as f64 * factor;
    // A negative depth wraps in Go.
    let product = if product < 0.0 { product as i64 as u64 } else { product as u64 };
    if factor < 0.0 { product.wrapping_add(1 + LIST) } else { product.saturating_add(1 + LIST) }
}

fn self_compare(list: Option<&Value<'_>>) -> u64 {
    let Some(Value::List(list)) = list else { return list_cost(2.0, 1) };
    let factor = match list.get(0) {
        Some(Ok(Value::String(_) | Value::Bytes(_))) => 2.0 + CHARACTER,
        _ => 2.0,
    };
    let size = list.len() as u64;
    list_cost(factor, size.saturating_mul(size))
}

/// Returns the cost of a traversal of a value with everything in it.
fn traversal(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => (text.len() as f64 * CHARACTER) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * CHARACTER) as u64,
        Value::List(list) => list.iter().map(|item| item.as_ref().map_or(1, traversal)).sum(),
        Value::Map(map) => {
            let entry = |key: &Value<'_>| {
                let value = map.find(key).ok().flatten();
                traversal(key) + value.as_ref().map_or(1, traversal)
            };
            map.keys().iter().map(entry).sum()
        }
        _ => 1,
    }
}
