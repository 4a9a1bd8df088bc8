//! JSON and YAML parsers that report duplicate fields.

use std::fmt::{self, Write};
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::Spanned;
use serde_saphyr::options::DuplicateKeyPolicy;

/// A parsed body.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) value: Value,
    /// Duplicate fields; the last value is used.
    pub(crate) duplicates: Vec<Duplicate>,
}

/// A duplicate field, as kube-apiserver reports it: its path in JSON, its line in YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Duplicate {
    Path(String),
    Line { line: u64, key: String },
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "duplicate field {path:?}"),
            Self::Line { line, key } => write!(f, "line {line}: key {key:?} already set in map"),
        }
    }
}

/// The name of a field, with its line if the format has one.
trait FieldName: for<'de> Deserialize<'de> {
    fn into_parts(self) -> (String, Option<u64>);
}

impl FieldName for String {
    fn into_parts(self) -> (String, Option<u64>) {
        (self, None)
    }
}

impl FieldName for Spanned<String> {
    fn into_parts(self) -> (String, Option<u64>) {
        (self.value, Some(self.referenced.line()))
    }
}

/// Parses one JSON value; fails if anything follows it.
pub(crate) fn parse_json(text: &[u8]) -> Result<Parsed, serde_json::Error> {
    let parsed = parse_json_with(text, None)?;
    // Paths take time and are needed only if a field occurs twice, which is rare.
    if parsed.duplicates.is_empty() { Ok(parsed) } else { parse_json_with(text, Some(String::new())) }
}

fn parse_json_with(text: &[u8], path: Option<String>) -> Result<Parsed, serde_json::Error> {
    let mut state = State { path, duplicates: Vec::new() };
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = Node::<String>(&mut state, PhantomData).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(Parsed { value, duplicates: state.duplicates })
}

/// Parses one YAML document.
pub(crate) fn parse_yaml(text: &[u8]) -> Result<Parsed, String> {
    let text = std::str::from_utf8(text).map_err(|e| e.to_string())?;
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    let parsed: Result<Document<Spanned<String>>, _> = serde_saphyr::from_str_with_options(text, options);
    parsed.map(|Document(parsed, _)| parsed).map_err(|e| e.to_string())
}

/// A document of a format whose field names are of this type.
struct Document<K>(Parsed, PhantomData<K>);

impl<'de, K: FieldName> Deserialize<'de> for Document<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut state = State::default();
        let value = Node::<K>(&mut state, PhantomData).deserialize(deserializer)?;
        Ok(Self(Parsed { value, duplicates: state.duplicates }, PhantomData))
    }
}

#[derive(Default)]
struct State {
    /// The path of the current value, as `a.b[3]`, if it is wanted.
    path: Option<String>,
    duplicates: Vec<Duplicate>,
}

impl State {
    /// Returns the length of the path, to return to.
    fn mark(&self) -> usize {
        self.path.as_ref().map_or(0, String::len)
    }

    fn enter_field(&mut self, name: &str) {
        if let Some(path) = &mut self.path {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(name);
        }
    }

    fn enter_element(&mut self, index: usize) {
        if let Some(path) = &mut self.path {
            write!(path, "[{index}]").expect("writing into memory");
        }
    }

    fn leave(&mut self, mark: usize) {
        if let Some(path) = &mut self.path {
            path.truncate(mark);
        }
    }

    /// Reports the current field. Fails if there were too many.
    fn duplicate(&mut self, key: &str, line: Option<u64>) -> Result<(), &'static str> {
        if self.duplicates.len() >= MAX_REPORTED {
            return Err("too many duplicate fields");
        }
        self.duplicates.push(match line {
            Some(line) => Duplicate::Line { line, key: key.to_owned() },
            None => Duplicate::Path(self.path.clone().unwrap_or_default()),
        });
        Ok(())
    }
}

struct Node<'s, K>(&'s mut State, PhantomData<K>);

impl<'de, K: FieldName> DeserializeSeed<'de> for Node<'_, K> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, K: FieldName> Visitor<'de> for Node<'_, K> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E: serde::de::Error>(self, v: f64) -> Result<Value, E> {
        Number::from_f64(v).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::String(v.to_owned()))
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(Value::String(v))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        let mark = self.0.mark();
        loop {
            self.0.enter_element(items.len());
            let item = seq.next_element_seed(Node::<K>(self.0, PhantomData))?;
            self.0.leave(mark);
            match item {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        let mark = self.0.mark();
        while let Some(name) = entries.next_key::<K>()? {
            let (key, line) = name.into_parts();
            self.0.enter_field(&key);
            if map.contains_key(&key) {
                self.0.duplicate(&key, line).map_err(A::Error::custom)?;
            }
            let value = entries.next_value_seed(Node::<K>(self.0, PhantomData))?;
            self.0.leave(mark);
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// The most duplicates reported, to bound the number of warnings.
const MAX_REPORTED: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_fields_are_reported_and_the_last_wins() {
        let parsed = parse_json(br#"{"a":{"k":1,"k":2},"l":[{"x":1},{"x":1,"x":3}]}"#).unwrap();
        let texts = |parsed: &Parsed| parsed.duplicates.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(parsed.value["a"]["k"], 2);
        assert_eq!(texts(&parsed), ["duplicate field \"a.k\"", "duplicate field \"l[1].x\""]);
        let parsed = parse_yaml(b"a:\n  k: 1\n  k: 2\nl:\n- x: 1\n- {x: 1, x: 3}\n").unwrap();
        assert_eq!(parsed.value["a"]["k"], 2);
        let lines = ["line 3: key \"k\" already set in map", "line 6: key \"x\" already set in map"];
        assert_eq!(texts(&parsed), lines);
    }

    #[test]
    fn garbage_after_the_value_and_deep_nesting_are_errors() {
        assert!(parse_json(b"{} x").is_err());
        assert!(parse_json(b"").is_err());
        assert!(parse_json("[".repeat(100_000).as_bytes()).is_err());
    }
}
