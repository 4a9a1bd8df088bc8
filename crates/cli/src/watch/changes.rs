//! Differences between two versions of an object, field by field.

use serde_json::{Map, Value};
use std::{collections::BTreeSet, fmt};

/// A field that differs. `None` is a missing field.
#[derive(Debug, PartialEq)]
pub(crate) struct Change<'a> {
    pub(crate) path: Path,
    pub(crate) from: Option<&'a Value>,
    pub(crate) to: Option<&'a Value>,
}

/// Path of a field: field names, and elements of lists by name or position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(String),
    Element(String),
}

impl Path {
    fn field(&self, name: &str) -> Self {
        self.then(Step::Field(name.to_owned()))
    }

    fn element(&self, name: String) -> Self {
        self.then(Step::Element(name))
    }

    fn then(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    /// The names of fields from the object down, up to the first list.
    pub(crate) fn fields(&self) -> Vec<&str> {
        let field = |step: &'_ Step| matches!(step, Step::Field(_));
        self.0.iter().take_while(|step| field(step)).map(Step::name).collect()
    }
}

impl Step {
    fn name(&self) -> &str {
        match self {
            Self::Field(name) | Self::Element(name) => name,
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if name.contains(['.', '/']) => write!(f, "[{name}]")?,
                Step::Field(name) if i == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Element(name) => write!(f, "[{name}]")?,
            }
        }
        Ok(())
    }
}

/// Fields that change with every write and are not shown.
const NOISE: [&[&str]; 2] = [&["metadata", "resourceVersion"], &["metadata", "managedFields"]];

/// Returns all fields that differ, sorted by name.
pub(crate) fn changes<'a>(old: &'a Value, new: &'a Value) -> Vec<Change<'a>> {
    let mut found = Vec::new();
    compare(&Path::default(), Some(old), Some(new), &mut found);
    found.retain(|change| !NOISE.contains(&change.path.fields().as_slice()));
    found
}

fn compare<'a>(path: &Path, from: Option<&'a Value>, to: Option<&'a Value>, found: &mut Vec<Change<'a>>) {
    match (from, to) {
        (from, to) if from == to => {}
        (Some(Value::Object(from)), Some(Value::Object(to))) => {
            for name in from.keys().chain(to.keys()).collect::<BTreeSet<_>>() {
                compare(&path.field(name), from.get(name), to.get(name), found);
            }
        }
        (Some(Value::Array(from)), Some(Value::Array(to))) => compare_lists(path, from, to, found),
        _ => found.push(Change { path: path.clone(), from, to }),
    }
}

/// Compares elements with unique names by name, others by position.
fn compare_lists<'a>(path: &Path, from: &'a [Value], to: &'a [Value], found: &mut Vec<Change<'a>>) {
    match (named(from), named(to)) {
        (Some(from), Some(to)) => {
            let names: BTreeSet<&str> = from.iter().chain(&to).map(|(name, _)| *name).collect();
            for name in names {
                compare(&path.element(name.to_owned()), element(&from, name), element(&to, name), found);
            }
        }
        _ => {
            for i in 0..from.len().max(to.len()) {
                compare(&path.element(i.to_string()), from.get(i), to.get(i), found);
            }
        }
    }
}

type Named<'a> = Vec<(&'a str, &'a Value)>;

fn element<'a>(list: &Named<'a>, name: &str) -> Option<&'a Value> {
    list.iter().find(|(candidate, _)| *candidate == name).map(|(_, value)| *value)
}

/// The elements with their names, if each has a unique one (a list map in the API conventions).
fn named(list: &[Value]) -> Option<Named<'_>> {
    let key =
        ["name", "type", "uid", "ip"].into_iter().find(|key| list.iter().all(|e| e[key].is_string()))?;
    let named: Named<'_> =
        list.iter().map(|element| (element[key].as_str().unwrap_or_default(), element)).collect();
    let distinct: BTreeSet<&str> = named.iter().map(|(name, _)| *name).collect();
    (distinct.len() == named.len()).then_some(named)
}

/// A short form of a value.
pub(crate) fn brief(value: Option<&Value>) -> String {
    match value {
        None => "(none)".to_owned(),
        Some(Value::Object(map)) if map.len() > 3 => format!("{{{}, …}}", keys(map)),
        Some(value) => shortened(&value.to_string()),
    }
}

fn keys(map: &Map<String, Value>) -> String {
    map.keys().take(3).cloned().collect::<Vec<_>>().join(", ")
}

const LONGEST: usize = 60;

fn shortened(text: &str) -> String {
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(old: &Value, new: &Value) -> Vec<String> {
        let line = |c: Change<'_>| format!("{}: {} → {}", c.path, brief(c.from), brief(c.to));
        changes(old, new).into_iter().map(line).collect()
    }

    #[test]
    fn changed_fields_are_listed_with_both_values() {
        let old = json!({"metadata": {"resourceVersion": "1", "labels": {"a/b": "x"}}, "spec": {"replicas": 3, "gone": true}});
        let new = json!({"metadata": {"resourceVersion": "2", "labels": {"a/b": "y"}}, "spec": {"replicas": 5, "new": [1]}});
        let expected = [
            "metadata.labels[a/b]: x → y",
            "spec.gone: true → (none)",
            "spec.new: (none) → [1]",
            "spec.replicas: 3 → 5",
        ];
        assert_eq!(lines(&old, &new), expected);
    }

    #[test]
    fn list_elements_are_compared_by_name_if_they_have_one() {
        let ready = |status: &str| json!({"type": "Ready", "status": status});
        let old =
            json!({"status": {"conditions": [{"type": "Initialized", "status": "True"}, ready("False")]}});
        let new =
            json!({"status": {"conditions": [ready("True"), {"type": "Initialized", "status": "True"}]}});
        assert_eq!(lines(&old, &new), ["status.conditions[Ready].status: False → True"]);
        assert_eq!(
            lines(&json!({"a": [1, 2]}), &json!({"a": [1, 3, 4]})),
            ["a[1]: 2 → 3", "a[2]: (none) → 4"]
        );
        let twice = json!({"a": [{"name": "x", "v": 1}, {"name": "x", "v": 2}]});
        assert_eq!(
            lines(&twice, &json!({"a": [{"name": "x", "v": 1}]})),
            ["a[1]: {\"name\":\"x\",\"v\":2} → (none)"]
        );
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let long = Value::from("ä".repeat(200));
        assert_eq!(brief(Some(&long)), format!("{}…", "ä".repeat(LONGEST)));
    }

    #[test]
    fn equal_states_have_no_changes() {
        let object = json!({"a": {"b": [1, {"name": "c"}]}});
        assert!(changes(&object, &object).is_empty());
    }
}
