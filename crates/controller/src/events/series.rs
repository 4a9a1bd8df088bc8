//! Repeated events as one event with a count. Makes no requests: decides which ones to make.

use super::{EventType, namespace};
use crate::clock::WallClock;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::Timestamp,
};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::Instant;

/// A series ends when nothing was added for this long.
const FINISH: Duration = Duration::from_secs(6 * 60);
/// Period in which the count of a series that goes on is written.
const REFRESH: Duration = Duration::from_secs(30 * 60);
/// Number of new events about one object at once.
const BURST: f64 = 25.0;
/// Time after which one more new event about an object is allowed.
const REFILL: Duration = Duration::from_secs(5 * 60);
/// Number of series, and of objects with limits, that are remembered.
const MAX_ENTRIES: usize = 1000;
/// Limits of the API.
const MAX_NOTE: usize = 1024;
const MAX_REASON: usize = 128;
const MAX_NAME: usize = 230;

/// Something that happened to an object.
#[derive(Debug, Clone)]
pub(crate) struct Occurrence {
    regarding: ObjectReference,
    event_type: EventType,
    reason: String,
    note: String,
    action: String,
    related: Option<ObjectReference>,
}

/// The action of events that do not name one.
const ACTION: &str = "Reconcile";

impl Occurrence {
    pub(crate) fn new(regarding: ObjectReference, event_type: EventType, reason: &str, note: &str) -> Self {
        let (reason, note) = (cut(reason, MAX_REASON), cut(note, MAX_NOTE));
        Self { regarding, event_type, reason, note, action: ACTION.to_owned(), related: None }
    }

    /// Sets what was done.
    pub(crate) fn action(mut self, action: &str) -> Self {
        self.action = cut(action, MAX_REASON);
        self
    }

    /// Sets another object that the event is about.
    pub(crate) fn related(mut self, related: Option<ObjectReference>) -> Self {
        self.related = related;
        self
    }
}

/// The longest prefix of at most `max` bytes that ends between two characters.
fn cut(text: &str, max: usize) -> String {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// Events that are repetitions of each other have the same id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct SeriesId {
    uid: String,
    event_type: EventType,
    reason: String,
    action: String,
    /// API version, kind, namespace, name and uid of the other object, if there is one.
    related: Option<[Option<String>; 5]>,
}

impl SeriesId {
    fn of(occurrence: &Occurrence) -> Self {
        let Occurrence { regarding, event_type, reason, action, related, note: _ } = occurrence;
        let related = related.as_ref().map(|related| {
            let ObjectReference { api_version, kind, namespace, name, uid, .. } = related;
            [api_version, kind, namespace, name, uid].map(Clone::clone)
        });
        Self {
            uid: regarding.uid.clone().unwrap_or_default(),
            event_type: *event_type,
            reason: reason.clone(),
            action: action.clone(),
            related,
        }
    }
}

/// A write that is due.
#[derive(Debug)]
pub(crate) enum EventWrite {
    /// A new event.
    Create { id: SeriesId, event: Box<Event> },
    /// The count of an event.
    Count { id: SeriesId, namespace: String, name: String, count: i32, last: Timestamp },
}

impl EventWrite {
    pub(crate) fn id(&self) -> &SeriesId {
        match self {
            Self::Create { id, .. } | Self::Count { id, .. } => id,
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Create { event, .. } => event.metadata.name.as_deref().unwrap_or_default(),
            Self::Count { name, .. } => name,
        }
    }
}

/// Too many new events about one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limited;

/// The series of a controller.
pub(crate) struct Series {
    controller: Arc<str>,
    /// Name of the process.
    instance: Arc<str>,
    clock: WallClock,
    entries: HashMap<SeriesId, Entry>,
    /// By uid.
    buckets: HashMap<String, Bucket>,
    /// Makes names of events that happen at the same time different.
    created: u64,
}

struct Entry {
    namespace: String,
    name: String,
    count: i32,
    last: Timestamp,
    last_at: Instant,
    written_count: i32,
    written_at: Instant,
}

struct Bucket {
    tokens: f64,
    at: Instant,
}

impl Series {
    /// The series of `controller`. The name of the process is the same if it is not given.
    pub(crate) fn new(controller: Arc<str>, instance: Option<String>, clock: WallClock) -> Self {
        let instance = instance.map_or_else(|| Arc::clone(&controller), Arc::from);
        Self { controller, instance, clock, entries: HashMap::new(), buckets: HashMap::new(), created: 0 }
    }

    /// Counts an occurrence. Returns the write that it needs at once.
    pub(crate) fn observe(
        &mut self,
        occurrence: Occurrence,
        now: Instant,
    ) -> Result<Option<EventWrite>, Limited> {
        let id = SeriesId::of(&occurrence);
        let time = self.clock.now();
        if let Some(entry) =
            self.entries.get_mut(&id).filter(|entry| now.duration_since(entry.last_at) < FINISH)
        {
            entry.count = entry.count.saturating_add(1);
            (entry.last, entry.last_at) = (time, now);
            // The second one shows that this is a series.
            return Ok((entry.count == 2).then(|| entry.write(id, now)));
        }
        self.take_token(id.uid.clone(), now)?;
        let event = self.event(occurrence, time);
        make_room(&mut self.entries, |entry| entry.last_at);
        let (namespace, name) = (event.metadata.namespace.clone(), event.metadata.name.clone());
        let entry = Entry {
            namespace: namespace.unwrap_or_default(),
            name: name.unwrap_or_default(),
            count: 1,
            last: time,
            last_at: now,
            written_count: 1,
            written_at: now,
        };
        self.entries.insert(id.clone(), entry);
        Ok(Some(EventWrite::Create { id, event: Box::new(event) }))
    }

    /// The counts that are due, of series that have ended or go on for long. Ended series are forgotten.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<EventWrite> {
        let mut writes = Vec::new();
        self.entries.retain(|id, entry| {
            let ended = now.duration_since(entry.last_at) >= FINISH;
            let unwritten = entry.count > entry.written_count;
            if unwritten && (ended || now.duration_since(entry.written_at) >= REFRESH) {
                writes.push(entry.write(id.clone(), now));
            }
            !ended
        });
        writes
    }

    /// Forgets a series whose event could not be written.
    pub(crate) fn forget(&mut self, id: &SeriesId) {
        self.entries.remove(id);
    }

    fn take_token(&mut self, uid: String, now: Instant) -> Result<(), Limited> {
        make_room(&mut self.buckets, |bucket| bucket.at);
        let bucket = self.buckets.entry(uid).or_insert(Bucket { tokens: BURST, at: now });
        let refilled = now.duration_since(bucket.at).as_secs_f64() / REFILL.as_secs_f64();
        (bucket.tokens, bucket.at) = ((bucket.tokens + refilled).min(BURST), now);
        if bucket.tokens < 1.0 {
            return Err(Limited);
        }
        bucket.tokens -= 1.0;
        Ok(())
    }

    fn event(&mut self, occurrence: Occurrence, time: Timestamp) -> Event {
        let Occurrence { regarding, event_type, reason, note, action, related } = occurrence;
        self.created = self.created.wrapping_add(1);
        let unique = time.as_nanosecond().wrapping_add(i128::from(self.created));
        let object = cut(regarding.name.as_deref().unwrap_or_default(), MAX_NAME);
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{object}.{unique:x}")),
                namespace: Some(namespace(&regarding)),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(time)),
            action: Some(action),
            reason: Some(reason),
            note: Some(note),
            type_: Some(event_type.as_str().to_owned()),
            regarding: Some(regarding),
            reporting_controller: Some(self.controller.to_string()),
            reporting_instance: Some(self.instance.to_string()),
            related,
            ..Event::default()
        }
    }
}

impl Entry {
    fn write(&mut self, id: SeriesId, now: Instant) -> EventWrite {
        (self.written_count, self.written_at) = (self.count, now);
        let (namespace, name) = (self.namespace.clone(), self.name.clone());
        EventWrite::Count { id, namespace, name, count: self.count, last: self.last }
    }
}

/// Removes the least recent entry of a full table.
fn make_room<K: Clone + Eq + std::hash::Hash, V>(table: &mut HashMap<K, V>, at: impl Fn(&V) -> Instant) {
    if table.len() >= MAX_ENTRIES
        && let Some(oldest) = table.iter().min_by_key(|(_, entry)| at(entry)).map(|(key, _)| key.clone())
    {
        table.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn series() -> Series {
        Series::new(Arc::from("test"), None, WallClock::new(|| SystemTime::UNIX_EPOCH))
    }

    fn occurrence(name: &str, reason: &str) -> Occurrence {
        let regarding = ObjectReference {
            name: Some(name.to_owned()),
            uid: Some(name.to_owned()),
            ..ObjectReference::default()
        };
        Occurrence::new(regarding, EventType::Normal, reason, "a note")
    }

    /// `create`, or the count that is written.
    fn describe(write: &EventWrite) -> String {
        match write {
            EventWrite::Create { .. } => "create".to_owned(),
            EventWrite::Count { count, .. } => count.to_string(),
        }
    }

    fn observe(series: &mut Series, reason: &str, now: Instant) -> Option<String> {
        series.observe(occurrence("a", reason), now).unwrap().as_ref().map(describe)
    }

    fn due(series: &mut Series, now: Instant) -> Vec<String> {
        series.due(now).iter().map(describe).collect()
    }

    #[test]
    fn repeated_events_are_counted_and_written_seldom() {
        let (mut series, start) = (series(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(observe(&mut series, "Created", at(0)).as_deref(), Some("create"));
        assert_eq!(observe(&mut series, "Created", at(1)).as_deref(), Some("2"));
        for second in 2..100 {
            assert_eq!(observe(&mut series, "Created", at(second)), None);
        }
        assert_eq!(observe(&mut series, "Deleted", at(100)).as_deref(), Some("create"), "another reason");
        assert_eq!(due(&mut series, at(120)), [""; 0]);
        assert_eq!(due(&mut series, at(99 + 360)), ["100"], "it has ended");
        assert_eq!(observe(&mut series, "Created", at(500)).as_deref(), Some("create"), "a new series");
    }

    #[test]
    fn another_note_is_a_repetition_because_the_note_of_an_event_is_immutable() {
        let (mut series, start) = (series(), Instant::now());
        let with_note = |note: &str| Occurrence { note: note.to_owned(), ..occurrence("a", "Failed") };
        let first = series.observe(with_note("no volume"), start).unwrap();
        let Some(EventWrite::Create { event, .. }) = first else { panic!("{first:?}") };
        assert_eq!(event.note.as_deref(), Some("no volume"));
        let second = series.observe(with_note("no address"), start).unwrap();
        assert!(matches!(second, Some(EventWrite::Count { count: 2, .. })), "{second:?}");
    }

    #[test]
    fn an_event_about_another_related_object_is_not_a_repetition() {
        let (mut series, start) = (series(), Instant::now());
        let mut observe = |related: Option<&str>| {
            let related = related.map(|name| ObjectReference {
                kind: Some("Pod".to_owned()),
                name: Some(name.to_owned()),
                ..ObjectReference::default()
            });
            let write = series.observe(occurrence("a", "Bound").related(related), start).unwrap();
            write.as_ref().map(describe)
        };
        assert_eq!(observe(Some("b")).as_deref(), Some("create"));
        assert_eq!(observe(Some("c")).as_deref(), Some("create"), "another object");
        assert_eq!(observe(None).as_deref(), Some("create"), "no other object");
        assert_eq!(observe(Some("b")).as_deref(), Some("2"));
    }

    #[test]
    fn a_long_series_is_refreshed() {
        let (mut series, start) = (series(), Instant::now());
        let mut written = Vec::new();
        for minute in 0..=65 {
            let now = start + Duration::from_secs(60 * minute);
            written.extend(observe(&mut series, "Created", now));
            written.extend(due(&mut series, now));
        }
        assert_eq!(written, ["create", "2", "32", "62"]);
    }

    #[test]
    fn new_events_about_an_object_are_limited() {
        let (mut series, start) = (series(), Instant::now());
        let written =
            (0..100).filter(|n| series.observe(occurrence("a", &n.to_string()), start).is_ok()).count();
        assert_eq!(written, 25);
        assert!(series.observe(occurrence("b", "Other"), start).is_ok(), "another object");
        let later = start + Duration::from_secs(300);
        assert!(series.observe(occurrence("a", "Later"), later).is_ok());
        assert!(series.observe(occurrence("a", "Again"), later).is_err());
    }

    #[test]
    fn tables_are_bounded_and_names_unique() {
        let (mut series, start) = (series(), Instant::now());
        let mut names = std::collections::BTreeSet::new();
        for n in 0..3000 {
            let write = series.observe(occurrence(&format!("o-{n}"), "Created"), start).unwrap().unwrap();
            assert!(names.insert(write.name().to_owned()));
        }
        assert!(series.entries.len() <= MAX_ENTRIES && series.buckets.len() <= MAX_ENTRIES);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
    }
}
