//! kube-rs, an independent client, defines and uses a custom resource.

use futures_util::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::Discovery;
use kube_runtime::wait::{await_condition, conditions};
use kube_runtime::{WatchStreamExt, watcher};
use serde_json::json;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_controller_can_define_and_use_a_kind() {
    let c = Cluster::new().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(c.client.clone());
    let mut wanted = plain();
    wanted["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    let wanted: CustomResourceDefinition = serde_json::from_value(wanted).expect("a definition");
    definitions.create(&PostParams::default(), &wanted).await.expect("created");
    let established = conditions::is_crd_established();
    await_condition(definitions.clone(), "widgets.example.com", established).await.expect("established");

    let discovery = Discovery::new(c.client.clone()).run().await.expect("discovered");
    let (kind, _) =
        discovery.resolve_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget")).expect("the kind");
    let widgets: Api<DynamicObject> = Api::default_namespaced_with(c.client.clone(), &kind);
    let mut seen = watcher::watcher(widgets.clone(), watcher::Config::default()).touched_objects().boxed();
    let mut object = DynamicObject::new("a", &kind).data(json!({"spec": {"size": 1}}));
    object.types = Some(kube::core::TypeMeta { api_version: "example.com/v1".into(), kind: "Widget".into() });
    widgets.create(&PostParams::default(), &object).await.expect("created");
    let first = seen.next().await.expect("an event").expect("no error");
    assert_eq!((first.metadata.name.as_deref(), &first.data["spec"]["size"]), (Some("a"), &json!(1)));

    let status = json!({"apiVersion": "example.com/v1", "kind": "Widget", "status": {"ready": true}});
    let params = PatchParams::apply("controller");
    let patched = widgets.patch_status("a", &params, &Patch::Apply(&status)).await.expect("patched");
    assert_eq!(patched.data["status"]["ready"], true);
    let second = seen.next().await.expect("an event").expect("no error");
    assert_eq!(second.data["status"]["ready"], true);

    definitions.delete("widgets.example.com", &DeleteParams::default()).await.expect("deleted");
    let error = widgets.list(&Default::default()).await.expect_err("the kind is not served");
    assert!(matches!(error, kube::Error::Api(status) if status.code == 404));
}
