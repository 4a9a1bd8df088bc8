//! Patches of edits, applied by a server (promise 19 of docs/contract.md).

mod random;

use crate::support::{object, secs, source, started};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube_embedded_apiserver::{ApiServer, LocalServer};
use kube_informer::{
    Apply, EditError, FactoryBuilder, InformerFactory, Object, Omission, SharedInformer, Transform,
};
use serde::Serialize;
use serde_json::{Value, json};

const PATH: &str = "/api/v1/namespaces/default/configmaps/c";

/// A server with one config map, and a client.
async fn server() -> (LocalServer, kube::Client) {
    let server = ApiServer::builder().in_process().await.unwrap();
    let client = server.client();
    let map = json!({
        "metadata": {"name": "c", "annotations": {"a": "1", "keep": "me"}, "finalizers": ["x.io/1", "x.io/2"]},
        "data": {"a": "1", "keep": "me"},
    });
    create(&client, map).await;
    (server, client)
}

async fn create(client: &kube::Client, map: Value) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
}

/// The part of the config map that an informer has.
async fn cached(
    client: &kube::Client,
    configure: impl FnOnce(FactoryBuilder) -> FactoryBuilder,
    make: impl FnOnce(&InformerFactory) -> SharedInformer<Value>,
) -> Object<Value> {
    let factory = configure(InformerFactory::builder(client.clone())).build();
    let maps = make(&factory);
    factory.start();
    factory.synced(secs(10)).await.unwrap();
    let object = maps.lister().get(&"default/c".parse().unwrap()).unwrap();
    factory.shutdown().await;
    object
}

async fn transformed(client: &kube::Client, transform: Transform) -> Object<Value> {
    cached(client, |builder| builder.transform(transform), |factory| factory.of_as::<ConfigMap, Value>())
        .await
}

async fn get(client: &kube::Client, path: &str) -> Value {
    client.request(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap()
}

/// The object after the server has applied the patch of an edit.
async fn patch(client: &kube::Client, path: &str, patch: &impl Serialize) -> Result<Value, kube::Error> {
    let request = http::Request::patch(path).header("content-type", "application/json-patch+json");
    client.request(request.body(serde_json::to_vec(patch).unwrap()).unwrap()).await
}

/// An object without what the server itself writes with every change, and without empty maps, which it leaves out.
fn comparable(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|name, value| {
        !["resourceVersion", "generation", "managedFields"].contains(&name.as_str()) && *value != json!({})
    });
    object
}

#[tokio::test]
async fn an_edit_changes_what_was_edited_and_nothing_else() {
    let (_server, client) = server().await;
    let slim = transformed(&client, Transform::drop_managed_fields().drop_field("data").unwrap()).await;
    let mut wanted = comparable(get(&client, PATH).await);
    let edit = slim
        .edit(|map| {
            map["metadata"]["annotations"]["b"] = "2".into();
            map["metadata"]["finalizers"].as_array_mut().unwrap().remove(0);
        })
        .unwrap();
    wanted["metadata"]["annotations"]["b"] = "2".into();
    wanted["metadata"]["finalizers"] = json!(["x.io/2"]);
    assert_eq!(comparable(patch(&client, PATH, &edit).await.unwrap()), wanted);
    assert_eq!(comparable(get(&client, PATH).await), wanted);
}

#[tokio::test]
async fn what_a_transform_dropped_is_not_erased() {
    let (_server, client) = server().await;
    let slim = transformed(&client, Transform::new().drop_field("metadata.annotations").unwrap()).await;
    let error = slim.edit(|map| map["metadata"]["annotations"]["b"] = "2".into()).unwrap_err();
    let EditError::NotHeld { path, omission, .. } = &error else { panic!("{error}") };
    assert_eq!((path.as_str(), *omission), ("metadata.annotations", Omission::Transform));
}

#[tokio::test]
async fn only_metadata_can_be_edited_where_only_metadata_is_cached() {
    let (_server, client) = server().await;
    let partial = cached(&client, |builder| builder, |factory| factory.metadata::<ConfigMap>().cast()).await;
    let error = partial.edit(|map| map["data"]["b"] = "2".into()).unwrap_err();
    let EditError::NotHeld { path, omission, .. } = &error else { panic!("{error}") };
    assert_eq!((path.as_str(), *omission), ("data", Omission::MetadataOnly));
    let mut wanted = comparable(get(&client, PATH).await);
    let edit = partial.edit(|map| map["metadata"]["labels"]["b"] = "2".into()).unwrap();
    wanted["metadata"]["labels"] = json!({"b": "2"});
    assert_eq!(comparable(patch(&client, PATH, &edit).await.unwrap()), wanted);
}

#[tokio::test]
async fn a_source_that_is_told_to_send_metadata_only_makes_objects_that_say_so() {
    let (_server, client) = server().await;
    let factory = InformerFactory::from_sources({
        let client = client.clone();
        // Takes no notice of the option.
        move |origin, _, namespace| {
            std::sync::Arc::new(kube_informer::KubeSource::new(client.clone(), origin.clone(), namespace))
        }
    })
    .build();
    let maps = factory.metadata::<ConfigMap>();
    factory.start();
    factory.synced(secs(10)).await.unwrap();
    let whole = maps.lister().get(&"default/c".parse().unwrap()).unwrap();
    assert!(matches!(whole.edit(|map| map["data"]["b"] = "2".into()), Err(EditError::NotHeld { .. })));
    factory.shutdown().await;
}

/// Removing an element by its position in a filtered array would remove another one.
#[tokio::test]
async fn a_filtered_array_is_not_edited() {
    let (_server, client) = server().await;
    let filter = Transform::new().function(|map| {
        let finalizers = map["metadata"]["finalizers"].as_array_mut().unwrap();
        finalizers.retain(|name| name != "x.io/1");
    });
    let by_path = Transform::new().drop_field("metadata.finalizers[0]").unwrap();
    for transform in [filter, by_path] {
        let slim = transformed(&client, transform).await;
        assert_eq!(slim.view::<Value>().unwrap()["metadata"]["finalizers"], json!(["x.io/2"]));
        let error = slim
            .edit(|map| drop(map["metadata"]["finalizers"].as_array_mut().unwrap().remove(0)))
            .unwrap_err();
        let EditError::NotHeld { path, .. } = &error else { panic!("{error}") };
        assert_eq!(path, "metadata.finalizers");
        slim.edit(|map| map["data"]["a"] = "2".into()).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_guard_does_not_depend_on_what_the_transform_leaves() {
    let source = source();
    source.put(object("a", 1));
    let transform = Transform::new().function(|map| {
        map["metadata"].as_object_mut().unwrap().retain(|name, _| name == "name" || name == "namespace");
    });
    let informer = source.informer::<Value>(|builder| builder.transform(transform));
    started(&informer).await;
    let slim = informer.lister().get(&"ns/a".parse().unwrap()).unwrap();
    let edit = slim.edit(|map| map["data"]["value"] = "2".into()).unwrap();
    let operations = serde_json::to_value(&edit).unwrap();
    assert_eq!(operations[0], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "101"}));
}

#[tokio::test]
async fn an_edit_of_an_old_version_or_of_another_object_is_refused_by_the_server() {
    let (_server, client) = server().await;
    let everything = Transform::new().drop_field("metadata").unwrap();
    let old = transformed(&client, everything).await;
    let edit = old.edit(|map| map["data"]["a"] = "2".into()).unwrap();
    patch(&client, PATH, &edit).await.unwrap();
    let after = get(&client, PATH).await;
    let again = old.edit(|map| map["data"]["a"] = "3".into()).unwrap();
    let Err(kube::Error::Api(status)) = patch(&client, PATH, &again).await else { panic!("it is applied") };
    assert_eq!(status.code, 422, "as kube-apiserver responds to a test that fails");
    assert_eq!(get(&client, PATH).await, after);
}

async fn apply(client: &kube::Client, apply: &Apply) -> Result<ConfigMap, kube::Error> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    maps.patch(apply.name(), &PatchParams::apply(apply.manager()), &Patch::Apply(apply)).await
}

#[tokio::test]
async fn what_is_not_held_is_written_by_apply_and_the_rest_stays() {
    let (_server, client) = server().await;
    let slim = transformed(&client, Transform::new().drop_field("metadata.annotations").unwrap()).await;
    let mut wanted = comparable(get(&client, PATH).await);
    let fields = slim
        .edit_via_apply("tests", |fields| {
            fields["metadata"]["annotations"]["b"] = "2".into();
            fields["data"]["b"] = "2".into();
        })
        .unwrap();
    apply(&client, &fields).await.unwrap();
    wanted["metadata"]["annotations"]["b"] = "2".into();
    wanted["data"]["b"] = "2".into();
    assert_eq!(comparable(get(&client, PATH).await), wanted);
    // Fields that the manager leaves out later are removed, and none of others.
    let fewer = slim.edit_via_apply("tests", |fields| fields["data"]["b"] = "2".into()).unwrap();
    apply(&client, &fewer).await.unwrap();
    wanted["metadata"]["annotations"].as_object_mut().unwrap().remove("b");
    assert_eq!(comparable(get(&client, PATH).await), wanted);
}

#[tokio::test]
async fn an_apply_neither_creates_an_object_again_nor_changes_another_of_the_same_name() {
    let (_server, client) = server().await;
    let slim = transformed(&client, Transform::new()).await;
    let fields = slim.edit_via_apply("tests", |fields| fields["data"]["b"] = "2".into()).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("c", &PatchParams::default(), &release).await.unwrap();
    maps.delete("c", &DeleteParams::default()).await.unwrap();
    let conflict = |error: kube::Error| matches!(error, kube::Error::Api(status) if status.code == 409);
    assert!(conflict(apply(&client, &fields).await.unwrap_err()));
    assert!(maps.get_opt("c").await.unwrap().is_none());
    create(&client, json!({"metadata": {"name": "c"}})).await;
    assert!(apply(&client, &fields).await.is_err());
    assert_eq!(maps.get("c").await.unwrap().data, None);
}
