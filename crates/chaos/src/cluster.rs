//! What is in the cluster: kinds, namespaces, and how to ask the server about them without anything in between.

use crate::door::Door;
use kube_informer::{Kind, ObjectKey};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt, time::Duration};

/// Names that sort one way as text and another way as paths.
pub(crate) const NAMESPACES: [&str; 4] = ["a", "a-b", "ab", "default"];
pub(crate) const COLORS: [&str; 3] = ["blue", "green", "red"];

/// In every namespace there is an object of this name, of every kind and every color, whose label `life` tells the
/// life of the server: a cache that shows it is past the restart.
pub(crate) fn canary(namespace: &str, color: &str) -> ObjectKey {
    ObjectKey::namespaced(namespace, &format!("canary-{color}"))
}

/// How long one request may take, a server that is away included.
const REQUEST: Duration = Duration::from_secs(10);

pub(crate) fn config_maps() -> Kind {
    Kind::namespaced("", "v1", "ConfigMap", "configmaps")
}

pub(crate) fn widgets() -> Kind {
    Kind::namespaced("chaos.example", "v1", "Widget", "widgets")
}

pub(crate) fn pods() -> Kind {
    Kind::namespaced("", "v1", "Pod", "pods")
}

/// Where random content is in an object of a kind.
pub(crate) fn content_field(kind: &Kind) -> &'static str {
    if kind.plural == "configmaps" { "data" } else { "spec" }
}

/// What a LIST shows: objects as JSON.
pub(crate) type Listed = BTreeMap<ObjectKey, Value>;

/// A connection to the server that nothing disturbs.
#[derive(Clone)]
pub(crate) struct Direct {
    client: kube::Client,
}

/// A request that was not done.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The server said no; nothing has happened.
    Status(u16),
    /// Nobody knows whether it has been done.
    Unknown(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(code) => write!(f, "the server says {code}"),
            Self::Unknown(why) => f.write_str(why),
        }
    }
}

impl Direct {
    pub(crate) fn new(door: impl Into<Door>) -> anyhow::Result<Self> {
        Ok(Self { client: kube::Client::try_from(door.into().config()?)? })
    }

    /// One request with an answer in JSON.
    pub(crate) async fn ask(&self, verb: &str, path: &str, body: Option<&Value>) -> Result<Value, Refusal> {
        let content = if verb == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(verb).uri(path).header("Content-Type", content);
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = request.body(body).map_err(|error| Refusal::Unknown(error.to_string()))?;
        match tokio::time::timeout(REQUEST, self.client.request::<Value>(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(kube::Error::Api(status))) if status.code < 500 => Err(Refusal::Status(status.code)),
            Ok(Err(error)) => Err(Refusal::Unknown(error.to_string())),
            Err(_) => Err(Refusal::Unknown("no answer".to_owned())),
        }
    }

    /// Everything of a kind, and its version.
    pub(crate) async fn list(&self, kind: &Kind) -> anyhow::Result<(u64, Listed)> {
        let (version, listed, _) = self.list_page(kind, "").await?;
        Ok((version, listed))
    }

    /// One page of a kind, its version, and how to ask for the next page, if there is one.
    pub(crate) async fn list_page(
        &self,
        kind: &Kind,
        query: &str,
    ) -> anyhow::Result<(u64, Listed, Option<String>)> {
        let answer = self.ask("GET", &format!("{}{query}", collection(kind, None)), None).await;
        let mut answer = answer.map_err(|error| anyhow::anyhow!("cannot list {kind}: {error}"))?;
        let metadata = &answer["metadata"];
        let version = metadata["resourceVersion"].as_str().unwrap_or_default().parse()?;
        let next = metadata["continue"].as_str().filter(|token| !token.is_empty()).map(str::to_owned);
        let items = answer["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let listed = items.into_iter().map(|mut item| {
            item["apiVersion"] = kind.api_version().into();
            item["kind"] = kind.kind.clone().into();
            (key_of(&item), item)
        });
        Ok((version, listed.collect(), next))
    }

    /// Namespaces, the definition of widgets, canaries: what a new life of the server begins with.
    pub(crate) async fn furnish(&self, life: u64) -> anyhow::Result<()> {
        for name in NAMESPACES {
            self.make("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await?;
        }
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.make(definitions, &definition()).await?;
        for kind in [config_maps(), widgets(), pods()] {
            for namespace in NAMESPACES {
                for color in COLORS {
                    let canary = object(&kind, &canary(namespace, color), color, 0, Some(life));
                    self.make(&collection(&kind, Some(namespace)), &canary).await?;
                }
            }
        }
        Ok(())
    }

    /// Creates something that should be there; patiently, since a definition takes a moment to be in force.
    async fn make(&self, path: &str, object: &Value) -> anyhow::Result<()> {
        for _ in 0..200 {
            match self.ask("POST", path, Some(object)).await {
                Ok(_) | Err(Refusal::Status(409)) => return Ok(()),
                Err(Refusal::Status(400 | 403 | 422)) => break,
                Err(_) => tokio::time::sleep(Duration::from_millis(25)).await,
            }
        }
        anyhow::bail!(
            "cannot create {} at {path}; does the server still take writes?",
            object["metadata"]["name"]
        )
    }
}

/// A client as informers want it.
pub(crate) fn informer_client(door: impl Into<Door>) -> anyhow::Result<kube::Client> {
    Ok(kube_informer::informer_client(door.into().config()?)?)
}

pub(crate) fn collection(kind: &Kind, namespace: Option<&str>) -> String {
    let root = if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
    let part = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
    format!("{root}/{}/{part}{}", kind.version, kind.plural)
}

pub(crate) fn key_of(object: &Value) -> ObjectKey {
    let metadata = &object["metadata"];
    ObjectKey::new(metadata["namespace"].as_str(), metadata["name"].as_str().unwrap_or_default())
}

/// An object as it is created.
pub(crate) fn object(kind: &Kind, key: &ObjectKey, color: &str, n: u64, life: Option<u64>) -> Value {
    let mut labels = json!({"color": color});
    if let Some(life) = life {
        labels["life"] = life.to_string().into();
    }
    let content = if kind.plural == "pods" {
        json!({"containers": [{"name": "c", "image": "i"}], "nodeName": color})
    } else {
        json!({"n": n.to_string(), "color": color})
    };
    json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {"name": key.name(), "namespace": key.namespace(), "labels": labels},
        content_field(kind): content,
    })
}

fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"plural": "widgets", "singular": "widget", "kind": "Widget"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.chaos.example"},
        "spec": {"group": "chaos.example", "scope": "Namespaced", "names": names, "versions": [version]},
    })
}
