//! The trace of one run: lines that can be compared.

use crate::{
    driver::Output,
    protocol::{Call, EventType, ObjectState},
    runner::FENCE,
    script::{Difference, Unordered},
};
use similar::{ChangeTag, TextDiff};
use std::{collections::HashMap, fmt};

/// The trace of one run: calls by handler, the store, the indexes, the requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    lines: Vec<String>,
}

/// The calls up to a `settle` step.
pub(crate) struct Segment {
    /// The calls that may be in any order.
    pub(crate) unordered: Unordered,
    /// The number of calls of each handler at its end.
    pub(crate) calls: HashMap<String, usize>,
}

impl Trace {
    pub(crate) fn add_handlers(
        &mut self,
        output: &Output,
        segments: &[Segment],
        resynced: &HashMap<String, usize>,
        namespaces: &[String],
    ) {
        let mut handlers: Vec<&String> = output.calls.keys().chain(output.synced.keys()).collect();
        handlers.sort();
        handlers.dedup();
        for handler in handlers {
            let calls = output.calls.get(handler).map(Vec::as_slice).unwrap_or_default();
            let resyncs = resynced.get(handler).copied();
            let parts = parts(handler, calls, segments, resyncs.is_some());
            // Namespaces with separate watches are not ordered among each other.
            match namespaces {
                [_, _, ..] => {
                    namespaces.iter().for_each(|namespace| self.add_calls(handler, &parts, Some(namespace)))
                }
                _ => self.add_calls(handler, &parts, None),
            }
            self.add_resyncs(handler, calls, resyncs.unwrap_or(0));
            self.add_synced(handler, calls, output.synced.get(handler).copied());
        }
    }

    fn add_calls(&mut self, handler: &str, parts: &[(Unordered, Vec<Call>)], namespace: Option<&str>) {
        let within = |call: &&Call| {
            namespace.is_none_or(|namespace| {
                call.object.key.split_once('/').is_some_and(|(of, _)| of == namespace)
            })
        };
        for (unordered, calls) in parts {
            let mut calls: Vec<Call> = calls.iter().filter(within).cloned().collect();
            unordered.sort(&mut calls);
            self.lines.extend(calls.iter().map(|call| format!("{handler} {}", ShowCall(call))));
        }
    }

    /// Adds the first resync calls, ordered by key: one resync has no order, and its position among the other calls
    /// depends on time.
    fn add_resyncs(&mut self, handler: &str, calls: &[Call], count: usize) {
        let mut resyncs: Vec<&Call> = calls.iter().filter(|call| is_resync(call)).take(count).collect();
        resyncs.sort_by(|a, b| a.object.key.cmp(&b.object.key));
        self.lines
            .extend(resyncs.iter().map(|call| format!("{handler} resync {}", ShowObject(&call.object))));
    }

    fn add_synced(&mut self, handler: &str, calls: &[Call], at: Option<usize>) {
        let Some(at) = at else { return };
        let early = calls[at..].iter().any(|call| call.initial && !is_fence(call));
        self.lines.push(format!("{handler} synced{}", if early { " before its initial adds" } else { "" }));
    }

    pub(crate) fn add_cache(&mut self, output: &Output) {
        self.lines.extend(output.store.iter().map(|object| format!("store {}", ShowObject(object))));
        self.lines
            .extend(output.index.iter().map(|(value, keys)| format!("index {value}: {}", keys.join(" "))));
    }

    pub(crate) fn add_requests(&mut self, mut requests: Vec<String>) {
        // Requests for different collections are concurrent, so only those for the same one are ordered.
        requests.sort_by_key(|request| request.split(' ').nth(1).map(str::to_owned));
        self.lines.extend(requests.iter().map(|request| format!("request {request}")));
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Splits the calls of a handler into segments, without those for fence objects, and without resyncs if they are
/// compared separately.
fn parts(
    handler: &str,
    calls: &[Call],
    segments: &[Segment],
    without_resyncs: bool,
) -> Vec<(Unordered, Vec<Call>)> {
    let included = |call: &&Call| !(is_fence(call) || without_resyncs && is_resync(call));
    let select = |calls: &[Call]| calls.iter().filter(included).cloned().collect();
    let (mut parts, mut from) = (Vec::new(), 0);
    for segment in segments {
        let to = segment.calls.get(handler).copied().unwrap_or(0);
        parts.push((segment.unordered, select(&calls[from..to])));
        from = to;
    }
    parts.push((Unordered::InOrder, select(&calls[from..])));
    parts
}

impl Unordered {
    /// Sorts the calls that may be in any order. All others keep their positions.
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

/// Returns whether a call is an update without a change.
pub(crate) fn is_resync(call: &Call) -> bool {
    !is_fence(call) && call.old.as_ref() == Some(&call.object)
}

/// Formats a call for a trace.
struct ShowCall<'a>(&'a Call);

impl fmt::Display for ShowCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Call { event, initial, unknown, old, object, .. } = self.0;
        match (event, old) {
            (EventType::Add, _) => {
                write!(f, "add {}{}", ShowObject(object), if *initial { " initial" } else { "" })
            }
            (EventType::Update, Some(old)) if old.uid == object.uid => {
                write!(
                    f,
                    "update {} v{} -> v{} {}",
                    object.key,
                    old.version,
                    object.version,
                    short(&object.uid)
                )
            }
            (EventType::Update, Some(old)) => {
                write!(f, "update {} -> {}", ShowObject(old), ShowObject(object))
            }
            (EventType::Update, None) => write!(f, "update {}", ShowObject(object)),
            (EventType::Delete, _) => {
                write!(
                    f,
                    "delete {}{}",
                    ShowObject(object),
                    if *unknown { " final state unknown" } else { "" }
                )
            }
        }
    }
}

/// Formats an object for a trace.
struct ShowObject<'a>(&'a ObjectState);

impl fmt::Display for ShowObject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectState { key, version, uid } = self.0;
        write!(f, "{key} v{version} {}", short(uid))
    }
}

/// Shortens a uid of the scripted server to its number.
fn short(uid: &str) -> String {
    let number = uid.rsplit('-').next().unwrap_or_default().trim_start_matches('0');
    format!("u{number}")
}

/// Checks that two traces differ exactly as expected.
///
/// # Errors
/// A diff of the traces, and the expected differences.
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
