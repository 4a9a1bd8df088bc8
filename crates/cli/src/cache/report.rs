//! What is in a persisted cache, as tables or JSON. It has no names of objects, except for damaged ones.

use crate::{
    table::{bytes, table},
    terminal::printable_json,
};
use kube_informer_persist::{Disk, InspectedLog};
use serde_json::{Value, json};
use std::{
    io,
    time::{Duration, SystemTime},
};

/// Damaged objects that are named in a table; further ones are counted.
const MOST_NAMES: usize = 5;

/// A description of one log.
#[derive(Debug)]
pub(crate) struct Report {
    file: String,
    name: String,
    pairs: Vec<(String, String)>,
    generation: u64,
    is_encrypted: bool,
    log_bytes: u64,
    bodies_bytes: u64,
    live_bytes: u64,
    garbage_bytes: u64,
    saved: Option<Saved>,
    /// Why it would be discarded.
    problem: Option<String>,
}

/// The state that would be restored.
#[derive(Debug)]
struct Saved {
    version: String,
    saved_at: SystemTime,
    /// `None` if it was saved in the future of this clock.
    age: Option<Duration>,
    objects: usize,
    dropped_bytes: u64,
    /// The objects with damaged contents, if contents were verified.
    damaged: Option<Vec<String>>,
}

impl Report {
    pub(crate) fn new<D: Disk>(log: &InspectedLog<D>, verify: bool, now: SystemTime) -> io::Result<Self> {
        let damaged = if verify { Some(log.verify()?) } else { None };
        let saved = log.restored.as_ref().map(|restored| Saved {
            version: restored.position.version.clone(),
            saved_at: restored.position.saved_at,
            age: now.duration_since(restored.position.saved_at).ok(),
            objects: restored.objects.len(),
            dropped_bytes: restored.dropped_bytes,
            damaged: damaged.map(|all| all.iter().map(|one| restored.key(one).to_owned()).collect()),
        });
        Ok(Self {
            file: log.file.clone(),
            name: log.name.clone(),
            pairs: log.belongs_to.pairs().to_vec(),
            generation: log.generation,
            is_encrypted: log.is_encrypted,
            log_bytes: log.log_bytes,
            bodies_bytes: log.bodies_bytes,
            live_bytes: log.live_bytes,
            garbage_bytes: log.garbage_bytes(),
            saved,
            problem: log.problem.as_ref().map(ToString::to_string),
        })
    }

    /// Whether everything was read, and nothing is damaged.
    pub(crate) fn is_verified(&self) -> bool {
        let has_damage = |saved: &Saved| saved.damaged.as_ref().is_none_or(|damaged| !damaged.is_empty());
        self.problem.is_none() && !self.saved.as_ref().is_some_and(has_damage)
    }

    fn state(&self) -> String {
        if let Some(problem) = &self.problem {
            return format!("would be discarded: {problem}");
        }
        let Some(saved) = &self.saved else { return "empty: nothing was committed".to_owned() };
        let mut state = match &saved.damaged {
            None => "log intact".to_owned(),
            Some(damaged) if damaged.is_empty() => "log and contents intact".to_owned(),
            Some(damaged) => {
                let names =
                    damaged.iter().take(MOST_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
                let more = if damaged.len() > MOST_NAMES { ", …" } else { "" };
                format!("{} contents damaged: {names}{more}", damaged.len())
            }
        };
        if saved.dropped_bytes > 0 {
            state.push_str(&format!("; {} at the end not committed", size(saved.dropped_bytes)));
        }
        state
    }

    fn row(&self) -> Vec<String> {
        let saved = |show: &dyn Fn(&Saved) -> String| self.saved.as_ref().map_or("-".to_owned(), show);
        vec![
            if self.name.is_empty() { self.file.clone() } else { self.name.clone() },
            saved(&|saved| saved.objects.to_string()),
            saved(&|saved| saved.version.clone()),
            saved(&|saved| saved.age.map_or("in the future".to_owned(), ago)),
            size(self.live_bytes),
            size(self.garbage_bytes),
            if self.is_encrypted { "yes" } else { "no" }.to_owned(),
            self.state(),
        ]
    }

    fn json(&self) -> Value {
        let seconds =
            |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).map(|age| age.as_secs()).ok();
        let saved = self.saved.as_ref().map(|saved| {
            json!({
                "version": saved.version,
                "savedAtUnixSeconds": seconds(saved.saved_at),
                "ageSeconds": saved.age.map(|age| age.as_secs()),
                "objects": saved.objects,
                "droppedBytes": saved.dropped_bytes,
                "damaged": saved.damaged,
            })
        });
        json!({
            "file": self.file,
            "name": self.name,
            "belongsTo": self.pairs.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            "generation": self.generation,
            "encrypted": self.is_encrypted,
            "logBytes": self.log_bytes,
            "bodiesBytes": self.bodies_bytes,
            "liveBytes": self.live_bytes,
            "garbageBytes": self.garbage_bytes,
            "saved": saved,
            "problem": self.problem,
        })
    }
}

/// One row for each log, and the pairs of each log below.
pub(crate) fn tables(reports: &[Report]) -> String {
    let head = ["CACHE", "OBJECTS", "VERSION", "SAVED", "LIVE", "GARBAGE", "ENCRYPTED", "STATE"];
    let rows = reports.iter().map(Report::row);
    let logs = table([head.map(str::to_owned).to_vec()].into_iter().chain(rows).collect());
    let pairs = reports.iter().flat_map(|report| {
        let name = report.row().remove(0);
        report.pairs.iter().map(move |(pair, value)| vec![name.clone(), pair.clone(), value.clone()])
    });
    let head = ["CACHE", "BELONGS TO", "VALUE"].map(str::to_owned).to_vec();
    format!("{logs}\n{}", table([head].into_iter().chain(pairs).collect()))
}

/// One JSON object on one line.
pub(crate) fn json(reports: &[Report]) -> String {
    let json = json!({"caches": reports.iter().map(Report::json).collect::<Vec<_>>()}).to_string();
    printable_json(&json).into_owned()
}

fn size(n: u64) -> String {
    bytes(usize::try_from(n).unwrap_or(usize::MAX))
}

fn ago(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..120 => format!("{seconds}s ago"),
        seconds @ 120..7200 => format!("{}m ago", seconds / 60),
        seconds @ 7200..172_800 => format!("{}h ago", seconds / 3600),
        seconds => format!("{}d ago", seconds / 86_400),
    }
}
