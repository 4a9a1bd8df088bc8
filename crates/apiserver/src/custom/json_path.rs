//! JSON paths of printer columns: `.spec.size`, `.status.conditions[?(@.type=="Ready")].status`.

use serde_json::Value;
use thiserror::Error;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JsonPath(Vec<Step>);

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    /// Counted from the end if negative.
    Index(i64),
    /// Every element or member.
    All,
    /// Elements whose value at the path satisfies the comparison; without a comparison, elements that have the path.
    Filter(Vec<Step>, Option<(Comparison, Value)>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Equal,
    Different,
    Less,
    Greater,
}

/// The error of a malformed path.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum PathError {
    #[error("must start with a dot")]
    NoDot,
    #[error("unterminated {0:?}")]
    Unterminated(char),
    #[error("unexpected {0:?}")]
    Unexpected(String),
}

impl JsonPath {
    pub(crate) fn parse(text: &str) -> Result<Self, PathError> {
        if !text.starts_with(['.', '[']) {
            return Err(PathError::NoDot);
        }
        steps(text).map(Self)
    }

    /// Returns the values that match the path, in document order.
    pub(crate) fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        follow(&self.0, value)
    }
}

/// Converts a path of field names to a JSON pointer; `None` if it is malformed or has other steps.
pub(crate) fn pointer(text: &str) -> Option<String> {
    let JsonPath(steps) = JsonPath::parse(text).ok()?;
    let fields: Option<Vec<String>> = steps
        .iter()
        .map(|step| match step {
            Step::Field(name) => Some(format!("/{}", name.replace('~', "~0").replace('/', "~1"))),
            _ => None,
        })
        .collect();
    fields.filter(|f| !f.is_empty()).map(|f| f.concat())
}

fn steps(text: &str) -> Result<Vec<Step>, PathError> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = if let Some(after) = rest.strip_prefix('[') {
            let (inside, after) = bracketed(after)?;
            steps.push(bracket(inside)?);
            after
        } else if let Some(after) = rest.strip_prefix('.') {
            let (name, after) = field(after);
            match name.as_str() {
                "" if after.starts_with('[') => {}
                "" if after.is_empty() && steps.is_empty() => {}
                "" => return Err(PathError::Unexpected(after.to_owned())),
                "*" => steps.push(Step::All),
                _ => steps.push(Step::Field(name)),
            }
            after
        } else {
            return Err(PathError::Unexpected(rest.to_owned()));
        };
    }
    Ok(steps)
}

/// Splits off a name up to the next dot or bracket. A backslash escapes the next character.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '.' | '[' => return (name, &text[at..]),
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            c => name.push(c),
        }
    }
    (name, "")
}

/// Splits at the closing bracket. Brackets inside quotes do not count.
fn bracketed(text: &str) -> Result<(&str, &str), PathError> {
    let (mut quote, mut depth) = (None, 0usize);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth > 0 => depth -= 1,
            (None, ']') => return Ok((&text[..at], &text[at + 1..])),
            _ => {}
        }
    }
    Err(PathError::Unterminated('['))
}

fn bracket(inside: &str) -> Result<Step, PathError> {
    let inside = inside.trim();
    let unexpected = || PathError::Unexpected(inside.to_owned());
    if inside == "*" {
        return Ok(Step::All);
    }
    if let Some(name) = quoted(inside) {
        return Ok(Step::Field(name.to_owned()));
    }
    if let Some(filter) = inside.strip_prefix("?(").and_then(|f| f.strip_suffix(')')) {
        return parse_filter(filter);
    }
    inside.parse().map(Step::Index).map_err(|_| unexpected())
}

fn quoted(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|q| text.strip_prefix(q)?.strip_suffix(q))
}

fn parse_filter(filter: &str) -> Result<Step, PathError> {
    const COMPARISONS: [(&str, Comparison); 4] = [
        ("==", Comparison::Equal),
        ("!=", Comparison::Different),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];
    let found =
        COMPARISONS.iter().filter_map(|(word, c)| Some((filter.find(word)?, word, c))).min_by_key(|f| f.0);
    let path_of = |text: &str| match text.trim().strip_prefix('@') {
        Some(path) => steps(path),
        None => Err(PathError::Unexpected(text.to_owned())),
    };
    match found {
        None => Ok(Step::Filter(path_of(filter)?, None)),
        Some((at, word, comparison)) => {
            let literal = filter[at + word.len()..].trim();
            let value = match quoted(literal) {
                Some(text) => Value::from(text),
                None => {
                    serde_json::from_str(literal).map_err(|_| PathError::Unexpected(literal.to_owned()))?
                }
            };
            Ok(Step::Filter(path_of(&filter[..at])?, Some((*comparison, value))))
        }
    }
}

fn follow<'v>(steps: &[Step], value: &'v Value) -> Vec<&'v Value> {
    steps.iter().fold(vec![value], |found, step| found.into_iter().flat_map(|v| take(step, v)).collect())
}

fn take<'v>(step: &Step, value: &'v Value) -> Vec<&'v Value> {
    match (step, value) {
        (Step::Field(name), Value::Object(fields)) => fields.get(name).into_iter().collect(),
        (Step::All, Value::Object(fields)) => fields.values().collect(),
        (Step::All, Value::Array(items)) => items.iter().collect(),
        (Step::Index(at), Value::Array(items)) => {
            let at = if *at < 0 { items.len() as i64 + at } else { *at };
            usize::try_from(at).ok().and_then(|at| items.get(at)).into_iter().collect()
        }
        (Step::Filter(path, comparison), Value::Array(items)) => {
            items.iter().filter(|item| holds(path, comparison.as_ref(), item)).collect()
        }
        _ => Vec::new(),
    }
}

fn holds(path: &[Step], comparison: Option<&(Comparison, Value)>, item: &Value) -> bool {
    let Some(found) = follow(path, item).into_iter().next() else { return false };
    let numbers = |b: &Value| Some((found.as_f64()?, b.as_f64()?));
    match comparison {
        None => true,
        Some((Comparison::Equal, value)) => found == value,
        Some((Comparison::Different, value)) => found != value,
        Some((Comparison::Less, value)) => numbers(value).is_some_and(|(a, b)| a < b),
        Some((Comparison::Greater, value)) => numbers(value).is_some_and(|(a, b)| a > b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_match_values() {
        let value = json!({"metadata": {"annotations": {"a.b/c": "x"}}, "spec": {"list": [{"n": 1}, {"n": 2}]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]}});
        for (path, found) in [
            (".spec.list[0].n", json!([1])),
            (".spec.list[-1].n", json!([2])),
            (".spec.list[*].n", json!([1, 2])),
            (".spec.list[?(@.n>1)].n", json!([2])),
            (r".metadata.annotations.a\.b/c", json!(["x"])),
            (".metadata.annotations['a.b/c']", json!(["x"])),
            (r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"])),
            (".status.conditions[?(@.type=='Other')].status", json!(["False"])),
            (".status.conditions[?(@.missing)].status", json!([])),
            (".nowhere.at.all", json!([])),
        ] {
            let parsed = JsonPath::parse(path).unwrap_or_else(|e| panic!("{path}: {e}"));
            assert_eq!(json!(parsed.find(&value)), found, "{path}");
        }
    }

    #[test]
    fn malformed_paths_are_rejected() {
        for bad in ["", "spec", ".a[", ".a[b]", ".a..b", ".a[?(x)]", ".a[0:2]"] {
            assert!(JsonPath::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn paths_of_names_convert_to_pointers() {
        assert_eq!(pointer(".spec.size").as_deref(), Some("/spec/size"));
        assert_eq!(pointer(r".a.b/c\.d").as_deref(), Some("/a/b~1c.d"));
        assert_eq!(pointer(".a[0]"), None);
        assert_eq!(pointer("."), None);
    }
}
