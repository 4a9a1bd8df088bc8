//! Every way to say what an object is read as.

use crate::support::{secs, settle};
use k8s_openapi::api::core::v1::Pod;
use kube::core::{ApiResource, PartialObjectMeta};
use kube_informer::{
    InformerFactory, InformerOptions, Kind, Scope, kind_of, kind_of_discovered, testing::FakeSource,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::{Arc, Mutex};

#[derive(kube::CustomResource, Debug, Clone, Deserialize, Serialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus",
    schema = "disabled"
)]
struct WidgetSpec {
    size: u32,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
struct WidgetStatus {
    ready: bool,
}

/// Names only what it wants.
#[derive(Deserialize)]
struct Slim {
    spec: SlimSpec,
}

#[derive(Deserialize)]
struct SlimSpec {
    size: u32,
}

#[tokio::test(start_paused = true)]
async fn a_derived_custom_resource_is_read_as_itself_and_as_anything_else() {
    let kind = kind_of::<Widget>();
    assert_eq!(kind, Kind::namespaced("example.com", "v1", "Widget", "widgets"));
    let source = FakeSource::new(kind);
    source.put(json!({
        "metadata": {"namespace": "ns", "name": "a", "labels": {"app": "x"}},
        "spec": {"size": 3}, "status": {"ready": true}
    }));
    let fake = source.clone();
    let factory = InformerFactory::from_sources(move |_, _, namespace| fake.source(namespace)).build();
    let widgets = factory.of::<Widget>();
    let slim = factory.of_as::<Widget, Slim>();
    let dynamic = factory.dynamic(&ApiResource::erase::<Widget>(&()));
    let partial = dynamic.cast::<PartialObjectMeta<Widget>>();
    factory.start();
    factory.synced(secs(5)).await.unwrap();
    settle().await;
    assert_eq!(source.requests().len(), 1, "one watch serves them all");

    let key = "ns/a".parse().unwrap();
    let widget = widgets.lister().get(&key).unwrap().decode().unwrap();
    assert_eq!((widget.spec.size, widget.status.as_ref().unwrap().ready), (3, true));
    assert_eq!(widget.metadata.name.as_deref(), Some("a"));
    assert_eq!(slim.lister().get(&key).unwrap().decode().unwrap().spec.size, 3);
    let dynamic = dynamic.lister().get(&key).unwrap().decode().unwrap();
    assert_eq!(dynamic.data["spec"]["size"], 3);
    assert_eq!(dynamic.types.as_ref().unwrap().kind, "Widget");
    let partial = partial.lister().get(&key).unwrap().decode().unwrap();
    assert_eq!(partial.metadata.labels.as_ref().unwrap()["app"], "x");
    factory.shutdown().await;
}

/// Discovery knows what an `ApiResource` does not: whether the kind has namespaces.
#[tokio::test]
async fn a_kind_that_was_discovered_is_covered_whole_if_it_has_no_namespaces() {
    let server = kube_embedded_apiserver::ApiServer::start().await.unwrap();
    let client = server.client().unwrap();
    let group =
        kube::discovery::pinned_group(&client, &kube::core::GroupVersion::gv("", "v1")).await.unwrap();
    let discovered = |kind: &str| {
        let (resource, capabilities) = group.recommended_kind(kind).unwrap();
        kind_of_discovered(&resource, &capabilities)
    };
    assert_eq!(discovered("Pod"), kind_of::<Pod>());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let said = Arc::clone(&asked);
    let factory = InformerFactory::from_sources(move |origin, _, namespace| {
        said.lock().unwrap().push((origin.kind().plural.clone(), namespace.map(str::to_owned)));
        FakeSource::new(origin.kind().clone()).source(namespace)
    })
    .namespace("shop")
    .unwrap()
    .build();
    let options = |options: InformerOptions| options.scope(Scope::namespace("till").unwrap());
    factory.of_kind::<serde_json::Value>(discovered("Node"), options);
    factory.of_kind::<serde_json::Value>(discovered("Pod"), options);
    let asked = asked.lock().unwrap();
    assert_eq!(*asked, [("nodes".to_owned(), None), ("pods".to_owned(), Some("till".to_owned()))]);
}
