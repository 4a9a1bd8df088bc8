//! Parses `types.txt`, whose notation is explained at its top, into [`Types`].

use std::collections::HashMap;
use std::sync::LazyLock;

/// All types of the table.
#[derive(Debug)]
pub struct Types {
    /// Every type once; the maps contain indexes into this list.
    all: Vec<Type>,
    /// The types of kinds, by (group, version, kind).
    by_kind: HashMap<(&'static str, &'static str, &'static str), usize>,
    by_name: HashMap<&'static str, usize>,
}

/// One object type.
#[derive(Debug)]
pub struct Type {
    /// Its name in the table, such as `core.v1.PodSpec`.
    pub name: &'static str,
    /// Whether server-side apply and strategic merge replace it as a whole.
    pub atomic: bool,
    /// Sorted by name.
    fields: Vec<Field>,
}

/// One field of a type.
#[derive(Debug)]
pub struct Field {
    /// Its name in JSON.
    pub name: &'static str,
    /// The type of its value.
    pub shape: Shape,
    /// Whether the OpenAPI document calls it required.
    pub required: bool,
    /// The meaning of its zero value in JSON.
    pub zero: Zero,
}

/// The meaning of the zero value of a field: `false`, 0, empty text, an empty list or map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zero {
    /// It is distinct from an absent value.
    Distinct,
    /// It is distinct from an absent value, which is written as null.
    Null,
    /// It is omitted.
    Omitted,
    /// It is always written, even if the client sent none.
    Written,
}

/// The JSON type of a field.
#[derive(Debug)]
pub enum Shape {
    /// Text.
    String,
    /// One of these strings. Validation rejects others, decoding does not.
    Enum(Vec<&'static str>),
    /// An integer of 32 bits.
    Int32,
    /// An integer of 64 bits.
    Int64,
    /// A floating point number.
    Number,
    /// True or false.
    Bool,
    /// Base64 text.
    Bytes,
    /// With seconds.
    Time,
    /// With microseconds.
    MicroTime,
    /// A quantity such as `100m`.
    Quantity,
    /// A number or text.
    IntOrString,
    /// Any value.
    Any,
    /// The named type if the value is an object, otherwise any value.
    ObjectOrAny(&'static str),
    /// An object of the named type.
    Struct(&'static str, Merge),
    /// An object with any keys.
    Map(Box<Shape>),
    /// A list.
    List(Box<Shape>, ListKind, Merge),
}

/// The `x-kubernetes-list-type` of a list, for server-side apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListKind {
    /// It is replaced as a whole.
    #[default]
    Atomic,
    /// Its elements are distinct values.
    Set,
    /// These fields identify its elements.
    Map(Vec<String>),
}

/// The strategic merge patch rules of a list or object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Merge {
    /// Elements are merged; otherwise the patch replaces the list as a whole.
    pub merge: bool,
    /// The patch may name the keys to keep (`$retainKeys`).
    pub retain_keys: bool,
    /// The patch replaces the value, even an object.
    pub replace: bool,
    /// The field that identifies list elements; without it elements are compared as plain values.
    pub key: Option<&'static str>,
}

impl Types {
    /// Returns the type of a kind.
    pub fn kind(&self, group: &str, version: &str, kind: &str) -> Option<&Type> {
        self.by_kind.get(&(group, version, kind)).map(|i| &self.all[*i])
    }

    /// All kinds: group, version and kind, in this order.
    pub fn kinds(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let mut kinds: Vec<_> = self.by_kind.keys().copied().collect();
        kinds.sort_unstable();
        kinds
    }

    /// Returns the type of a name. A test checks that all references in the table resolve.
    pub fn named(&self, name: &str) -> Option<&Type> {
        self.by_name.get(name).map(|i| &self.all[*i])
    }
}

impl Type {
    /// The fields, sorted by name.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field of a name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.binary_search_by(|f| f.name.cmp(name)).ok().map(|i| &self.fields[i])
    }
}

/// Returns the table, which is parsed on first use (about a millisecond).
pub fn types() -> &'static Types {
    static TYPES: LazyLock<Types> = LazyLock::new(|| parse(include_str!("types.txt")));
    &TYPES
}

fn parse(text: &'static str) -> Types {
    let mut types = Types { all: Vec::new(), by_kind: HashMap::new(), by_name: HashMap::new() };
    for line in text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        if let Some(field) = line.strip_prefix(' ') {
            let (name, shape) = field.split_once(' ').unwrap_or((field, "*"));
            let (shape, zero) = match shape.as_bytes().last() {
                Some(b'?') => (&shape[..shape.len() - 1], Zero::Distinct),
                Some(b'=') => (&shape[..shape.len() - 1], Zero::Null),
                Some(b'+') => (&shape[..shape.len() - 1], Zero::Written),
                _ => (shape, Zero::Omitted),
            };
            let (shape, required) = match shape.strip_suffix('!') {
                Some(shape) => (shape, true),
                None => (shape, false),
            };
            if let Some(owner) = types.all.last_mut() {
                owner.fields.push(Field { name, shape: ShapeParser(shape).shape(), required, zero });
            }
            continue;
        }
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let index = types.all.len();
        let mut atomic = false;
        for word in words {
            if word == "atomic" {
                atomic = true;
            } else if let Some([g, v, k]) = word.strip_prefix("kind=").map(split3) {
                types.by_kind.insert((g, v, k), index);
            }
        }
        types.by_name.insert(name, index);
        types.all.push(Type { name, atomic, fields: Vec::new() });
    }
    types
}

fn split3(gvk: &'static str) -> [&'static str; 3] {
    let mut parts = gvk.splitn(3, '/');
    [(); 3].map(|()| parts.next().unwrap_or_default())
}

/// A cursor over the notation of one shape.
struct ShapeParser(&'static str);

impl ShapeParser {
    fn shape(&mut self) -> Shape {
        let first = self.0.as_bytes().first().copied().unwrap_or(b'*');
        self.0 = self.0.get(1..).unwrap_or_default();
        match first {
            b's' => self.parenthesized('|').map_or(Shape::String, Shape::Enum),
            b'i' => Shape::Int32,
            b'l' => Shape::Int64,
            b'n' => Shape::Number,
            b'b' => Shape::Bool,
            b'y' => Shape::Bytes,
            b't' => Shape::Time,
            b'u' => Shape::MicroTime,
            b'q' => Shape::Quantity,
            b'x' => Shape::IntOrString,
            b'?' => Shape::ObjectOrAny(self.until(&['~', ']', '}'])),
            b'@' => {
                let name = self.until(&['~', ']', '}']);
                Shape::Struct(name, self.merge())
            }
            b'{' => {
                let inner = self.shape();
                self.skip('}');
                self.list_kind();
                self.merge();
                Shape::Map(Box::new(inner))
            }
            b'[' => {
                let inner = self.shape();
                self.skip(']');
                let kind = self.list_kind();
                Shape::List(Box::new(inner), kind, self.merge())
            }
            _ => Shape::Any,
        }
    }

    fn list_kind(&mut self) -> ListKind {
        if self.skip('s') {
            ListKind::Set
        } else if self.skip('m') {
            let keys = self.parenthesized(',').unwrap_or_default();
            ListKind::Map(keys.into_iter().map(str::to_owned).collect())
        } else {
            self.skip('a');
            ListKind::Atomic
        }
    }

    fn merge(&mut self) -> Merge {
        if !self.skip('~') {
            return Merge::default();
        }
        let words = self.until(&[']', '}']);
        let (strategies, key) = words.split_once(':').map_or((words, None), |(s, k)| (s, Some(k)));
        let has = |word| strategies.split(',').any(|s| s == word);
        Merge { merge: has("merge"), retain_keys: has("retainKeys"), replace: has("replace"), key }
    }

    fn parenthesized(&mut self, separator: char) -> Option<Vec<&'static str>> {
        if !self.skip('(') {
            return None;
        }
        let words = self.until(&[')']);
        self.skip(')');
        Some(words.split(separator).collect())
    }

    fn until(&mut self, stops: &[char]) -> &'static str {
        let end = self.0.find(stops).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        word
    }

    fn skip(&mut self, c: char) -> bool {
        match self.0.strip_prefix(c) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_references(shape: &Shape) {
        match shape {
            Shape::Struct(name, _) | Shape::ObjectOrAny(name) => {
                assert!(types().named(name).is_some(), "no type {name}");
            }
            Shape::Map(inner) | Shape::List(inner, ..) => check_references(inner),
            _ => {}
        }
    }

    #[test]
    fn every_reference_resolves_and_fields_are_sorted() {
        for t in &types().all {
            assert!(t.fields.is_sorted_by_key(|f| f.name));
            t.fields.iter().for_each(|f| check_references(&f.shape));
        }
    }

    #[test]
    fn merge_rules_are_parsed() {
        let pod = types().named("core.v1.PodSpec").unwrap();
        let Shape::List(_, kind, merge) = &pod.field("containers").unwrap().shape else { panic!() };
        assert_eq!(*kind, ListKind::Map(vec!["name".to_owned()]));
        assert_eq!(*merge, Merge { merge: true, key: Some("name"), ..Merge::default() });
        let Shape::List(_, _, merge) = &pod.field("volumes").unwrap().shape else { panic!() };
        assert!(merge.retain_keys);
        let spec = types().named("apps.v1.DeploymentSpec").unwrap();
        let Shape::Struct("apps.v1.DeploymentStrategy", merge) = &spec.field("strategy").unwrap().shape
        else {
            panic!()
        };
        assert!(merge.retain_keys && !merge.merge);
        assert!(types().kind("apps", "v1", "Deployment").is_some());
        assert!(types().kind("apps", "v2", "Deployment").is_none());
    }
}
