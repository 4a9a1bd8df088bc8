//! `format`: text with clauses such as `%s` and `%.2f`.

use super::convert::text_of;
use super::no_overload;
use crate::meter::Meter;
use crate::value::{Eval, Failure, List, Value, error, quote};

/// Go prints no number with more digits than these.
const MAX_PRECISION: usize = 1_000_000;
const DEFAULT_PRECISION: usize = 6;

/// A clause of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clause {
    String,
    Decimal,
    Fixed(usize),
    Scientific(usize),
    Binary,
    Hex { upper: bool },
    Octal,
}

/// The treatment of each clause: print its argument, or check the type of it.
pub(crate) trait Formatting {
    type Error;
    /// Prints the next argument.
    fn argument(&mut self, clause: Clause, index: usize, out: &mut String) -> Result<(), Self::Error>;
    /// Returns the error of a missing argument.
    fn check_index(&mut self, index: usize) -> Result<(), Self::Error>;
    fn invalid(&mut self, why: String) -> Self::Error;
    fn size(&self) -> usize;
}

/// Formats a text; returns it with the number of its arguments.
pub(crate) fn format<F: Formatting>(text: &str, formatting: &mut F) -> Result<(String, usize), F::Error> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut index = 0;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        formatting.check_index(index)?;
        if after.is_empty() {
            return Err(formatting.invalid("unexpected end of string".to_owned()));
        }
        if index >= formatting.size() {
            return Err(formatting.invalid(format!("index {index} out of range")));
        }
        let (clause, length) = match parse_clause(after) {
            Ok(parsed) => parsed,
            Err(why) => return Err(formatting.invalid(format!("could not parse formatting clause: {why}"))),
        };
        formatting.argument(clause, index, &mut out)?;
        index += 1;
        rest = &after[length..];
    }
    out.push_str(rest);
    Ok((out, index))
}

fn parse_clause(text: &str) -> Result<(Clause, usize), String> {
    let (precision, length) = match text.strip_prefix('.') {
        None => (DEFAULT_PRECISION, 0),
        Some(rest) => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == rest.len() {
                return Err(
                    "error while parsing precision: could not find end of precision specifier".to_owned()
                );
            }
            let Ok(precision) = rest[..digits].parse::<usize>() else {
                let (why, text) = (
                    "error while parsing precision: error while converting precision to integer",
                    quote(&rest[..digits]),
                );
                return Err(format!("{why}: strconv.Atoi: parsing {text}: invalid syntax"));
            };
            (precision, digits + 1)
        }
    };
    let Some(verb) = text[length..].chars().next() else { return Err("unexpected end of string".to_owned()) };
    let clause = match verb {
        's' => Clause::String,
        'd' => Clause::Decimal,
        'f' => Clause::Fixed(precision),
        'e' => Clause::Scientific(precision),
        'b' => Clause::Binary,
        'x' => Clause::Hex { upper: false },
        'X' => Clause::Hex { upper: true },
        'o' => Clause::Octal,
        other => return Err(format!("unrecognized formatting clause \"{other}\"")),
    };
    Ok((clause, length + verb.len_utf8()))
}

impl Clause {
    /// The error of a value of another type.
    pub(crate) fn mismatch(self, found: &str) -> String {
        let expected = match self {
            Self::String => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
                 and timestamps"
            }
            Self::Decimal => "decimal clause can only be used on integers",
            Self::Fixed(_) => "fixed-point clause can only be used on doubles",
            Self::Scientific(_) => "scientific clause can only be used on doubles",
            Self::Binary => "only integers and bools can be formatted as binary",
            Self::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
            Self::Octal => "octal clause can only be used on integers",
        };
        format!("error during formatting: {expected}, was given {found}")
    }
}

pub(super) fn format_function<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let [Value::String(text), Value::List(list)] = args else { return no_overload("format", args) };
    meter.work(text.len() as u64 / 64)?;
    let mut printer = Printer { meter, args: list };
    format(text, &mut printer).map(|(text, _)| Value::string(text))
}

struct Printer<'p, 'a> {
    meter: &'p mut Meter,
    args: &'p List<'a>,
}

impl Formatting for Printer<'_, '_> {
    type Error = Failure;

    fn argument(&mut self, clause: Clause, index: usize, out: &mut String) -> Result<(), Failure> {
        let Some(value) = self.args.get(index) else { return error(format!("index {index} out of range")) };
        let value = value?;
        let start = out.len();
        let printed = match clause {
            Clause::String => push_string(out, &value, self.meter)?,
            clause => push_number(out, clause, &value),
        };
        self.meter.work(1 + (out.len() - start) as u64 / 64)?;
        if printed { Ok(()) } else { error(clause.mismatch(value.type_name())) }
    }

    fn check_index(&mut self, index: usize) -> Result<(), Failure> {
        if index < self.args.len() { Ok(()) } else { error(format!("index {index} out of range")) }
    }

    fn invalid(&mut self, why: String) -> Failure {
        Failure::Error(why.into())
    }

    fn size(&self) -> usize {
        self.args.len()
    }
}

/// Prints a value for `%s`; returns whether its type can be printed.
fn push_string(out: &mut String, value: &Value<'_>, meter: &mut Meter) -> Result<bool, Failure> {
    match value {
        Value::Null => out.push_str("null"),
        Value::List(list) => return push_list(out, list, meter),
        Value::Map(_) => return push_map(out, value, meter),
        Value::Ip(_) | Value::Cidr(_) => return Ok(false),
        value => match text_of(value) {
            Some(Ok(Value::String(text))) => out.push_str(&text),
            Some(Err(why)) => return error(why),
            _ => return Ok(false),
        },
    }
    Ok(true)
}

fn push_list(out: &mut String, list: &List<'_>, meter: &mut Meter) -> Result<bool, Failure> {
    out.push('[');
    for (i, item) in list.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        push_element(out, &item?, meter)?;
    }
    out.push(']');
    Ok(true)
}

fn push_map(out: &mut String, value: &Value<'_>, meter: &mut Meter) -> Result<bool, Failure> {
    let Value::Map(map) = value else { return Ok(false) };
    let mut entries = Vec::new();
    for key in map.keys() {
        let Some(value) = map.find(&key)? else { return error(format!("could not find key: {key}")) };
        let (mut name, mut text) = (String::new(), String::new());
        push_element(&mut name, &key, meter)?;
        push_element(&mut text, &value, meter)?;
        entries.push((name, text));
    }
    entries.sort();
    out.push('{');
    for (i, (name, text)) in entries.iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        out.push_str(name);
        out.push(':');
        out.push_str(text);
    }
    out.push('}');
    Ok(true)
}

/// Prints a value inside a list or a map as a literal.
fn push_element(out: &mut String, value: &Value<'_>, meter: &mut Meter) -> Result<(), Failure> {
    meter.work(1)?;
    match value {
        Value::String(text) => out.push_str(&quote(text)),
        Value::Bytes(bytes) => {
            out.push('b');
            out.push_str(&quote(&String::from_utf8_lossy(bytes)));
        }
        Value::Double(d) if d.is_finite() => out.push_str(&format!("{d:.6}")),
        Value::Double(d) if d.is_nan() => out.push_str("\"NaN\""),
        Value::Double(d) => out.push_str(if *d > 0.0 { "\"+Inf\"" } else { "\"-Inf\"" }),
        Value::Timestamp(t) => out.push_str(&format!("timestamp(\"{t}\")")),
        Value::Duration(_) => {
            let mut text = String::new();
            push_string(&mut text, value, meter)?;
            out.push_str(&format!("duration(\"{text}\")"));
        }
        value => {
            if !push_string(out, value, meter)? {
                return error(format!(
                    "error during formatting: no formatting function for {}",
                    value.type_name()
                ));
            }
        }
    }
    Ok(())
}

/// Prints a value for the clauses of numbers; returns whether it has the right type.
fn push_number(out: &mut String, clause: Clause, value: &Value<'_>) -> bool {
    let text = match (clause, value) {
        (Clause::Decimal, Value::Int(n)) => n.to_string(),
        (Clause::Decimal, Value::Uint(n)) => n.to_string(),
        (Clause::Binary, Value::Int(n)) => signed(*n, format!("{:b}", n.unsigned_abs())),
        (Clause::Binary, Value::Uint(n)) => format!("{n:b}"),
        (Clause::Binary, Value::Bool(b)) => i32::from(*b).to_string(),
        (Clause::Octal, Value::Int(n)) => signed(*n, format!("{:o}", n.unsigned_abs())),
        (Clause::Octal, Value::Uint(n)) => format!("{n:o}"),
        (Clause::Hex { upper }, Value::Int(n)) => signed(*n, cased(format!("{:x}", n.unsigned_abs()), upper)),
        (Clause::Hex { upper }, Value::Uint(n)) => cased(format!("{n:x}"), upper),
        (Clause::Hex { upper }, Value::String(text)) => hex(text.as_bytes(), upper),
        (Clause::Hex { upper }, Value::Bytes(bytes)) => hex(bytes, upper),
        (Clause::Fixed(precision), value) => match double(value) {
            Some(d) => fixed(d, precision),
            None => return false,
        },
        (Clause::Scientific(width), value) => match double(value) {
            Some(d) => scientific(d, width),
            None => return false,
        },
        _ => return false,
    };
    out.push_str(&text);
    true
}

fn signed(n: i64, digits: String) -> String {
    if n < 0 { format!("-{digits}") } else { digits }
}

fn cased(digits: String, upper: bool) -> String {
    if upper { digits.to_ascii_uppercase() } else { digits }
}

fn hex(bytes: &[u8], upper: bool) -> String {
    cased(bytes.iter().map(|b| format!("{b:02x}")).collect(), upper)
}

/// A string may be the name of a number that has no digits.
fn double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(d) => Some(*d),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn without_digits(d: f64) -> Option<&'static str> {
    if d.is_nan() {
        Some("NaN")
    } else if d.is_infinite() {
        Some(if d > 0.0 { "∞" } else { "-∞" })
    } else {
        None
    }
}

/// Thousands are separated by commas.
fn fixed(d: f64, precision: usize) -> String {
    if let Some(text) = without_digits(d) {
        return text.to_owned();
    }
    if precision > MAX_PRECISION {
        return "%!(BADPREC)".to_owned();
    }
    let digits = digits_of(d.abs(), precision);
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let mut out = if d.is_sign_negative() { "-".to_owned() } else { String::new() };
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    if precision > 0 {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// The standard library prints at most this many digits after the point; all others are zero.
fn digits_of(d: f64, precision: usize) -> String {
    let exact = precision.min(1100);
    let mut out = format!("{d:.exact$}");
    out.extend(std::iter::repeat_n('0', precision - exact));
    out
}

/// Six digits and a power of ten; the precision is only a width.
fn scientific(d: f64, width: usize) -> String {
    let text = match without_digits(d) {
        Some(text) => text.to_owned(),
        None => {
            let printed = format!("{d:.6e}");
            let (digits, exponent) = printed.split_once('e').unwrap_or((&printed, "0"));
            let sign = if exponent.starts_with('-') { "⁻" } else { "" };
            let exponent = format!("{:0>2}", exponent.trim_start_matches('-'));
            let superscript = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
            let exponent = exponent.chars().filter_map(|c| c.to_digit(10)).map(|d| superscript[d as usize]);
            format!("{digits}×10{sign}{}", exponent.collect::<String>())
        }
    };
    let width = width.min(MAX_PRECISION);
    let missing = width.saturating_sub(text.chars().count());
    " ".repeat(missing) + &text
}
