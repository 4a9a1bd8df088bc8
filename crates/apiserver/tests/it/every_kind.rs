//! Promises that hold for every kind, checked for each of them: the list of kinds is the served discovery.

mod lifecycle;
mod protobuf;
mod representations;
mod writes;

use serde_json::Value;

use crate::cluster::Cluster;

const SAMPLES: &str = include_str!("../samples.json");

/// A built-in kind whose objects are stored.
#[derive(Debug, Clone)]
struct Kind {
    api_version: String,
    kind: String,
    plural: String,
    namespaced: bool,
    verbs: Vec<String>,
    subresources: Vec<String>,
}

impl Kind {
    /// The collection in the namespace `default`, or of the cluster.
    fn path(&self) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        let namespace = if self.namespaced { "namespaces/default/" } else { "" };
        format!("/{root}/{}/{namespace}{}", self.api_version, self.plural)
    }

    /// A valid object. Some kinds determine its name.
    fn sample(&self) -> Value {
        let samples: Value = serde_json::from_str(SAMPLES).expect("JSON");
        let mut object = samples[format!("{}/{}", self.api_version, self.kind)].clone();
        assert!(object.is_object(), "{} {}: add a sample", self.api_version, self.kind);
        object["apiVersion"] = self.api_version.as_str().into();
        object["kind"] = self.kind.as_str().into();
        if object["metadata"]["name"].is_null() {
            object["metadata"]["name"] = "sample".into();
        }
        if self.namespaced {
            object["metadata"]["namespace"] = "default".into();
        }
        object
    }

    fn object_path(&self) -> String {
        format!("{}/{}", self.path(), self.sample()["metadata"]["name"].as_str().expect("a name"))
    }

    /// Whether another kind has the same objects.
    fn is_alias(&self) -> bool {
        ["events.k8s.io/v1", "autoscaling/v1"].contains(&self.api_version.as_str())
    }

    fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|subresource| subresource == name)
    }
}

/// Every kind that can be created, as discovery lists them.
async fn kinds(c: &Cluster) -> Vec<Kind> {
    let (_, groups) = c.get("/apis").await;
    let versions = groups["groups"].as_array().expect("groups").iter().flat_map(|group| {
        group["versions"]
            .as_array()
            .expect("versions")
            .iter()
            .map(|v| format!("/apis/{}", text(&v["groupVersion"])))
    });
    let mut kinds = Vec::new();
    for path in std::iter::once("/api/v1".to_owned()).chain(versions) {
        let (_, list) = c.get(&path).await;
        let resources = list["resources"].as_array().expect("resources");
        for resource in resources.iter().filter(|r| !text(&r["name"]).contains('/')) {
            let plural = text(&resource["name"]);
            let verbs: Vec<String> = resource["verbs"].as_array().expect("verbs").iter().map(text).collect();
            if !["create", "get"].iter().all(|verb| verbs.iter().any(|v| v == verb)) {
                continue;
            }
            let below = format!("{plural}/");
            let subresources =
                resources.iter().filter_map(|r| Some(text(&r["name"]).strip_prefix(&below)?.to_owned()));
            kinds.push(Kind {
                api_version: text(&list["groupVersion"]),
                kind: text(&resource["kind"]),
                namespaced: resource["namespaced"] == true,
                subresources: subresources.collect(),
                plural,
                verbs,
            });
        }
    }
    kinds
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

/// Creates the sample of a kind.
async fn create(c: &Cluster, kind: &Kind) -> Value {
    let (code, created) = c.post(&kind.path(), kind.sample()).await;
    assert_eq!(code, 201, "{}: {created}", kind.kind);
    created
}

/// An object without the fields that every write changes.
fn without_versions(object: &Value) -> Value {
    let mut object = object.clone();
    for field in ["resourceVersion", "managedFields", "generation"] {
        object["metadata"].as_object_mut().expect("metadata").remove(field);
    }
    object
}

#[tokio::test(start_paused = true)]
async fn all_kinds_are_found() {
    let c = Cluster::new().await;
    let kinds = kinds(&c).await;
    let samples: Value = serde_json::from_str(SAMPLES).expect("JSON");
    assert_eq!(kinds.len(), samples.as_object().expect("samples").len());
    assert!(kinds.iter().all(|kind| kind.verbs.len() >= 7), "{kinds:?}");
    let with_status = kinds.iter().filter(|kind| kind.has_subresource("status")).count();
    assert!(with_status > 20, "{with_status} kinds have a status");
}
