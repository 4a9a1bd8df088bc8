//! Attributes that decide whether code is compiled outside of tests.

use syn::{Attribute, Meta, Token, punctuated::Punctuated};

/// Returns whether the attributes mark a test, or code that is compiled only for tests or only for other systems.
pub fn is_excluded(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        if path.is_ident("cfg") {
            return attribute.parse_args::<Meta>().ok().and_then(|meta| holds(&meta)) == Some(false);
        }
        path.segments.last().is_some_and(|segment| segment.ident == "test")
    })
}

/// Evaluates a predicate of `cfg` for a build without tests on this system. Returns `None` if that is not known here.
fn holds(predicate: &Meta) -> Option<bool> {
    let Meta::List(list) = predicate else {
        return match predicate.path().get_ident()?.to_string().as_str() {
            "test" => Some(false),
            "unix" => Some(cfg!(unix)),
            "windows" => Some(cfg!(windows)),
            _ => None,
        };
    };
    let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).ok()?;
    let parts: Vec<Option<bool>> = parts.iter().map(holds).collect();
    let (decides, otherwise) = match list.path.get_ident()?.to_string().as_str() {
        "not" => return parts.first()?.map(|value| !value),
        "all" => (false, true),
        "any" => (true, false),
        _ => return None,
    };
    if parts.contains(&Some(decides)) {
        Some(decides)
    } else if parts.contains(&None) {
        None
    } else {
        Some(otherwise)
    }
}
