//! Scripts generated from a seed.
//!
//! They avoid the known deviations: every object that a relist still contains has changed, and none was recreated
//! between two lists. Everything else is random.

use crate::script::{
    AddHandler, Cut, Delete, ErrorStatus, Expired, Fault, FaultResponse, InformerSetup, Put, RequestClass,
    Script, ServerSetup, Step, Streaming, Unordered,
};
use std::collections::BTreeSet;

const KEYS: [&str; 8] = ["bank/a", "bank/b", "bank/c", "shop/a", "shop/b", "shop/c", "shop/d", "shop/e"];
const LABELS: [&str; 3] = ["web", "db", "mail"];
const NODES: [&str; 2] = ["n1", "n2"];
const ROUNDS: u32 = 7;
/// Backoffs of client-go in one script. Their durations double and are not reset by success.
const MAX_BACKOFFS: u32 = 2;

/// Generates the script of a seed.
pub fn random(seed: u64) -> Script {
    let mut rng = fastrand::Rng::with_seed(seed);
    let streaming = if rng.bool() { Streaming::Yes } else { Streaming::No };
    let server = ServerSetup {
        streaming,
        page: (streaming == Streaming::No && rng.bool()).then_some(2),
        expired: if rng.bool() { Expired::InStream } else { Expired::Http },
    };
    let informer = informer(&mut rng);
    let one_collection = informer.namespaces.is_empty();
    let generator = Generator {
        rng,
        streaming,
        one_collection,
        present: BTreeSet::new(),
        late_handlers: Vec::new(),
        backoffs: 0,
        steps: Vec::new(),
    };
    Script {
        name: format!("random-{seed}"),
        purpose: "generated".into(),
        server,
        informer,
        steps: generator.steps(),
        // client-go repeats rejected streaming lists, at times that are not in the script.
        requests: streaming == Streaming::Yes,
        differs: Vec::new(),
    }
}

fn informer(rng: &mut fastrand::Rng) -> InformerSetup {
    let namespaces = if rng.u32(0..4) == 0 { vec!["bank".into(), "shop".into()] } else { Vec::new() };
    let selector = if rng.u32(0..4) == 0 { "app=web".into() } else { String::new() };
    let indexes = [("app".to_owned(), "label:app".to_owned()), ("node".to_owned(), "node".to_owned())].into();
    InformerSetup { namespaces, selector, resync_ms: None, indexes }
}

/// Generates one script.
struct Generator {
    rng: fastrand::Rng,
    streaming: Streaming,
    /// Whether all requests are for one collection: only then is it known which one a fault affects.
    one_collection: bool,
    /// The objects on the server.
    present: BTreeSet<&'static str>,
    /// Handlers that were added after the start; `None` if removed.
    late_handlers: Vec<Option<String>>,
    backoffs: u32,
    steps: Vec<Step>,
}

impl Generator {
    fn steps(mut self) -> Vec<Step> {
        self.steps.push(Step::Bookmark(10));
        self.changes(8);
        self.add("h", false);
        self.add("filtered", true);
        self.steps.push(Step::Start);
        let order = if self.streaming == Streaming::Yes { Unordered::Initial } else { Unordered::InOrder };
        self.steps.push(Step::Settle(order));
        for _ in 0..ROUNDS {
            self.round();
        }
        self.steps
    }

    fn round(&mut self) {
        match self.rng.u32(0..8) {
            0 | 1 => self.changes(6),
            2 | 3 => self.outage(),
            4 if self.backoffs < MAX_BACKOFFS => return self.relist(),
            5 => return self.add_late_handler(),
            6 => self.remove_late_handler(),
            _ => self.steps.push(Step::Cut(Cut::Clean)),
        }
        self.steps.push(Step::Settle(Unordered::InOrder));
    }

    /// Changes up to `max` objects.
    fn changes(&mut self, max: u32) {
        for _ in 0..self.rng.u32(0..=max) {
            let key = KEYS[self.rng.usize(..KEYS.len())];
            if self.present.contains(key) && self.rng.u32(0..3) == 0 {
                self.delete(key);
            } else {
                self.put(key);
            }
        }
    }

    /// Ends the watch, which is resumed: the changes in between are replayed.
    fn outage(&mut self) {
        let cut = if self.rng.bool() { Cut::Clean } else { Cut::Broken };
        self.steps.extend([Step::Hold, Step::Cut(cut)]);
        self.changes(6);
        if self.backoffs < MAX_BACKOFFS && self.rng.u32(0..4) == 0 {
            self.backoffs += 1;
            self.refuse(RequestClass::Watch, 429, "TooManyRequests");
        }
        self.steps.push(Step::Release);
    }

    /// Ends the watch, which cannot be resumed: the informer sees only the result of the changes in between.
    fn relist(&mut self) {
        self.backoffs += 1;
        self.steps.push(Step::Hold);
        let expired = ErrorStatus { code: 410, reason: "Expired".into(), cause: None, retry_after: None };
        self.steps.push(if self.rng.bool() { Step::Error(expired) } else { Step::Cut(Cut::Clean) });
        let mut keys = KEYS;
        self.rng.shuffle(&mut keys);
        for key in keys {
            match (self.present.contains(key), self.rng.u32(0..3)) {
                (true, 0) => self.delete(key),
                (true, times) => (0..times).for_each(|_| self.put(key)),
                (false, 0) => self.put(key),
                (false, _) => {}
            }
        }
        match (self.rng.u32(0..2), self.streaming) {
            (0, Streaming::Yes) => self.refuse(RequestClass::Stream, 500, "InternalError"),
            (0, _) => self.refuse(RequestClass::NextPage, 410, "Expired"),
            _ => {}
        }
        // A change that the watch has certainly missed, so that it cannot be resumed.
        self.put("shop/relist");
        let order =
            if self.streaming == Streaming::Yes { Unordered::Relist } else { Unordered::RelistInOrder };
        self.steps.extend([Step::Compact, Step::Release, Step::Settle(order)]);
        self.delete("shop/relist");
        self.steps.push(Step::Settle(Unordered::InOrder));
    }

    fn refuse(&mut self, to: RequestClass, code: u16, reason: &str) {
        if self.one_collection {
            let error = ErrorStatus { code, reason: reason.into(), cause: None, retry_after: None };
            self.steps.push(Step::Refuse(Fault { to, with: FaultResponse::Status(error), times: 1 }));
        }
    }

    fn add_late_handler(&mut self) {
        let name = format!("late{}", self.late_handlers.len());
        let filtered = self.rng.bool();
        self.add(&name, filtered);
        self.late_handlers.push(Some(name));
        self.steps.push(Step::Settle(Unordered::Initial));
    }

    fn remove_late_handler(&mut self) {
        let removed = self.late_handlers.iter_mut().find_map(Option::take);
        self.steps.extend(removed.map(Step::Remove));
    }

    fn add(&mut self, name: &str, filtered: bool) {
        let filter = if filtered { "app=web".to_owned() } else { String::new() };
        self.steps.push(Step::Add(AddHandler { handler: name.to_owned(), resync_ms: None, filter }));
    }

    fn put(&mut self, key: &'static str) {
        self.present.insert(key);
        let label = (self.rng.u32(0..4) > 0).then(|| LABELS[self.rng.usize(..LABELS.len())]);
        let labels = label.map(|label| ("app".to_owned(), label.to_owned())).into_iter().collect();
        let node = self.rng.bool().then(|| NODES[self.rng.usize(..NODES.len())].to_owned());
        self.steps.push(Step::Put(Put { key: key.to_owned(), at: None, labels, node }));
    }

    fn delete(&mut self, key: &'static str) {
        self.present.remove(key);
        self.steps.push(Step::Delete(Delete { key: key.to_owned(), at: None }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_gives_the_same_script() {
        assert_eq!(random(7).to_json(), random(7).to_json());
        assert_ne!(random(7).to_json(), random(8).to_json());
        let parsed: Script = serde_json::from_str(&random(7).to_json()).unwrap();
        assert_eq!(parsed.to_json(), random(7).to_json());
    }

    #[test]
    fn every_step_occurs() {
        let scripts: Vec<String> = (0..200).map(|seed| random(seed).to_json()).collect();
        let words = [
            "put",
            "delete",
            "hold",
            "clean",
            "broken",
            "compact",
            "error",
            "refuse",
            "next_page",
            "bank",
            "remove",
        ];
        for word in words {
            let count = scripts.iter().filter(|script| script.contains(&format!("\"{word}\""))).count();
            assert!(count >= 10, "{word} occurs in {count} of 200 scripts");
        }
    }
}
