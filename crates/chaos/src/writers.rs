//! Those who write, at random, and wait now and then until an informer shows what they wrote.

use crate::{
    cluster::{
        COLORS, Direct, NAMESPACES, Refusal, collection, config_maps, content_field, object, pods, widgets,
    },
    follower::Watched,
    ledger::{Fault, Ledger, lock},
};
use kube_informer::{Kind, ObjectKey, ResourceVersion, WaitError};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, task::JoinHandle, time::Instant};

/// How long somebody waits for a cache.
const WITHIN: Duration = Duration::from_secs(2);
/// How much later than asked for a wait may end, on a machine that is busy, before it counts as hanging.
const SLACK: Duration = Duration::from_secs(20);
/// Names of each writer in each namespace.
const NAMES: u32 = 6;

/// What writers and those who disturb them share.
pub(crate) struct Desk {
    pub(crate) ledger: Arc<Ledger>,
    /// Which life of the server this is. Counted up when it is over, before the next begins.
    pub(crate) life: AtomicU64,
    pub(crate) watched: Mutex<Vec<Watched>>,
    open: watch::Sender<bool>,
    busy: AtomicUsize,
}

impl Desk {
    pub(crate) fn new(ledger: Arc<Ledger>) -> Arc<Self> {
        let (life, busy) = (AtomicU64::new(1), AtomicUsize::new(0));
        Arc::new(Self { ledger, life, watched: Mutex::default(), open: watch::Sender::new(false), busy })
    }

    pub(crate) fn life(&self) -> u64 {
        self.life.load(Ordering::SeqCst)
    }

    /// Writers write, or finish what they are at.
    pub(crate) fn set_open(&self, open: bool) {
        self.open.send_replace(open);
    }

    /// Whether nobody is writing.
    pub(crate) fn is_idle(&self) -> bool {
        self.busy.load(Ordering::SeqCst) == 0
    }
}

/// Somebody who writes objects that nobody else writes.
pub(crate) struct Writer {
    number: usize,
    desk: Arc<Desk>,
    direct: Direct,
    rng: fastrand::Rng,
    /// What is believed to be there.
    present: HashSet<(Kind, ObjectKey)>,
    /// Objects for which a request of unknown outcome may still be under way, and since which life.
    murky: HashMap<(Kind, ObjectKey), u64>,
    writes: u64,
}

/// What a write did.
enum Done {
    /// The object is at this version, with this color.
    Stored {
        version: u64,
        color: String,
    },
    Deleted,
}

impl Done {
    /// Whether an informer of this color, or of all, hears of it.
    fn is_selected(&self, color: Option<&str>) -> bool {
        match self {
            Self::Stored { color: written, .. } => color.is_none_or(|wanted| wanted == written),
            Self::Deleted => true,
        }
    }
}

impl Writer {
    pub(crate) fn begin(
        number: usize,
        desk: Arc<Desk>,
        direct: Direct,
        rng: fastrand::Rng,
    ) -> JoinHandle<()> {
        let (present, murky) = (HashSet::new(), HashMap::new());
        let writer = Self { number, desk, direct, rng, present, murky, writes: 0 };
        tokio::spawn(writer.run())
    }

    async fn run(mut self) {
        let desk = Arc::clone(&self.desk);
        let mut open = desk.open.subscribe();
        while open.wait_for(|open| *open).await.is_ok() {
            desk.busy.fetch_add(1, Ordering::SeqCst);
            if *desk.open.borrow() {
                self.write().await;
            }
            desk.busy.fetch_sub(1, Ordering::SeqCst);
        }
    }

    async fn write(&mut self) {
        let kind = match self.rng.u8(0..10) {
            0..5 => config_maps(),
            5..9 => widgets(),
            _ => pods(),
        };
        let namespace = NAMESPACES[self.rng.usize(..NAMESPACES.len())];
        let key: ObjectKey = (namespace, &*format!("w{}-{}", self.number, self.rng.u32(..NAMES))).into();
        let at = (kind, key);
        let life = self.desk.life();
        let done = self.change(&at).await;
        match done {
            Ok(done) => {
                self.desk.ledger.writes.fetch_add(1, Ordering::Relaxed);
                let murky = self.murky.get(&at).is_some_and(|since| *since == life);
                if self.rng.u8(0..4) == 0 && !murky {
                    self.await_write(&at, life, &done).await;
                }
            }
            // Believed to be what it is not: after a failure, or another life.
            Err(Refusal::Status(404)) => drop(self.present.remove(&at)),
            Err(Refusal::Status(409)) => drop(self.present.insert(at)),
            Err(_) => {
                self.desk.ledger.strike(Fault::WriteFailed);
                self.murky.insert(at, self.desk.life());
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        }
    }

    async fn change(&mut self, at: &(Kind, ObjectKey)) -> Result<Done, Refusal> {
        let (kind, key) = at;
        let all = collection(kind, key.namespace());
        let one = format!("{all}/{}", key.name());
        let color = COLORS[self.rng.usize(..COLORS.len())];
        self.writes += 1;
        let n = self.writes;
        if !self.present.contains(at) {
            let life = self.desk.life();
            let made = self.direct.ask("POST", &all, Some(&object(kind, key, color, n, None))).await?;
            self.present.insert(at.clone());
            if self.desk.life() == life {
                self.born(&made, life);
            }
            return Ok(stored(&made));
        }
        if self.rng.u8(0..4) == 0 {
            self.direct.ask("DELETE", &one, None).await?;
            self.present.remove(at);
            return Ok(Done::Deleted);
        }
        let mut patch = json!({"metadata": {"labels": {"color": color}}});
        if kind.plural == "pods" {
            patch["metadata"]["annotations"] = json!({"n": n.to_string()});
        } else {
            patch[content_field(kind)] = json!({"n": n.to_string(), "color": color});
        }
        Ok(stored(&self.direct.ask("PATCH", &one, Some(&patch)).await?))
    }

    fn born(&self, made: &Value, life: u64) {
        if let Some(uid) = made["metadata"]["uid"].as_str() {
            self.desk.ledger.born(uid.into(), life);
        }
    }

    /// An informer says that it shows the write: then it does.
    async fn await_write(&mut self, (kind, key): &(Kind, ObjectKey), life: u64, done: &Done) {
        let namespace = key.namespace().unwrap_or_default();
        // Who does not select the object hears of the version with the next bookmark only: a wait that may well be in
        // vain, so there are few of those.
        let bookmarks = self.rng.u8(0..8) == 0;
        let candidates: Vec<_> = {
            let watched = lock(&self.desk.watched);
            let fits = |watched: &&Watched| {
                watched.plan.kind == *kind
                    && watched.plan.covers_namespace(namespace)
                    && (bookmarks || done.is_selected(watched.plan.color))
                    // A version of another life means nothing, and nobody who awaits one can know.
                    && watched.life(namespace) == Some(life)
            };
            watched.iter().filter(fits).cloned().collect()
        };
        let Some(watched) = self.rng.choice(candidates) else { return };
        self.desk.ledger.awaited.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let waiting = async {
            match done {
                Done::Stored { version, .. } => {
                    let version = ResourceVersion::from(*version);
                    watched.informer.reached_version(key, &version, WITHIN).await
                }
                Done::Deleted => watched.informer.wait_until(key, WITHIN, |object| object.is_none()).await,
            }
        };
        let result = tokio::time::timeout(WITHIN + SLACK, waiting).await;
        let same_life = || self.desk.life() == life && watched.life(namespace) == Some(life);
        let complaint = match result {
            Err(_) => Some("hangs".to_owned()),
            Ok(Ok(())) if same_life() => self.look(&watched, key, done),
            Ok(Err(WaitError::Timeout { .. })) if began.elapsed() < WITHIN => {
                Some("gave up early".to_owned())
            }
            Ok(Err(WaitError::Stopped { .. })) if !watched.informer.is_stopped() => {
                Some("says it has stopped".to_owned())
            }
            Ok(Err(WaitError::Failed { why, .. })) => Some(why),
            Ok(Err(WaitError::OutOfScope { .. })) => Some("says it does not cover it".to_owned()),
            Ok(_) => None,
        };
        if let Some(complaint) = complaint {
            self.desk.ledger.fail(format_args!("{}: awaiting {key}: {complaint}", watched.plan.name));
        }
    }

    /// Nobody else writes this object, so the cache shows just what was written.
    fn look(&self, watched: &Watched, key: &ObjectKey, done: &Done) -> Option<String> {
        let shown = watched.informer.lister().get(key).and_then(|object| object.resource_version().number());
        let expected = match done {
            Done::Stored { version, .. } => done.is_selected(watched.plan.color).then_some(*version),
            Done::Deleted => None,
        };
        (shown != expected).then(|| format!("said to be {expected:?}, but the cache shows {shown:?}"))
    }
}

fn stored(object: &Value) -> Done {
    let metadata = &object["metadata"];
    let version = metadata["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
    Done::Stored { version, color: metadata["labels"]["color"].as_str().unwrap_or_default().to_owned() }
}
