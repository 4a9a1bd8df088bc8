//! A small controller that writes back what it finds wrong.

use crate::{cluster::Cluster, cluster::send, history::color_name, log::Log, totals::Fault};
use http::Method;
use http_body_util::BodyExt;
use kube_informer::{Lister, ObjectKey};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// The color that no object may keep, and the one it gets.
const WRONG: u64 = 0;
const RIGHT: u64 = 1;

/// How long it waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Gives objects another color, over the same network that everybody has.
///
/// It reads its cache, writes the next state of what it found there, and is told if that is no longer the newest.
/// At rest no object has the wrong color, whatever got lost on the way.
#[derive(Clone)]
pub(crate) struct Operator {
    lister: Lister<Value>,
    cluster: Arc<Cluster>,
    client: kube::Client,
    log: Arc<Log>,
}

impl Operator {
    pub(crate) fn new(lister: Lister<Value>, cluster: &Arc<Cluster>, log: &Arc<Log>) -> Self {
        let client = cluster.network().writer();
        Self { lister, cluster: Arc::clone(cluster), client, log: Arc::clone(log) }
    }

    /// Looks at one object.
    pub(crate) async fn reconcile(&self, key: &ObjectKey) -> Result<(), &'static str> {
        let Some(object) = self.lister.get(key) else { return Ok(()) };
        if object.labels().get("color") != Some(&color_name(WRONG)) {
            return Ok(());
        }
        let mut next = self.cluster.object(key, self.cluster.next_stamp(), RIGHT);
        next["metadata"]["resourceVersion"] = object.resource_version().to_string().into();
        next["metadata"]["uid"] = object.uid().to_string().into();
        drop(object);
        let request = send(Method::PUT, &self.cluster.path(key), "application/json", &next);
        let epoch = self.cluster.truth().lock().history.epoch();
        let answer = async {
            let response = self.client.send(request).await.ok()?;
            let code = response.status().as_u16();
            Some((code, response.into_body().collect().await.ok()?.to_bytes()))
        };
        let answer = tokio::time::timeout(PATIENCE, answer).await.map_err(|_| "no answer")?;
        match answer.ok_or("the connection broke")? {
            // A page for people says nothing about the object.
            (200, body) if !body.starts_with(b"{") => Err("not an answer of the server"),
            (200, body) if self.cluster.truth().lock().history.epoch() == epoch => {
                self.cluster.confirm(&body);
                Ok(())
            }
            // Another store was put in place of that one.
            (200, _) => Ok(()),
            (409, _) => {
                self.log.strike(Fault::Conflict);
                Err("somebody was faster")
            }
            // It may be gone: then the cache will hear of it, and there is nothing to do.
            _ => Err("refused"),
        }
    }

    /// No object has the wrong color.
    pub(crate) fn check(&self) -> Result<(), String> {
        let known = self.cluster.truth().lock();
        let wrong = known.history.current().values().find(|write| !write.odd && write.color == WRONG);
        wrong.map_or(Ok(()), |write| Err(format!("{} n={} still has the wrong color", write.key, write.n)))
    }
}
