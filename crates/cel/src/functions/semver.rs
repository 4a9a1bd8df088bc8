//! Semantic versions.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::{Native, no_overload};
use crate::meter::Meter;
use crate::value::{Eval, Value, error, quote};

/// A semantic version, version 2.0.0 of the specification.
#[derive(Debug, Clone)]
pub(crate) struct Semver {
    numbers: [u64; 3],
    pre: Vec<Identifier>,
    build: Vec<String>,
}

/// One identifier of a pre-release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

pub(super) fn native(function: &str) -> Option<Native> {
    Some(match function {
        "semver" => |_, _, args| match read(args) {
            Some(Ok(version)) => Ok(Value::Semver(Arc::new(version))),
            Some(Err(why)) => error(why),
            None => no_overload("semver", args),
        },
        "isSemver" => |_, _, args| match read(args) {
            Some(version) => Ok(Value::Bool(version.is_ok())),
            None => no_overload("isSemver", args),
        },
        "major" => |_, _, args| number("major", args, 0),
        "minor" => |_, _, args| number("minor", args, 1),
        "patch" => |_, _, args| number("patch", args, 2),
        _ => return None,
    })
}

fn read(args: &[Value<'_>]) -> Option<Result<Semver, String>> {
    match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Some(Semver::parse(text)),
        [Value::String(text), Value::Bool(true)] => Some(Semver::parse_normalized(text)),
        _ => None,
    }
}

fn number<'a>(function: &str, args: &[Value<'a>], at: usize) -> Eval<'a> {
    match args {
        // Go converts without a check.
        [Value::Semver(version)] => Ok(Value::Int(version.numbers[at] as i64)),
        _ => no_overload(function, args),
    }
}

/// `isGreaterThan`, `isLessThan` and `compareTo` of quantities and versions.
pub(super) fn compared<'a>(_: &mut Meter, function: &str, args: &[Value<'a>]) -> Eval<'a> {
    let order = match args {
        [Value::Semver(a), Value::Semver(b)] => a.compare(b),
        [Value::Quantity(a), Value::Quantity(b)] => a.compare(b),
        _ => return no_overload(function, args),
    };
    Ok(match function {
        "isGreaterThan" => Value::Bool(order.is_gt()),
        "isLessThan" => Value::Bool(order.is_lt()),
        _ => Value::Int(order as i64),
    })
}

impl Semver {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, pre) = rest.split_once('-').map_or((rest, None), |(patch, pre)| (patch, Some(pre)));
        let numbers = [
            parse_number(major, "major", "Major")?,
            parse_number(minor, "minor", "Minor")?,
            parse_number(patch, "patch", "Patch")?,
        ];
        let pre = pre
            .map_or(Ok(Vec::new()), |pre| pre.split('.').map(Identifier::parse).collect::<Result<_, _>>())?;
        let mut builds = Vec::new();
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !is_alphanumeric(part) {
                return Err(format!("Invalid character(s) found in build meta data {}", quote(part)));
            }
            builds.push(part.to_owned());
        }
        Ok(Self { numbers, pre, build: builds })
    }

    /// Parses a version that may have a `v`, leading zeros and fewer than three numbers.
    fn parse_normalized(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
        for part in parts.iter_mut().filter(|part| part.len() > 1) {
            let trimmed = part.trim_start_matches('0');
            let zero = if trimmed.starts_with(|c: char| c.is_ascii_digit()) { "" } else { "0" };
            *part = format!("{zero}{trimmed}");
        }
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err("short version cannot contain PreRelease/Build meta data".to_owned());
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    /// Compares versions; build metadata is ignored.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let pre = match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.pre.cmp(&other.pre),
        };
        self.numbers.cmp(&other.numbers).then(pre)
    }
}

fn parse_number(text: &str, name: &str, capitalized: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return match text {
            // An empty number is a number with an error of its own.
            "" => Err("strconv.ParseUint: parsing \"\": invalid syntax".to_owned()),
            text => Err(format!("Invalid character(s) found in {name} number {}", quote(text))),
        };
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{capitalized} number must not contain leading zeroes {}", quote(text)));
    }
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: value out of range", quote(text)))
}

fn is_alphanumeric(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

impl Identifier {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Prerelease is empty".to_owned());
        }
        if text.bytes().all(|b| b.is_ascii_digit()) {
            if text.len() > 1 && text.starts_with('0') {
                return Err(format!(
                    "Numeric PreRelease version must not contain leading zeroes {}",
                    quote(text)
                ));
            }
            let number = text.parse();
            return number
                .map(Self::Number)
                .map_err(|_| format!("strconv.ParseUint: parsing {}: value out of range", quote(text)));
        }
        if !is_alphanumeric(text) {
            return Err(format!("Invalid character(s) found in prerelease {}", quote(text)));
        }
        Ok(Self::Text(text.to_owned()))
    }
}

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.numbers[0], self.numbers[1], self.numbers[2])?;
        for (i, identifier) in self.pre.iter().enumerate() {
            f.write_str(if i == 0 { "-" } else { "." })?;
            match identifier {
                Identifier::Number(n) => write!(f, "{n}")?,
                Identifier::Text(text) => f.write_str(text)?,
            }
        }
        for (i, part) in self.build.iter().enumerate() {
            write!(f, "{}{part}", if i == 0 { "+" } else { "." })?;
        }
        Ok(())
    }
}
