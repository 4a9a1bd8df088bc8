//! The test cluster: its kinds and objects, and a client for them that bypasses the proxies.

use crate::endpoint::Endpoint;
use harness::NAMESPACES;
use kube_informer::{Kind, ObjectKey};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt, time::Duration};

/// Values of the label `color`.
pub(crate) const COLORS: [&str; 3] = ["blue", "green", "red"];

/// The key of an object whose label `epoch` is the epoch of the server, which counts the times it lost its data.
///
/// One exists for each kind, namespace and color. A cache with the label of the current epoch has seen the restart.
pub(crate) fn canary(namespace: &str, color: &str) -> ObjectKey {
    ObjectKey::namespaced(namespace, &format!("canary-{color}"))
}

/// Limit for one request, including the time in which the server is down.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn config_maps() -> Kind {
    Kind::namespaced("", "v1", "ConfigMap", "configmaps")
}

pub(crate) fn widgets() -> Kind {
    Kind::namespaced("chaos.example", "v1", "Widget", "widgets")
}

pub(crate) fn pods() -> Kind {
    Kind::namespaced("", "v1", "Pod", "pods")
}

/// The field of an object with its random content.
pub(crate) fn content_field(kind: &Kind) -> &'static str {
    if kind.plural == "configmaps" { "data" } else { "spec" }
}

/// The objects of a LIST response, as JSON.
pub(crate) type Listing = BTreeMap<ObjectKey, Value>;

/// A client that connects to the server without a proxy.
#[derive(Clone)]
pub(crate) struct DirectClient {
    client: kube::Client,
}

/// A failed request.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The server rejected it and did nothing.
    Status(u16),
    /// The outcome is unknown.
    Unknown(String),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(code) => write!(f, "the server returned {code}"),
            Self::Unknown(why) => f.write_str(why),
        }
    }
}

impl DirectClient {
    pub(crate) fn new(endpoint: impl Into<Endpoint>) -> anyhow::Result<Self> {
        Ok(Self { client: kube::Client::try_from(endpoint.into().config()?)? })
    }

    /// Sends a request and returns the JSON of the response.
    pub(crate) async fn request(
        &self,
        verb: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, RequestError> {
        let content = if verb == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(verb).uri(path).header("Content-Type", content);
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = request.body(body).map_err(|error| RequestError::Unknown(error.to_string()))?;
        match tokio::time::timeout(REQUEST_TIMEOUT, self.client.request::<Value>(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(kube::Error::Api(status))) if status.code < 500 => Err(RequestError::Status(status.code)),
            Ok(Err(error)) => Err(RequestError::Unknown(error.to_string())),
            Err(_) => Err(RequestError::Unknown("no response".to_owned())),
        }
    }

    /// Lists a kind. Returns the resource version of the list and its objects.
    pub(crate) async fn list(&self, kind: &Kind) -> anyhow::Result<(u64, Listing)> {
        let (version, listed, _) = self.list_page(kind, "").await?;
        Ok((version, listed))
    }

    /// Lists one page. Returns the resource version, the objects, and the token of the next page.
    pub(crate) async fn list_page(
        &self,
        kind: &Kind,
        query: &str,
    ) -> anyhow::Result<(u64, Listing, Option<String>)> {
        let response = self.request("GET", &format!("{}{query}", collection(kind, None)), None).await;
        let mut response = response.map_err(|error| anyhow::anyhow!("cannot list {kind}: {error}"))?;
        let metadata = &response["metadata"];
        let version = metadata["resourceVersion"].as_str().unwrap_or_default().parse()?;
        let next = metadata["continue"].as_str().filter(|token| !token.is_empty()).map(str::to_owned);
        let items = response["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let listed = items.into_iter().map(|mut item| {
            item["apiVersion"] = kind.api_version().into();
            item["kind"] = kind.kind.clone().into();
            (key_of(&item), item)
        });
        Ok((version, listed.collect(), next))
    }

    /// Creates the objects that every epoch of the server starts with: namespaces, the CRD of widgets, and canaries.
    pub(crate) async fn create_fixtures(&self, epoch: u64) -> anyhow::Result<()> {
        for name in NAMESPACES {
            self.create("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await?;
        }
        self.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &widget_crd()).await?;
        for kind in [config_maps(), widgets(), pods()] {
            for namespace in NAMESPACES {
                for color in COLORS {
                    let canary = object(&kind, &canary(namespace, color), color, 0, Some(epoch));
                    self.create(&collection(&kind, Some(namespace)), &canary).await?;
                }
            }
        }
        Ok(())
    }

    /// Creates an object unless it exists. Retries, because a new CRD is not served at once.
    async fn create(&self, path: &str, object: &Value) -> anyhow::Result<()> {
        for _ in 0..200 {
            match self.request("POST", path, Some(object)).await {
                Ok(_) | Err(RequestError::Status(409)) => return Ok(()),
                Err(RequestError::Status(400 | 403 | 422)) => break,
                Err(_) => tokio::time::sleep(Duration::from_millis(25)).await,
            }
        }
        anyhow::bail!(
            "cannot create {} at {path}; check that the server accepts writes",
            object["metadata"]["name"]
        )
    }
}

/// A client with the config that informers need.
pub(crate) fn informer_client(endpoint: impl Into<Endpoint>) -> anyhow::Result<kube::Client> {
    Ok(kube_informer::informer_client(endpoint.into().config()?)?)
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

/// A new object.
pub(crate) fn object(kind: &Kind, key: &ObjectKey, color: &str, n: u64, epoch: Option<u64>) -> Value {
    let mut labels = json!({"color": color});
    if let Some(epoch) = epoch {
        labels["epoch"] = epoch.to_string().into();
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

fn widget_crd() -> Value {
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
