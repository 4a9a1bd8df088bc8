//! The traffic of each attack.

use anyhow::Context;
use futures_util::future::join_all;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

use super::{Attack, connections::Connection, server::AttackedServer};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The attacker.
pub(super) struct Traffic<'s> {
    pub(super) server: &'s AttackedServer,
    pub(super) client: kube::Client,
    pub(super) quick: bool,
}

impl Traffic<'_> {
    fn size(&self, quick: usize, full: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// Creates the objects of an attack.
    pub(super) async fn prepare(&self, attack: Attack) -> anyhow::Result<()> {
        match attack {
            Attack::UnauthenticatedConnections | Attack::LargePatches | Attack::Definitions => Ok(()),
            Attack::Defaults => self.create(DEFINITIONS, definition("defaulted", defaults())).await,
            Attack::UnreadWatches => {
                let secret = json!({"metadata": {"name": "large"}, "stringData": {"k": "x".repeat(650_000)}});
                self.create(SECRETS, secret).await
            }
            Attack::EncodedLists => {
                for n in 0..self.size(1500, 25_000) {
                    let map =
                        json!({"metadata": {"name": format!("map-{n}")}, "data": {"k": "x".repeat(300)}});
                    self.create(MAPS, map).await?;
                }
                Ok(())
            }
        }
    }

    /// Runs the attack to its end. Returns what it did.
    pub(super) async fn attack(&self, attack: Attack) -> anyhow::Result<String> {
        match attack {
            Attack::UnauthenticatedConnections => self.unauthenticated_connections().await,
            Attack::LargePatches => self.large_patches().await,
            Attack::Defaults => self.defaults().await,
            Attack::UnreadWatches => self.unread_watches().await,
            Attack::EncodedLists => self.encoded_lists().await,
            Attack::Definitions => self.definitions().await,
        }
    }

    async fn unauthenticated_connections(&self) -> anyhow::Result<String> {
        let mut held = Vec::new();
        for _ in 0..self.size(400, 1500) {
            // A connection that the server closes at once is part of the attack.
            if let Ok(mut connection) = Connection::open(self.server.address).await
                && let Ok(response) = connection.get("/healthz", &[]).await
            {
                held.push((connection, response));
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(format!("{} connections received a response", held.len()))
    }

    async fn large_patches(&self) -> anyhow::Result<String> {
        let count = self.size(1000, 10_000);
        let container = |n: usize| json!({"name": format!("c{n}"), "image": "i"});
        let pod = json!({"metadata": {"name": "large"}, "spec": {"containers": (0..count / 2).map(container).collect::<Vec<_>>()}});
        let created = self.send("POST", PODS, "application/json", pod).await?;
        let patch = json!({"spec": {"containers": (0..count).rev().map(container).collect::<Vec<_>>()}});
        let labels: serde_json::Map<String, Value> =
            (0..4 * count).map(|n| (format!("bad label {n}"), json!("-"))).collect();
        let invalid = json!({"metadata": {"name": "invalid", "labels": labels}});
        let strategic = "application/strategic-merge-patch+json";
        let path = format!("{PODS}/large");
        let patches = (0..3).map(|_| self.send("PATCH", &path, strategic, patch.clone()));
        let invalid = (0..3).map(|_| self.send("POST", MAPS, "application/json", invalid.clone()));
        let (patched, invalid) = tokio::join!(join_all(patches), join_all(invalid));
        let codes = |results: Vec<anyhow::Result<u16>>| {
            results.into_iter().map(|result| result.unwrap_or_default()).collect::<Vec<_>>()
        };
        Ok(format!("create {created}, patches {:?}, invalid objects {:?}", codes(patched), codes(invalid)))
    }

    async fn defaults(&self) -> anyhow::Result<String> {
        let items: Vec<Value> = (0..self.size(20_000, 100_000)).map(|_| json!({})).collect();
        let object = json!({"apiVersion": "attack.example.com/v1", "kind": "Defaulted", "metadata": {"name": "a"}, "list": items});
        let path = "/apis/attack.example.com/v1/namespaces/default/defaulteds";
        let send = || self.send("POST", path, "application/json", object.clone());
        let codes: Vec<u16> =
            join_all((0..4).map(|_| send())).await.into_iter().map(|code| code.unwrap_or_default()).collect();
        Ok(format!("responses {codes:?}"))
    }

    async fn unread_watches(&self) -> anyhow::Result<String> {
        let authorization = AttackedServer::authorization();
        let path = format!("{SECRETS}?watch=1&resourceVersion=0");
        let mut held = Vec::new();
        for n in 0..self.size(2, 8) {
            let mut connection = Connection::open(self.server.address).await?;
            let accept = match n % 2 {
                0 => "application/json",
                _ => "application/vnd.kubernetes.protobuf;stream=watch",
            };
            for _ in 0..self.size(200, 250) {
                let headers = [("Authorization", authorization.as_str()), ("Accept", accept)];
                held.push(connection.get(&path, &headers).await.context("the watch was not opened")?);
            }
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(format!("{} watches", held.len()))
    }

    async fn encoded_lists(&self) -> anyhow::Result<String> {
        let authorization = AttackedServer::authorization();
        let accepts = [
            "application/json;as=Table;v=v1;g=meta.k8s.io",
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
        ];
        let client = async |n: usize| -> anyhow::Result<usize> {
            let mut connection = Connection::open(self.server.address).await?;
            let mut bytes = 0;
            for round in 0..self.size(2, 5) {
                let accept = accepts[(n + round) % accepts.len()];
                let headers = [("Authorization", authorization.as_str()), ("Accept", accept)];
                let response = connection.get(MAPS, &headers).await?;
                bytes += response.into_body().collect().await?.to_bytes().len();
            }
            Ok(bytes)
        };
        let read = join_all((0..self.size(6, 10)).map(client)).await;
        let bytes: usize = read.into_iter().collect::<anyhow::Result<Vec<_>>>()?.into_iter().sum();
        Ok(format!("{} MB of lists", bytes / 1_000_000))
    }

    async fn definitions(&self) -> anyhow::Result<String> {
        let count = self.size(100, 800);
        let mut times = Vec::new();
        for n in 0..count {
            let began = Instant::now();
            let schema = json!({"type": "object"});
            self.create(DEFINITIONS, definition(&format!("thing{n}"), schema)).await?;
            times.push(began.elapsed());
        }
        let mean =
            |times: &[Duration]| times.iter().sum::<Duration>().as_secs_f64() * 1000.0 / times.len() as f64;
        let part = count / 5;
        let (first, last) = (mean(&times[..part]), mean(&times[count - part..]));
        Ok(format!(
            "the first {part} took {first:.1} ms each, the last {last:.1} ms, ratio {:.1}",
            last / first
        ))
    }

    async fn create(&self, path: &str, object: Value) -> anyhow::Result<()> {
        let code = self.send("POST", path, "application/json", object).await?;
        anyhow::ensure!(code == 201, "POST {path} returned {code}");
        Ok(())
    }

    async fn send(&self, method: &str, path: &str, media: &str, body: Value) -> anyhow::Result<u16> {
        let request = http::Request::builder().method(method).uri(path).header("Content-Type", media);
        let request = request.body(kube::client::Body::from(body.to_string().into_bytes()))?;
        let response = self.client.send(request).await?;
        Ok(response.status().as_u16())
    }
}

/// A schema with a list whose items have 100 defaults of 200 bytes.
fn defaults() -> Value {
    let fields: serde_json::Map<String, Value> =
        (0..100).map(|n| (format!("f{n}"), json!({"type": "string", "default": "x".repeat(200)}))).collect();
    let items = json!({"type": "object", "properties": fields});
    json!({"type": "object", "properties": {"list": {"type": "array", "items": items}}})
}

fn definition(name: &str, schema: Value) -> Value {
    let mut kind = name.to_owned();
    kind[..1].make_ascii_uppercase();
    let plural = format!("{name}s");
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.attack.example.com")},
        "spec": {"group": "attack.example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}
