//! What happened in one run, as lines that can be compared.

use crate::{
    conductor::FENCE,
    driver::Said,
    protocol::{Call, Described, What},
    script::{Difference, Unordered},
};
use similar::{ChangeTag, TextDiff};
use std::{collections::HashMap, fmt};

/// What happened in one run: calls by handler, the store, the indexes, the requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    lines: Vec<String>,
}

/// The calls up to a point of a script at which everybody had heard of everything.
pub(crate) struct Segment {
    /// Which of its calls may come in any order.
    pub(crate) unordered: Unordered,
    /// How many calls each handler had had at its end.
    pub(crate) calls: HashMap<String, usize>,
}

impl Trace {
    pub(crate) fn handlers(
        &mut self,
        said: &Said,
        segments: &[Segment],
        resynced: &HashMap<String, usize>,
        namespaces: &[String],
    ) {
        let mut handlers: Vec<&String> = said.calls.keys().chain(said.synced.keys()).collect();
        handlers.sort();
        handlers.dedup();
        for handler in handlers {
            let calls = said.calls.get(handler).map(Vec::as_slice).unwrap_or_default();
            let resyncs = resynced.get(handler).copied();
            let parts = parts(handler, calls, segments, resyncs.is_some());
            // Between namespaces that are watched on their own there is no order.
            match namespaces {
                [_, _, ..] => {
                    namespaces.iter().for_each(|namespace| self.part(handler, &parts, Some(namespace)))
                }
                _ => self.part(handler, &parts, None),
            }
            self.resyncs(handler, calls, resyncs.unwrap_or(0));
            self.synced(handler, calls, said.synced.get(handler).copied());
        }
    }

    fn part(&mut self, handler: &str, parts: &[(Unordered, Vec<Call>)], namespace: Option<&str>) {
        let within = |call: &&Call| {
            namespace.is_none_or(|namespace| {
                call.object.key.split_once('/').is_some_and(|(of, _)| of == namespace)
            })
        };
        for (unordered, calls) in parts {
            let mut calls: Vec<Call> = calls.iter().filter(within).cloned().collect();
            unordered.sort(&mut calls);
            self.lines.extend(calls.iter().map(|call| format!("{handler} {}", Told(call))));
        }
    }

    /// The first calls of resyncs, in order of keys: within one resync they have no order, and where among the other
    /// calls they come depends on time.
    fn resyncs(&mut self, handler: &str, calls: &[Call], count: usize) {
        let mut resyncs: Vec<&Call> = calls.iter().filter(|call| is_resync(call)).take(count).collect();
        resyncs.sort_by(|a, b| a.object.key.cmp(&b.object.key));
        self.lines.extend(resyncs.iter().map(|call| format!("{handler} resync {}", Shown(&call.object))));
    }

    fn synced(&mut self, handler: &str, calls: &[Call], at: Option<usize>) {
        let Some(at) = at else { return };
        let early = calls[at..].iter().any(|call| call.initial && !is_fence(call));
        self.lines.push(format!("{handler} synced{}", if early { " before its initial adds" } else { "" }));
    }

    pub(crate) fn content(&mut self, said: &Said) {
        self.lines.extend(said.store.iter().map(|object| format!("store {}", Shown(object))));
        self.lines
            .extend(said.index.iter().map(|(value, keys)| format!("index {value}: {}", keys.join(" "))));
    }

    pub(crate) fn requests(&mut self, mut requests: Vec<String>) {
        // Collections are asked for on their own, so there is an order only within each.
        requests.sort_by_key(|request| request.split(' ').nth(1).map(str::to_owned));
        self.lines.extend(requests.iter().map(|request| format!("request {request}")));
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Cuts the calls of a handler into segments, without those about our own objects, and without those of resyncs if
/// they are looked at on their own.
fn parts(
    handler: &str,
    calls: &[Call],
    segments: &[Segment],
    without_resyncs: bool,
) -> Vec<(Unordered, Vec<Call>)> {
    let counts = |call: &&Call| !is_fence(call) && !(without_resyncs && is_resync(call));
    let counted = |calls: &[Call]| calls.iter().filter(counts).cloned().collect();
    let (mut parts, mut from) = (Vec::new(), 0);
    for segment in segments {
        let to = segment.calls.get(handler).copied().unwrap_or(0);
        parts.push((segment.unordered, counted(&calls[from..to])));
        from = to;
    }
    parts.push((Unordered::InOrder, counted(&calls[from..])));
    parts
}

impl Unordered {
    /// Puts the calls that have no order into one; all others stay where they are.
    fn sort(self, calls: &mut [Call]) {
        let class = |call: &Call| match self {
            Self::InOrder => None,
            Self::Initial => call.initial.then_some(0),
            Self::Relist => Some(u8::from(call.unknown)),
            Self::InitialThenRelist => Some(if call.initial { 2 } else { u8::from(call.unknown) }),
            Self::RelistInOrder => call.unknown.then_some(0),
        };
        for run in calls.chunk_by_mut(|a, b| class(a).is_some() && class(a) == class(b)) {
            run.sort_by(|a, b| a.object.key.cmp(&b.object.key));
        }
    }
}

fn is_fence(call: &Call) -> bool {
    call.object.key.split_once('/').is_some_and(|(_, name)| name.starts_with(FENCE))
}

/// Whether a call tells of an object that did not change.
pub(crate) fn is_resync(call: &Call) -> bool {
    !is_fence(call) && call.old.as_ref() == Some(&call.object)
}

/// A call as a trace shows it.
struct Told<'a>(&'a Call);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call { what, initial, unknown, old, object, .. } = self.0;
        match (what, old) {
            (What::Add, _) => write!(f, "add {}{}", Shown(object), if *initial { " initial" } else { "" }),
            (What::Update, Some(old)) if old.uid == object.uid => {
                write!(
                    f,
                    "update {} v{} -> v{} {}",
                    object.key,
                    old.version,
                    object.version,
                    short(&object.uid)
                )
            }
            (What::Update, Some(old)) => write!(f, "update {} -> {}", Shown(old), Shown(object)),
            (What::Update, None) => write!(f, "update {}", Shown(object)),
            (What::Delete, _) => {
                write!(f, "delete {}{}", Shown(object), if *unknown { " final state unknown" } else { "" })
            }
        }
    }
}

struct Shown<'a>(&'a Described);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Described { key, version, uid } = self.0;
        write!(f, "{key} v{version} {}", short(uid))
    }
}

/// The number in a uid of the scripted server.
fn short(uid: &str) -> String {
    let number = uid.rsplit('-').next().unwrap_or_default().trim_start_matches('0');
    format!("u{number}")
}

/// Whether two traces differ exactly as they are meant to; if not, how.
pub fn compare(client_go: &Trace, ours: &Trace, differs: &[Difference]) -> Result<(), String> {
    let (left, right) = (client_go.to_string(), ours.to_string());
    let diff = TextDiff::from_lines(&left, &right);
    let only = |tag| {
        let changes = diff.iter_all_changes().filter(move |change| change.tag() == tag);
        changes.map(|change| change.value().trim_end().to_owned()).collect::<Vec<_>>()
    };
    let removed: Vec<String> = differs.iter().flat_map(|difference| difference.client_go.clone()).collect();
    let added: Vec<String> = differs.iter().flat_map(|difference| difference.ours.clone()).collect();
    if only(ChangeTag::Delete) == removed && only(ChangeTag::Insert) == added {
        return Ok(());
    }
    let mut report = diff.unified_diff().context_radius(100).header("client-go", "ours").to_string();
    if report.is_empty() {
        report = "the traces are equal\n".into();
    }
    for difference in differs {
        report += &format!("expected difference: {}\n", difference.id);
        difference.client_go.iter().for_each(|line| report += &format!("  -{line}\n"));
        difference.ours.iter().for_each(|line| report += &format!("  +{line}\n"));
    }
    Err(report)
}

#[cfg(test)]
mod tests;
