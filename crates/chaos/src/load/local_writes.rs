//! Writes to the embedded server from within its process.

use anyhow::Context;
use http::Request;
use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::time::MissedTickBehavior;

/// Concurrent writers.
const WRITERS: u64 = 2;
/// One write in this many deletes an object, which the next write to it recreates.
const WRITES_PER_DELETE: u64 = 20;

/// Counts of writes, and the newest resource version.
#[derive(Default)]
struct Written {
    creates: u64,
    updates: u64,
    deletes: u64,
    newest: u64,
}

/// Creates `count` small objects in `namespaces` namespaces.
pub(super) async fn fill(server: &ApiServer, count: u64, namespaces: u64) -> anyhow::Result<Value> {
    let client = server.local().client();
    for number in 0..namespaces {
        let body = json!({"metadata": {"name": namespace(number)}}).to_string().into_bytes();
        client.request::<Value>(Request::post("/api/v1/namespaces").body(body)?).await?;
    }
    let writers = (0..WRITERS).map(|writer| {
        let client = server.local().client();
        tokio::spawn(async move {
            for number in (writer..count).step_by(WRITERS as usize) {
                let request = Request::post(collection(number % namespaces)).body(body(number, 0))?;
                client.request_text(request).await?;
            }
            anyhow::Ok(())
        })
    });
    for writer in futures_util::future::join_all(writers).await {
        writer??;
    }
    Ok(json!({}))
}

/// Writes to existing objects, `rate` times per second (0 is as often as possible). Most writes are updates, some
/// delete an object or recreate it.
pub(super) async fn write(
    server: &ApiServer,
    writes: u64,
    rate: u64,
    objects: u64,
    namespaces: u64,
) -> anyhow::Result<Value> {
    let began = Instant::now();
    let writers = (0..WRITERS).map(|writer| {
        let part = Part { writer, writes: writes / WRITERS, rate: rate / WRITERS, objects, namespaces };
        tokio::spawn(part.write(server.local().client()))
    });
    let mut all = Written::default();
    for part in futures_util::future::join_all(writers).await {
        let part = part??;
        all.creates += part.creates;
        all.updates += part.updates;
        all.deletes += part.deletes;
        all.newest = all.newest.max(part.newest);
    }
    let Written { creates, updates, deletes, newest } = all;
    let (writes, seconds) = (creates + updates + deletes, began.elapsed().as_secs_f64());
    Ok(json!({"writes": writes, "creates": creates, "updates": updates, "deletes": deletes, "newest": newest,
        "seconds": seconds}))
}

/// The share of one writer. No two writers write the same object.
struct Part {
    writer: u64,
    writes: u64,
    rate: u64,
    objects: u64,
    namespaces: u64,
}

impl Part {
    async fn write(self, client: kube::Client) -> anyhow::Result<Written> {
        let mut written = Written::default();
        let mut rng = fastrand::Rng::with_seed(self.writer);
        let mut deleted = vec![false; self.objects as usize];
        let mut ticks = (self.rate > 0).then(|| {
            let mut ticks = tokio::time::interval(Duration::from_secs(1) / self.rate as u32);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            ticks
        });
        for n in 1..=self.writes {
            if let Some(ticks) = &mut ticks {
                ticks.tick().await;
            }
            let number = rng.u64(..self.objects / WRITERS) * WRITERS + self.writer;
            let (all, deleted) = (collection(number % self.namespaces), &mut deleted[number as usize]);
            let one = format!("{all}/{}", name(number));
            let request = match (*deleted, rng.u64(..WRITES_PER_DELETE)) {
                (true, _) => {
                    (*deleted, written.creates) = (false, written.creates + 1);
                    Request::post(all).body(body(number, n))
                }
                (false, 0) => {
                    (*deleted, written.deletes) = (true, written.deletes + 1);
                    Request::delete(one).body(Vec::new())
                }
                (false, _) => {
                    written.updates += 1;
                    Request::put(one).body(body(number, n))
                }
            };
            let response = client.request_text(request?).await.context("a write failed")?;
            written.newest = written.newest.max(version(&response));
        }
        Ok(written)
    }
}

/// The first resource version in a response, which is that of the object.
fn version(response: &str) -> u64 {
    let digits = response.split_once("\"resourceVersion\":\"").and_then(|(_, rest)| rest.split_once('"'));
    digits.and_then(|(digits, _)| digits.parse().ok()).unwrap_or(0)
}

pub(super) fn namespace(number: u64) -> String {
    format!("load-{number}")
}

fn name(number: u64) -> String {
    format!("object-{number:07}")
}

fn collection(number: u64) -> String {
    format!("/api/v1/namespaces/{}/configmaps", namespace(number))
}

fn body(number: u64, n: u64) -> Vec<u8> {
    let colors = ["blue", "green", "red"];
    let metadata = json!({"name": name(number), "labels": {"color": colors[(n % 3) as usize]}});
    let data = json!({"n": n.to_string(), "text": format!("the content of object {number}, small as it is")});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        .to_string()
        .into_bytes()
}
