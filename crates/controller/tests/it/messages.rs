//! Errors and log lines that say what is wrong and what to do next.

use crate::support::{Log, NAMESPACE, Running, World, eventually, secs};
use harness::CapturedLog;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use kube_embedded_apiserver::{Fault, FaultRule, Verb};
use kube_informer::{InformerStatus, Kind, Object, SharedInformer};
use kube_informer_controller::{Action, BoxError, Context, Controller, LeaderElection, RunController};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::future::pending;
use tokio::time::Instant;
use tracing::Level;

async fn post(world: &World, path: &str, body: Value) {
    let request = http::Request::post(path).body(serde_json::to_vec(&body).unwrap()).unwrap();
    world.client.request::<Value>(request).await.unwrap();
}

/// Installs a CRD of namespaced widgets without a status subresource, and creates one.
async fn create_widget(world: &World) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    post(world, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}});
    post(world, "/apis/example.com/v1/namespaces/default/widgets", widget).await;
}

/// A controller that writes the status of widgets, and notes the failures.
fn status_writer(world: &World, informer: &SharedInformer<Value>, failures: &Log) -> RunController {
    let noted = failures.clone();
    Controller::new(informer, world.client.clone())
        .on_error(move |failure| noted.note(failure.cause.to_string()))
        .run(|widget: Object<Value>, context: Context| async move {
            context.update_status(&widget, &json!({"ready": true})).await?;
            Ok::<_, BoxError>(Action::done())
        })
}

fn widgets(world: &World, kind: Kind) -> SharedInformer<Value> {
    world.factory.of_kind(kind, |options| options)
}

#[tokio::test(start_paused = true)]
async fn a_status_write_without_the_subresource_has_a_hint() {
    let world = World::start().await;
    create_widget(&world).await;
    let informer = widgets(&world, Kind::namespaced("example.com", "v1", "Widget", "widgets"));
    let failures = Log::default();
    let running = Running::start(status_writer(&world, &informer, &failures));
    failures.reaches(2).await;
    for line in failures.lines() {
        let cause = "cannot update the status of widgets.example.com default/a: \
            the server could not find the requested resource (404); \
            does the CRD have `subresources: {status: {}}`, and is its scope that of the type?";
        assert_eq!(line, cause);
    }
    running.stop().await;
}

/// In a version that the CRD does not have.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug)]
#[kube(group = "example.com", version = "v2", kind = "Widget", namespaced, schema = "disabled")]
struct WidgetSpec {}

#[tokio::test(start_paused = true)]
async fn a_write_to_a_path_that_is_not_served_has_a_hint_and_is_not_waited_for() {
    let world = World::start().await;
    create_widget(&world).await;
    let informer = widgets(&world, Kind::namespaced("example.com", "v1", "Widget", "widgets"));
    let failures = Log::default();
    let noted = failures.clone();
    let run = Controller::new(&informer, world.client.clone())
        .on_error(move |failure| noted.note(failure.cause.to_string()))
        .run(|widget: Object<Value>, context: Context| async move {
            context.apply(&Widget::new(widget.name(), WidgetSpec {})).await?;
            Ok::<_, BoxError>(Action::done())
        });
    let running = Running::start(run);
    failures.reaches(1).await;
    let first = Instant::now();
    failures.reaches(4).await;
    assert!(first.elapsed() < secs(5), "it is not waited for: {:?}", first.elapsed());
    for line in failures.lines() {
        assert!(line.starts_with("cannot apply widgets.example.com default/a: "), "{line}");
        assert!(
            line.ends_with("(404); does the CRD serve this version, and is its scope that of the type?"),
            "{line}"
        );
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_type_of_namespaced_objects_is_an_error_that_says_so() {
    let world = World::start().await;
    create_widget(&world).await;
    let informer = widgets(&world, Kind::cluster("example.com", "v1", "Widget", "widgets"));
    let failures = Log::default();
    let running = Running::start(status_writer(&world, &informer, &failures));
    failures.reaches(1).await;
    let first = Instant::now();
    failures.reaches(4).await;
    assert!(first.elapsed() < secs(5), "it is not waited for: {:?}", first.elapsed());
    for line in failures.lines() {
        let cause = "cannot update the status of widgets.example.com default/a: the type is cluster-scoped, \
            but the object is in a namespace: derive the type with #[kube(namespaced)]";
        assert_eq!(line, cause);
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_crd_is_named() {
    let world = World::start().await;
    let informer = widgets(&world, Kind::namespaced("example.com", "v1", "Widget", "widgets"));
    informer.start();
    eventually(|| matches!(informer.status(), InformerStatus::Absent { .. })).await;
    let InformerStatus::Absent { why, .. } = informer.status() else { panic!("{}", informer.status()) };
    let hint = "the server does not serve widgets.example.com/v1; is its CRD installed, with this version? (";
    assert!(why.starts_with(hint) && why.contains("404"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_never_held_is_not_released_and_its_error_is_one_text() {
    let world = World::start().await;
    let forbidden = FaultRule::new(Fault::Forbidden).resource("leases").times(1_000_000);
    world.server.faults().add(forbidden);
    let log = CapturedLog::capture(Level::WARN);
    let elector = LeaderElection::new(NAMESPACE, "lease").elector(world.client.clone()).unwrap();
    let led = elector.run(tokio::time::sleep(secs(10)), |_| pending::<()>()).await;
    assert_eq!(led, Ok(None));
    let text = log.text();
    assert!(text.contains("cannot acquire the lease") && text.contains("(403)"), "{text}");
    assert!(!text.contains("Status {") && !text.contains("ApiError"), "{text}");
    assert!(!text.contains("cannot release the lease"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_reported_without_the_fields_of_the_response() {
    let world = World::start().await;
    world.create("a").await;
    let fault = FaultRule::new(Fault::InternalError).verb(Verb::Patch).resource("configmaps").times(1);
    world.server.faults().add(fault);
    let failures = Log::default();
    let noted = failures.clone();
    let run = Controller::new(&world.configs(), world.client.clone())
        .on_error(move |failure| noted.note(failure.cause.to_string()))
        .run(|config: Object<ConfigMap>, context: Context| async move {
            context.patch(&config, |config| config["data"]["a"] = "b".into()).await?;
            Ok::<_, BoxError>(Action::done())
        });
    let running = Running::start(run);
    failures.reaches(1).await;
    let line = &failures.lines()[0];
    assert!(line.starts_with("patch of configmaps default/a has an unknown outcome: "), "{line}");
    assert!(line.ends_with("(500)") && !line.contains("Status {"), "{line}");
    running.stop().await;
}
