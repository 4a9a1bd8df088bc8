//! Reading a few fields of an object in one pass over its bytes.

mod collector;
mod trie;

pub(crate) use collector::Collector;
pub(crate) use trie::Node;

use crate::{
    FieldPath, Malformed,
    json::{Cursor, Syntax, Type},
};
use serde_json::Value;

/// A set of fields that are read together.
///
/// 1. One pass over the object finds the values of all paths; all other values are skipped, not decoded.
/// 2. A path has as many values as the object has: none if the field is missing or a field on the way has another
///    type, several if the path has a `[*]`. A `null` is a value.
/// 3. The values are those of the decoded object, also where keys are repeated.
/// 4. Skipped values are not checked to be JSON.
///
/// ```
/// use kube_informer_wire::FieldPaths;
///
/// let paths = FieldPaths::new(["spec.nodeName".parse()?, "spec.containers[*].image".parse()?]);
/// let found = paths.read(br#"{"spec":{"nodeName":"n1","containers":[{"image":"a"},{"image":"b"}]}}"#)?;
/// assert_eq!(found, [vec!["n1"], vec!["a", "b"]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct FieldPaths {
    paths: usize,
    /// Paths that are not missing.
    present: usize,
    root: Node,
}

/// Why a pass over the bytes ends early.
enum Stop {
    Syntax(Syntax),
    /// A wanted value cannot be decoded.
    Value,
    /// A key is repeated: the last one counts, which is known only at the end of the object.
    RepeatedKey,
}

impl From<Syntax> for Stop {
    fn from(syntax: Syntax) -> Self {
        Self::Syntax(syntax)
    }
}

/// The values found for each path.
pub(crate) type Found = Vec<Vec<Value>>;

/// Bytes of the values found, on the heap and in `found` itself.
pub(crate) fn heap_size(found: &Found) -> usize {
    let values: usize = found.iter().map(vec_size).sum();
    size_of::<Found>() + found.capacity() * size_of::<Vec<Value>>() + values
}

fn vec_size(values: &Vec<Value>) -> usize {
    values.capacity() * size_of::<Value>() + values.iter().map(value_size).sum::<usize>()
}

pub(crate) fn value_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.capacity(),
        Value::Array(values) => vec_size(values),
        Value::Object(fields) => {
            let entry = size_of::<(String, Value)>();
            fields.iter().map(|(name, value)| entry + name.capacity() + value_size(value)).sum()
        }
    }
}

impl FieldPaths {
    /// A set of paths; results have the same order.
    pub fn new(paths: impl IntoIterator<Item = FieldPath>) -> Self {
        Self::sparse(paths.into_iter().map(Some))
    }

    /// A set of paths, of which some are missing: their results are empty.
    pub fn sparse(paths: impl IntoIterator<Item = Option<FieldPath>>) -> Self {
        let mut set = Self::default();
        for path in paths {
            if let Some(path) = path {
                set.root.insert(path.steps(), set.paths);
                set.present += 1;
            }
            set.paths += 1;
        }
        set
    }

    /// The number of paths, including missing ones.
    pub fn len(&self) -> usize {
        self.paths
    }

    /// Whether there is no path, or all are missing.
    pub fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// The values of each path in an encoded object.
    pub fn read(&self, json: &[u8]) -> Result<Vec<Vec<Value>>, Malformed> {
        let mut found = vec![Vec::new(); self.paths];
        let mut cursor = Cursor::new(json, usize::MAX);
        let end = walk(&self.root, &mut cursor, &mut found).and_then(|()| Ok(cursor.end()?));
        match end {
            Ok(()) => Ok(found),
            Err(Stop::RepeatedKey) => self.read_whole(json),
            Err(Stop::Value) => Err(Malformed::new("a field is not JSON")),
            Err(Stop::Syntax(Syntax { at, expected })) => {
                Err(Malformed::new(format!("not JSON (expected {expected} at byte {at} of {})", json.len())))
            }
        }
    }

    /// Collects the values while serde reads an object from another encoding than JSON.
    pub(crate) fn collector(&self) -> Collector<'_> {
        Collector { root: &self.root, paths: self.paths }
    }

    /// Decodes the whole object: slow, and only for objects that no API server writes.
    fn read_whole(&self, json: &[u8]) -> Result<Found, Malformed> {
        let value: Value = serde_json::from_slice(json).map_err(|_| Malformed::new("not JSON"))?;
        let mut found = vec![Vec::new(); self.paths];
        collect(&self.root, &value, &mut found);
        Ok(found)
    }
}

/// Reads the value at the cursor as far as paths lead into it.
fn walk(node: &Node, cursor: &mut Cursor<'_>, found: &mut Found) -> Result<(), Stop> {
    if node.is_end() {
        let value: Value = serde_json::from_slice(cursor.span_unchecked()?).map_err(|_| Stop::Value)?;
        collect(node, &value, found);
        return Ok(());
    }
    match cursor.peek_type()? {
        Type::Object if node.has_names() => {
            let mut seen = node.unseen();
            cursor.object(|cursor, key| match node.named(&key) {
                Some((index, _)) if std::mem::replace(&mut seen[index], true) => Err(Stop::RepeatedKey),
                Some((_, child)) => walk(child, cursor, found),
                None => Ok(cursor.skip_unchecked()?),
            })
        }
        Type::Array if node.has_elements() => cursor.array(|cursor, index| {
            let mut children = node.elements(index);
            match (children.next(), children.next()) {
                (Some(child), None) => walk(child, cursor, found),
                (None, _) => Ok(cursor.skip_unchecked()?),
                (Some(one), Some(other)) => {
                    let element = cursor.span_unchecked()?;
                    walk(one, &mut Cursor::new(element, usize::MAX), found)?;
                    walk(other, &mut Cursor::new(element, usize::MAX), found)
                }
            }
        }),
        _ => Ok(cursor.skip_unchecked()?),
    }
}

/// The values of all paths below `node` in a decoded value.
fn collect(node: &Node, value: &Value, found: &mut Found) {
    for path in node.ends() {
        found[*path].push(value.clone());
    }
    match value {
        Value::Object(fields) => {
            for (name, child) in node.names() {
                fields.get(name).into_iter().for_each(|value| collect(child, value, found));
            }
        }
        Value::Array(elements) => {
            for (index, value) in elements.iter().enumerate() {
                node.elements(index).for_each(|child| collect(child, value, found));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
pub(crate) mod tests;
