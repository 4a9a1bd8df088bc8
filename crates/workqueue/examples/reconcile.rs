//! A small controller: a desired state, an unreliable server that stores the actual state, and a queue between them.
//!
//! Run with `cargo run -p kube-workqueue --example reconcile`.

#![allow(clippy::print_stdout)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use kube_workqueue::{Priority, WorkQueue};

#[derive(Debug)]
struct Refused {
    attempt: u32,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the server refused attempt {}", self.attempt)
    }
}

impl std::error::Error for Refused {}

/// Accepts every third attempt.
#[derive(Default)]
struct FlakyServer {
    attempts: RefCell<u32>,
    replicas: RefCell<BTreeMap<&'static str, u32>>,
}

impl FlakyServer {
    fn scale(&self, name: &'static str, replicas: u32) -> Result<(), Refused> {
        let attempt = self.attempts.replace_with(|attempts| *attempts + 1) + 1;
        if !attempt.is_multiple_of(3) {
            return Err(Refused { attempt });
        }
        self.replicas.borrow_mut().insert(name, replicas);
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let desired = BTreeMap::from([("web", 3), ("cache", 1), ("batch", 8)]);
    let server = FlakyServer::default();
    let queue = WorkQueue::named("deployments");

    // Every deployment once with low priority; then an urgent change.
    desired.keys().for_each(|name| queue.add_with(*name, Priority::LOW));
    queue.add_with("web", Priority::HIGH);

    queue
        .run_workers(2, async |name: &'static str| {
            let Some(&replicas) = desired.get(name) else { return Ok(()) };
            match server.scale(name, replicas) {
                Ok(()) => println!("{name}: {replicas} replicas"),
                Err(refused) => {
                    println!("{name}: {refused}, {} failures before", queue.num_requeues(&name));
                    return Err(refused.into());
                }
            }
            Ok(())
        })
        .until(async {
            while server.replicas.borrow().len() < desired.len() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    assert_eq!(*server.replicas.borrow(), desired);
    println!("as desired, after {} attempts", server.attempts.borrow());
}
