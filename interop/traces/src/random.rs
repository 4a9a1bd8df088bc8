//! Scripts made up from a seed.
//!
//! They keep clear of what is known to differ: of a relist every object that is still there has changed, and none
//! was created again unseen. Everything else is up to chance.

use crate::script::{
    AddHandler, Answer, Cut, Delete, Expired, Fault, InformerSetup, Put, Refusal, Request, Script,
    ServerSetup, Step, Streaming, Unordered,
};
use std::collections::BTreeSet;

const KEYS: [&str; 8] = ["bank/a", "bank/b", "bank/c", "shop/a", "shop/b", "shop/c", "shop/d", "shop/e"];
const LABELS: [&str; 3] = ["web", "db", "mail"];
const NODES: [&str; 2] = ["n1", "n2"];
const ROUNDS: u32 = 7;
/// Waits of client-go in one script: they double, and do not start over when things go well.
const MOST_WAITS: u32 = 2;

/// The script of a seed.
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
    let author = Author {
        rng,
        streaming,
        one_collection,
        present: BTreeSet::new(),
        guests: Vec::new(),
        waits: 0,
        steps: Vec::new(),
    };
    Script {
        name: format!("random-{seed}"),
        purpose: "made up".into(),
        server,
        informer,
        steps: author.write(),
        // A server that refuses streaming lists is asked for them by client-go again and again.
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

/// Writes one script.
struct Author {
    rng: fastrand::Rng,
    streaming: Streaming,
    /// Whether all requests are about one collection: only then is it certain who is refused.
    one_collection: bool,
    /// What exists on the server.
    present: BTreeSet<&'static str>,
    /// Handlers that came late, or not if they have been removed.
    guests: Vec<Option<String>>,
    waits: u32,
    steps: Vec<Step>,
}

impl Author {
    fn write(mut self) -> Vec<Step> {
        self.steps.push(Step::Bookmark(10));
        self.changes(8);
        self.add("h", false);
        self.add("filtered", true);
        self.steps.push(Step::Start);
        let fill = if self.streaming == Streaming::Yes { Unordered::Initial } else { Unordered::InOrder };
        self.steps.push(Step::Settle(fill));
        for _ in 0..ROUNDS {
            self.round();
        }
        self.steps
    }

    fn round(&mut self) {
        match self.rng.u32(0..8) {
            0 | 1 => self.changes(6),
            2 | 3 => self.outage(),
            4 if self.waits < MOST_WAITS => return self.relist(),
            5 => return self.guest_comes(),
            6 => self.guest_goes(),
            _ => self.steps.push(Step::Cut(Cut::Clean)),
        }
        self.steps.push(Step::Settle(Unordered::InOrder));
    }

    /// Changes that can be seen, one by one.
    fn changes(&mut self, most: u32) {
        for _ in 0..self.rng.u32(0..=most) {
            let key = KEYS[self.rng.usize(..KEYS.len())];
            if self.present.contains(key) && self.rng.u32(0..3) == 0 {
                self.delete(key);
            } else {
                self.put(key);
            }
        }
    }

    /// The watch ends and is resumed; what happened meanwhile is replayed.
    fn outage(&mut self) {
        let cut = if self.rng.bool() { Cut::Clean } else { Cut::Broken };
        self.steps.extend([Step::Hold, Step::Cut(cut)]);
        self.changes(6);
        if self.waits < MOST_WAITS && self.rng.u32(0..4) == 0 {
            self.waits += 1;
            self.refuse(Request::Watch, 429, "TooManyRequests");
        }
        self.steps.push(Step::Release);
    }

    /// The watch cannot be resumed; only the outcome of what happened meanwhile is seen.
    fn relist(&mut self) {
        self.waits += 1;
        self.steps.push(Step::Hold);
        let expired = Refusal { code: 410, reason: "Expired".into(), cause: None, retry_after: None };
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
            (0, Streaming::Yes) => self.refuse(Request::Stream, 500, "InternalError"),
            (0, _) => self.refuse(Request::NextPage, 410, "Expired"),
            _ => {}
        }
        // Something the watch has missed for certain, so that it cannot just go on.
        self.put("shop/relist");
        let order =
            if self.streaming == Streaming::Yes { Unordered::Relist } else { Unordered::RelistInOrder };
        self.steps.extend([Step::Compact, Step::Release, Step::Settle(order)]);
        self.delete("shop/relist");
        self.steps.push(Step::Settle(Unordered::InOrder));
    }

    fn refuse(&mut self, to: Request, code: u16, reason: &str) {
        if self.one_collection {
            let refusal = Refusal { code, reason: reason.into(), cause: None, retry_after: None };
            self.steps.push(Step::Refuse(Fault { to, with: Answer::Status(refusal), times: 1 }));
        }
    }

    fn guest_comes(&mut self) {
        let name = format!("guest{}", self.guests.len());
        let filtered = self.rng.bool();
        self.add(&name, filtered);
        self.guests.push(Some(name));
        self.steps.push(Step::Settle(Unordered::Initial));
    }

    fn guest_goes(&mut self) {
        let gone = self.guests.iter_mut().find_map(Option::take);
        self.steps.extend(gone.map(Step::Remove));
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
    fn a_seed_is_a_script() {
        assert_eq!(random(7).to_json(), random(7).to_json());
        assert_ne!(random(7).to_json(), random(8).to_json());
        let parsed: Script = serde_json::from_str(&random(7).to_json()).unwrap();
        assert_eq!(parsed.to_json(), random(7).to_json());
    }

    #[test]
    fn everything_that_may_happen_does() {
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
            let having = scripts.iter().filter(|script| script.contains(&format!("\"{word}\""))).count();
            assert!(having >= 10, "{word} in {having} of 200");
        }
    }
}
