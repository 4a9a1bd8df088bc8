//! Puts the changes of several patches into the text of a file, each behind a switch.

use super::compare::Changes;
use crate::instrument::Instrumented;
use std::{collections::BTreeMap, ops::Range};

/// Code that replaces a range of the original file.
#[derive(Default)]
struct Edit<'a> {
    /// Functions that patches add.
    added: Vec<(u32, &'a str)>,
    /// Bodies of patches, one of which runs instead of the original.
    bodies: Vec<(u32, &'a str)>,
}

/// Returns the file with the changes of all patches. A body `{ a }` that patch 3 changes to `{ b }` becomes
/// `{ if crate::__sabotage::on(3) { b } else { a } }`.
pub fn combine(source: &str, patches: &[(u32, &Changes)]) -> Instrumented {
    let mut edits: BTreeMap<(usize, usize), Edit<'_>> = BTreeMap::new();
    for (id, changes) in patches {
        for body in &changes.bodies {
            let Range { start, end } = body.original;
            edits.entry((start, end)).or_default().bodies.push((*id, &body.patched));
        }
        for added in &changes.added {
            edits.entry((added.at, added.at)).or_default().added.push((*id, &added.function));
        }
    }
    let mut combined = Instrumented::default();
    let mut copied = 0;
    for ((start, end), edit) in edits {
        combined.text.push_str(&source[copied..start]);
        copied = end;
        for (id, function) in edit.added {
            push_own(&mut combined, id, function);
        }
        if !edit.bodies.is_empty() {
            push_chain(&mut combined, &edit.bodies, &source[start..end]);
        }
    }
    combined.text.push_str(&source[copied..]);
    combined
}

fn push_chain(combined: &mut Instrumented, bodies: &[(u32, &str)], original: &str) {
    let start = combined.text.len();
    combined.text.push_str("{ ");
    for (id, body) in bodies {
        combined.text.push_str(&format!("if crate::__sabotage::on({id}) "));
        push_own(combined, *id, body);
        combined.text.push_str(" else ");
    }
    combined.text.push_str(original);
    combined.text.push_str(" }");
    combined.around.push((start..combined.text.len(), bodies.iter().map(|(id, _)| *id).collect()));
}

/// Adds code that only one patch has.
fn push_own(combined: &mut Instrumented, id: u32, code: &str) {
    let start = combined.text.len();
    combined.text.push_str(code);
    combined.own.push((start..combined.text.len(), id));
}
