//! The functions of the environment, one file for each library.

mod convert;
mod format;
mod lists;
mod named_format;
mod net;
mod operators;
mod optional;
mod quantity;
mod regex;
mod semver;
mod sets;
mod strings;
mod times;
mod url;

use crate::meter::Meter;
use crate::value::{Eval, Failure, Value, error};

pub(crate) use convert::is_conversion;
pub(crate) use format::{Clause, Formatting, format as format_text};
pub(crate) use named_format::NamedFormat;
pub(crate) use net::Cidr;
pub(crate) use quantity::Quantity;
pub(crate) use regex::pattern_argument;
pub(crate) use semver::Semver;
pub(crate) use url::Url;

/// The implementation of a function: the meter, the id of the overload if it is known, the receiver and the arguments.
pub(crate) type Native = for<'a> fn(&mut Meter, &str, &[Value<'a>]) -> Eval<'a>;

/// Returns the implementation of a function.
pub(crate) fn native(function: &str) -> Option<Native> {
    operators::native(function)
        .or_else(|| convert::native(function))
        .or_else(|| strings::native(function))
        .or_else(|| lists::native(function))
        .or_else(|| sets::native(function))
        .or_else(|| times::native(function))
        .or_else(|| optional::native(function))
        .or_else(|| regex::native(function))
        .or_else(|| url::native(function))
        .or_else(|| net::native(function))
        .or_else(|| quantity::native(function))
        .or_else(|| semver::native(function))
        .or_else(|| named_format::native(function))
        .or_else(|| (function == "format").then_some(format::format_function as Native))
}

/// The error of a call whose arguments have other types than any overload.
fn no_overload<'a, T>(function: &str, args: &[Value<'a>]) -> Result<T, Failure> {
    let types: Vec<&str> = args.iter().map(Value::type_name).collect();
    error(format!("no such overload: {function}({})", types.join(", ")))
}
