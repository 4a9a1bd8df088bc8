//! Paths to fields of objects.

use std::{fmt, str::FromStr};

/// The path of a field: `spec.nodeName`, `metadata.annotations[example.com/team]`, `spec.containers[*].image`,
/// `status.conditions[0].type`.
///
/// 1. Names are separated by dots. Brackets contain an index of an array, `*` for all its elements, or a name with dots or
///    slashes. A name that looks like an index or `*` is quoted: `data['0']`.
/// 2. `Display` writes the shortest form, which parses as the same path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath {
    steps: Vec<FieldStep>,
}

/// One step of a [`FieldPath`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FieldStep {
    /// The field of an object.
    Name(String),
    /// One element of an array.
    Index(usize),
    /// Every element of an array.
    Every,
}

/// A string that is not a field path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{path:?} is not a field path: {reason}; write it like spec.nodeName or metadata.annotations[example.com/x]"
)]
pub struct FieldPathError {
    path: String,
    reason: &'static str,
}

/// Maximum number of steps; objects are not nested deeper.
const MAX_STEPS: usize = 128;

impl FieldPath {
    /// The path of a top-level field with any name.
    pub fn field(name: &str) -> Self {
        Self::of([name])
    }

    /// The path of a field inside fields, with any names.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self { steps: names.into_iter().map(|name| FieldStep::Name(name.to_owned())).collect() }
    }

    pub(crate) fn of_steps(steps: Vec<FieldStep>) -> Self {
        Self { steps }
    }

    /// The steps from the object to the field; at least one.
    pub fn steps(&self) -> &[FieldStep] {
        &self.steps
    }

    /// Whether both are the same field, or one contains the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.steps.iter().zip(&other.steps).all(|(a, b)| a.overlaps(b))
    }
}

impl FieldStep {
    fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Every, Self::Index(_)) | (Self::Index(_), Self::Every) => true,
            (a, b) => a == b,
        }
    }

    /// The step for the content of brackets.
    fn bracketed(inside: &str) -> Self {
        let index = if inside.bytes().all(|byte| byte.is_ascii_digit()) { inside.parse().ok() } else { None };
        match index {
            Some(index) => Self::Index(index),
            None if inside == "*" => Self::Every,
            None => Self::Name(inside.to_owned()),
        }
    }
}

impl FromStr for FieldPath {
    type Err = FieldPathError;

    fn from_str(text: &str) -> Result<Self, FieldPathError> {
        steps(text)
            .map(|steps| Self { steps })
            .map_err(|reason| FieldPathError { path: text.to_owned(), reason })
    }
}

fn steps(text: &str) -> Result<Vec<FieldStep>, &'static str> {
    let mut steps = Vec::new();
    // kubectl and others write a leading dot.
    let mut rest = text.strip_prefix('.').unwrap_or(text);
    let mut name_next = !rest.starts_with('[');
    while name_next || !rest.is_empty() {
        if name_next {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let name = &rest[..end];
            if name.is_empty() || name.contains(']') {
                return Err("a name is missing");
            }
            steps.push(FieldStep::Name(name.to_owned()));
            rest = &rest[end..];
        } else {
            let (step, after) = bracket(rest.strip_prefix('[').ok_or("a dot or a bracket is missing")?)?;
            steps.push(step);
            rest = after;
        }
        name_next = rest.starts_with('.');
        rest = rest.strip_prefix('.').unwrap_or(rest);
    }
    if steps.len() > MAX_STEPS { Err("it is too long") } else { Ok(steps) }
}

/// The step in brackets and the rest of the text; `rest` starts after the opening bracket.
fn bracket(rest: &str) -> Result<(FieldStep, &str), &'static str> {
    for (quote, close) in [('\'', "']"), ('"', "\"]")] {
        if let Some(quoted) = rest.strip_prefix(quote) {
            let (name, after) = quoted.split_once(close).ok_or("a quote or a bracket is not closed")?;
            return Ok((FieldStep::Name(name.to_owned()), after));
        }
    }
    let (inside, after) = rest.split_once(']').ok_or("a bracket is not closed")?;
    if inside.is_empty() { Err("brackets are empty") } else { Ok((FieldStep::bracketed(inside), after)) }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.steps.iter().enumerate() {
            match step {
                FieldStep::Every => f.write_str("[*]")?,
                FieldStep::Index(index) => write!(f, "[{index}]")?,
                FieldStep::Name(name) if !name.is_empty() && !name.contains(['.', '[', ']']) => {
                    f.write_str(if position == 0 { "" } else { "." })?;
                    f.write_str(name)?;
                }
                FieldStep::Name(name) if name.contains("']") => write!(f, "[\"{name}\"]")?,
                FieldStep::Name(name)
                    if name.is_empty() || name.contains(']') || name.starts_with(['\'', '"']) =>
                {
                    write!(f, "['{name}']")?;
                }
                FieldStep::Name(name) => write!(f, "[{name}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(text: &str) -> FieldPath {
        text.parse().unwrap()
    }

    fn name(name: &str) -> FieldStep {
        FieldStep::Name(name.into())
    }

    #[test]
    fn every_form() {
        for (text, steps) in [
            ("spec", vec![name("spec")]),
            (".spec.nodeName", vec![name("spec"), name("nodeName")]),
            (
                "metadata.annotations[example.com/x]",
                vec![name("metadata"), name("annotations"), name("example.com/x")],
            ),
            (
                "a[*].b[0][12]",
                vec![name("a"), FieldStep::Every, name("b"), FieldStep::Index(0), FieldStep::Index(12)],
            ),
            ("data['0'][\"*\"]", vec![name("data"), name("0"), name("*")]),
            ("data.0", vec![name("data"), name("0")]),
            ("[a.b].c", vec![name("a.b"), name("c")]),
            ("a[+5]", vec![name("a"), name("+5")]),
            ("a['x]y']", vec![name("a"), name("x]y")]),
        ] {
            assert_eq!(path(text).steps(), steps, "{text}");
        }
    }

    #[test]
    fn malformed_paths() {
        for text in
            ["", ".", "a.", "a..b", "..a", "a[", "a[]", "a[b", "a['b", "a['b]", "a]", "a[b]c", "a.[b]"]
        {
            let error = text.parse::<FieldPath>().unwrap_err();
            assert!(error.to_string().contains("write it like"), "{text}");
        }
        assert!(vec!["a"; MAX_STEPS].join(".").parse::<FieldPath>().is_ok());
        assert!(vec!["a"; MAX_STEPS + 1].join(".").parse::<FieldPath>().is_err());
    }

    #[test]
    fn overlap_is_containment_either_way() {
        for (a, b, overlap) in [
            ("spec", "spec.nodeName", true),
            ("spec.nodeName", "spec", true),
            ("spec.nodeName", "spec.nodeName", true),
            ("spec.node", "spec.nodeName", false),
            ("a[*].b", "a[3]", true),
            ("a[2]", "a[3]", false),
            ("a.b", "a[*]", false),
        ] {
            assert_eq!(path(a).overlaps(&path(b)), overlap, "{a} {b}");
        }
    }

    proptest! {
        #[test]
        fn text_and_back(steps in prop::collection::vec(prop_oneof![
            r#"[a-z0-9.*'/"-]{0,6}"#.prop_map(FieldStep::Name),
            r"[a-z\[\].]{0,6}".prop_map(FieldStep::Name),
            (0..20usize).prop_map(FieldStep::Index),
            Just(FieldStep::Every),
        ], 1..6)) {
            let path = FieldPath { steps };
            prop_assert_eq!(path.to_string().parse::<FieldPath>(), Ok(path.clone()), "{}", path);
        }

        #[test]
        fn no_text_makes_it_panic(text in r#"[a.\[\]'"*0]{0,12}"#) {
            let _ = text.parse::<FieldPath>();
        }
    }
}
