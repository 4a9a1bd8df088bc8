//! Drops fields of an object without decoding it.

use crate::{
    FieldPath, Malformed,
    fields::Node,
    json::{Cursor, Syntax, Type},
};
use bytes::Bytes;
use kube_informer_types::protobuf::{Cut, FieldSet, MessageType};
use std::{borrow::Cow, ops::Range};

/// Drops fields from encoded objects by cutting them out of the bytes.
///
/// 1. The remaining fields keep their bytes and order.
/// 2. An object without any of the fields is not copied.
/// 3. Values that are not on the path to a field are not checked to be JSON.
///
/// ```
/// use bytes::Bytes;
/// use kube_informer_wire::Prune;
///
/// let prune = Prune::new(["metadata.managedFields".parse()?, "status".parse()?]);
/// let json = Bytes::from_static(br#"{"metadata":{"name":"a","managedFields":[{}]},"spec":{},"status":{"x":1}}"#);
/// assert_eq!(prune.apply(&json)?, r#"{"metadata":{"name":"a"},"spec":{}}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Prune {
    root: Node,
}

impl Prune {
    /// Drops the fields with these paths.
    pub fn new(paths: impl IntoIterator<Item = FieldPath>) -> Self {
        let mut prune = Self::default();
        for (number, path) in paths.into_iter().enumerate() {
            prune.root.insert(path.steps(), number);
        }
        prune
    }

    /// The object without the fields.
    pub fn apply(&self, json: &Bytes) -> Result<Bytes, Malformed> {
        let mut cursor = Cursor::new(json, usize::MAX);
        let mut cuts = Vec::new();
        let end = find_cuts(&self.root, &mut cursor, json, &mut cuts).and_then(|()| cursor.end());
        match end {
            Ok(()) if cuts.is_empty() => Ok(json.clone()),
            Ok(()) => Ok(without(json, &cuts)),
            Err(Syntax { at, expected }) => {
                Err(Malformed::new(format!("not JSON (expected {expected} at byte {at} of {})", json.len())))
            }
        }
    }
}

/// The rest of a message.
pub(crate) enum Pruned {
    Message(Bytes),
    /// Protobuf cannot be without the fields as JSON can.
    NeedsJson,
}

impl Prune {
    /// The object without the fields, in protobuf.
    pub(crate) fn apply_protobuf(&self, of: MessageType, message: &Bytes) -> Result<Pruned, Malformed> {
        match of.cut(message, &self.root) {
            Ok(Cut::Unchanged) => Ok(Pruned::Message(message.clone())),
            Ok(Cut::Changed(rest)) => Ok(Pruned::Message(rest.into())),
            Ok(Cut::NeedsJson) => Ok(Pruned::NeedsJson),
            Err(error) => Err(Malformed::new(error.to_string())),
        }
    }
}

impl FieldSet for Node {
    fn is_whole(&self) -> bool {
        self.is_end()
    }

    fn member(&self, name: &str) -> Option<&Self> {
        self.named(name.as_bytes()).map(|(_, node)| node)
    }

    fn element(&self, index: usize) -> Option<Cow<'_, Self>> {
        let mut nodes = self.elements(index);
        let first = nodes.next()?;
        Some(nodes.next().map_or(Cow::Borrowed(first), |second| Cow::Owned(first.clone().merged(second))))
    }
}

/// The bytes without the cuts, which are sorted and do not overlap.
fn without(json: &[u8], cuts: &[Range<usize>]) -> Bytes {
    let mut rest = Vec::with_capacity(json.len() - cuts.iter().map(Range::len).sum::<usize>());
    let mut at = 0;
    for cut in cuts {
        rest.extend_from_slice(&json[at..cut.start]);
        at = cut.end;
    }
    rest.extend_from_slice(&json[at..]);
    rest.into()
}

/// Finds the cuts in the value at the cursor.
fn find_cuts(
    node: &Node,
    cursor: &mut Cursor<'_>,
    json: &[u8],
    cuts: &mut Vec<Range<usize>>,
) -> Result<(), Syntax> {
    match cursor.peek_type()? {
        Type::Object if node.has_names() => {
            let mut members = Members::after(cursor.position() + 1);
            cursor.object(|cursor, key| {
                let child = node.named(&key).map(|(_, child)| child);
                members.next(child.as_slice(), cursor, json, cuts)
            })
        }
        Type::Array if node.has_elements() => {
            let mut members = Members::after(cursor.position() + 1);
            cursor.array(|cursor, index| {
                let children: Vec<&Node> = node.elements(index).collect();
                members.next(&children, cursor, json, cuts)
            })
        }
        _ => cursor.skip_unchecked(),
    }
}

/// The members of an object or array, one after the other.
struct Members {
    /// Start of the next member: after the bracket, or at the comma before it.
    start: usize,
    /// Whether there was a member before, and whether one of them stays.
    any: bool,
    stays: bool,
}

impl Members {
    fn after(start: usize) -> Self {
        Self { start, any: false, stays: false }
    }

    /// Handles the member whose value is at the cursor; `nodes` are those of the paths that match it.
    fn next(
        &mut self,
        nodes: &[&Node],
        cursor: &mut Cursor<'_>,
        json: &[u8],
        cuts: &mut Vec<Range<usize>>,
    ) -> Result<(), Syntax> {
        let dropped = nodes.iter().any(|node| node.is_end());
        if dropped {
            cursor.skip_unchecked()?;
            cuts.push(self.start..cursor.position());
        } else {
            if self.any && !self.stays {
                // All members before it are dropped, so the comma before it must be dropped too; only whitespace precedes the comma.
                let comma = json[self.start..].iter().position(|byte| *byte == b',').unwrap_or_default();
                cuts.push(self.start..self.start + comma + 1);
            }
            self.stays = true;
            descend(nodes, cursor, json, cuts)?;
        }
        self.any = true;
        self.start = cursor.position();
        Ok(())
    }
}

/// Finds the cuts in a value that several paths may match.
fn descend(
    nodes: &[&Node],
    cursor: &mut Cursor<'_>,
    json: &[u8],
    cuts: &mut Vec<Range<usize>>,
) -> Result<(), Syntax> {
    match nodes {
        [] => cursor.skip_unchecked(),
        [node] => find_cuts(node, cursor, json, cuts),
        [first, others @ ..] => {
            find_cuts(&others.iter().fold((*first).clone(), |all, node| all.merged(node)), cursor, json, cuts)
        }
    }
}

#[cfg(test)]
mod tests;
