//! Custom resources in discovery and OpenAPI.

use http_body_util::BodyExt as _;
use kube_informer_types::protobuf::{Fields, Wire};
use serde_json::{Value, json};

use super::*;
use crate::cluster::MERGE;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// base64(sha256("example.com/v1/Widget")[..8])
const STORED_AS_V1: &str = "gIwvi5rymmg=";

#[tokio::test(start_paused = true)]
async fn stable_versions_are_preferred() {
    let versions: Vec<Value> = ["v1alpha1", "v2beta1", "v1", "v10"]
        .into_iter()
        .map(|name| {
            let mut version = version(name, json!({}));
            version["storage"] = (name == "v1").into();
            version
        })
        .collect();
    let c = cluster(definition(&versions)).await;
    let order = ["v10", "v1", "v2beta1", "v1alpha1"];
    let (_, group) = c.get("/apis/example.com").await;
    let legacy: Vec<&str> =
        group["versions"].as_array().unwrap().iter().map(|v| v["version"].as_str().unwrap()).collect();
    assert_eq!((legacy.as_slice(), &group["preferredVersion"]["version"]), (order.as_slice(), &json!("v10")));
    let (_, all) = c.get_as("/apis", AGGREGATED).await;
    let group =
        all["items"].as_array().unwrap().iter().find(|g| g["metadata"]["name"] == "example.com").unwrap();
    let aggregated: Vec<&str> =
        group["versions"].as_array().unwrap().iter().map(|v| v["version"].as_str().unwrap()).collect();
    assert_eq!(aggregated, order);
    // All versions are stored as v1.
    for version in order {
        let (_, list) = c.get(&format!("/apis/example.com/{version}")).await;
        assert_eq!(list["resources"][0]["storageVersionHash"], STORED_AS_V1, "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn discovery_has_subresources_and_names() {
    let mut definition = plain();
    definition["spec"]["names"]["shortNames"] = json!(["wd"]);
    definition["spec"]["versions"][0]["subresources"] = json!({"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}});
    let c = cluster(definition).await;
    let (_, list) = c.get("/apis/example.com/v1").await;
    let names: Vec<&str> =
        list["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["widgets", "widgets/status", "widgets/scale"]);
    assert_eq!(
        (&list["resources"][2]["group"], &list["resources"][2]["kind"]),
        (&json!("autoscaling"), &json!("Scale"))
    );
    let (_, changed) = c.patch(WIDGET, MERGE, json!({"spec": {"names": {"shortNames": ["ww"]}}})).await;
    assert_eq!(changed["spec"]["names"]["shortNames"], json!(["ww"]));
    assert_eq!(c.get("/apis/example.com/v1").await.1["resources"][0]["shortNames"], json!(["ww"]));
}

#[tokio::test(start_paused = true)]
async fn discovery_changes_with_definitions() {
    let c = Cluster::new().await;
    let (_, before) = c.get_as("/apis", AGGREGATED).await;
    c.post(DEFINITIONS, plain()).await;
    let (_, with) = c.get_as("/apis", AGGREGATED).await;
    assert_ne!(before, with);
    c.delete(WIDGET, Value::Null).await;
    let (_, after) = c.get_as("/apis", AGGREGATED).await;
    assert_eq!(before, after);
}

#[tokio::test(start_paused = true)]
async fn schemas_are_published_and_their_hash_follows_them() {
    let c = cluster(plain()).await;
    let url_of = |index: &Value| {
        let url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"].as_str();
        url.expect("the group is listed").to_owned()
    };
    let (_, index) = c.get("/openapi/v3").await;
    let url = url_of(&index);
    let (code, document) = c.get(&url).await;
    assert_eq!(code, 200);
    let schema = &document["components"]["schemas"]["com.example.v1.Widget"];
    assert_eq!(schema["properties"]["spec"]["properties"]["size"]["type"], "integer");
    assert_eq!(
        schema["x-kubernetes-group-version-kind"],
        json!([{"group": "example.com", "version": "v1", "kind": "Widget"}])
    );
    assert!(document["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"].is_object());
    let patch = &document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]["patch"];
    let media = patch["requestBody"]["content"].as_object().unwrap();
    assert!(media.contains_key("application/merge-patch+json"));
    assert!(!media.contains_key("application/strategic-merge-patch+json"));
    for field in ["apiVersion", "kind", "metadata"] {
        assert!(schema["properties"][field]["description"].is_string(), "{field} has no description");
    }
    let wider = json!([version("v1", json!({"weight": {"type": "integer"}}))]);
    c.patch(WIDGET, MERGE, json!({"spec": {"versions": wider}})).await;
    let (_, index) = c.get("/openapi/v3").await;
    assert_ne!(url_of(&index), url);
    assert_eq!(c.get(&url).await.0, 301, "the old hash redirects to the new one");
}

/// Every reference in a document.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn openapi_v2_has_all_kinds_and_their_operations() {
    let c = cluster(plain()).await;
    let (code, document) = c.get("/openapi/v2").await;
    assert_eq!((code, &document["swagger"]), (200, &json!("2.0")));
    let widget = &document["definitions"]["com.example.v1.Widget"];
    assert_eq!(widget["properties"]["spec"]["properties"]["size"]["type"], "integer");
    let metadata = json!({"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        "description": "Standard object's metadata."});
    assert_eq!(widget["properties"]["metadata"], metadata);
    let of_metadata =
        &document["definitions"]["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"];
    for (field, schema) in of_metadata.as_object().expect("fields") {
        assert!(schema["description"].is_string(), "{field} has no description");
    }
    assert!(document["definitions"]["com.example.v1.WidgetList"].is_object());
    let pods = &document["paths"]["/api/v1/namespaces/{namespace}/pods"];
    assert_eq!(pods["post"]["operationId"], "createCoreV1NamespacedPod");
    let body = json!({"name": "body", "in": "body", "required": true, "schema": {"$ref": "#/definitions/io.k8s.api.core.v1.Pod"}});
    assert!(pods["post"]["parameters"].as_array().expect("parameters").contains(&body));
    let mut found = Vec::new();
    references(&document, &mut found);
    for reference in found {
        let name = reference.strip_prefix("#/definitions/").expect("a definition");
        assert!(document["definitions"][name].is_object(), "{name}");
    }
    assert_eq!(c.get_as("/openapi/v2", "application/cbor").await.0, 406);
}

/// kubectl validates files of kind List with it.
#[tokio::test(start_paused = true)]
async fn openapi_v2_is_served_as_protobuf_too() {
    let c = cluster(plain()).await;
    let accepted = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let (_, document) = c.get("/openapi/v2").await;
    let bytes =
        c.open("/openapi/v2", accepted).await.collect().await.expect("a complete response").to_bytes();
    assert_eq!(field(&bytes, &[1]), b"2.0");
    let (paths, definitions) = (entries(field(&bytes, &[8]), 2), entries(field(&bytes, &[9]), 1));
    let names = |of: &str| document[of].as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(paths.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), names("paths"));
    assert_eq!(definitions.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), names("definitions"));
    let of = |all: &[(String, Vec<u8>)], wanted: &str| {
        all.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone()).expect("an entry")
    };

    let widget = of(&definitions, "com.example.v1.Widget");
    let properties = entries(field(&widget, &[25]), 1);
    assert_eq!(
        field(&of(&properties, "metadata"), &[1]),
        b"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
    let spec = entries(field(&of(&properties, "spec"), &[25]), 1);
    assert_eq!(field(&of(&spec, "size"), &[22, 1]), b"integer");
    let kinds = r#"[{"group":"example.com","kind":"Widget","version":"v1"}]"#;
    let extension = field(&widget, &[31]);
    assert_eq!(field(extension, &[1]), b"x-kubernetes-group-version-kind");
    assert_eq!(field(extension, &[2, 2]), kinds.as_bytes());
    let containers =
        of(&entries(field(&of(&definitions, "io.k8s.api.core.v1.PodSpec"), &[25]), 1), "containers");
    assert_eq!(field(&containers, &[23, 1, 1]), b"#/definitions/io.k8s.api.core.v1.Container");

    // An operation: its id, the type of its first parameter, and the schema of its response.
    let pods = of(&paths, "/api/v1/namespaces/{namespace}/pods");
    let list = field(&pods, &[2]);
    assert_eq!(field(list, &[5]), b"listCoreV1NamespacedPod");
    assert_eq!(field(list, &[8, 1, 2, 3, 4]), b"allowWatchBookmarks");
    assert_eq!(field(list, &[8, 1, 2, 3, 6]), b"boolean");
    assert_eq!(field(list, &[9, 1, 1]), b"200");
    assert_eq!(field(list, &[9, 1, 2, 1, 2, 1, 1]), b"#/definitions/io.k8s.api.core.v1.PodList");
    assert_eq!(field(&pods, &[9, 1, 2, 4, 4]), b"namespace");
}

/// The first field at a path of numbers, in messages inside each other.
fn field<'m>(message: &'m [u8], path: &[u32]) -> &'m [u8] {
    path.iter().fold(message, |message, number| {
        let mut fields = Fields::new(message).map(|field| field.expect("a well-formed message"));
        let found = fields.find_map(|(of, value)| match value {
            Wire::Bytes(bytes) if of == *number => Some(bytes),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no field {number} of {path:?}"))
    })
}

/// The entries of a map, in the field of this number: names and values.
fn entries(map: &[u8], number: u32) -> Vec<(String, Vec<u8>)> {
    let entry = |bytes: &[u8]| {
        let name = String::from_utf8(field(bytes, &[1]).to_vec()).expect("text");
        (name, field(bytes, &[2]).to_vec())
    };
    let fields = Fields::new(map).map(|field| field.expect("a well-formed message"));
    fields
        .filter_map(|(of, value)| {
            if let (true, Wire::Bytes(bytes)) = (of == number, value) { Some(entry(bytes)) } else { None }
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn openapi_v3_operations_have_ids_parameters_and_bodies() {
    let c = cluster(plain()).await;
    let (_, document) = c.get("/openapi/v3/apis/apps/v1").await;
    let paths = &document["paths"];
    let one = &paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"];
    // Go's types drop empty lists of fields, so that a document with one does not survive a round trip.
    let (_, extensions) = c.get("/openapi/v3/apis/apiextensions.k8s.io/v1").await;
    for (name, schema) in extensions["components"]["schemas"].as_object().expect("schemas") {
        assert_ne!(schema.get("properties"), Some(&json!({})), "{name}");
    }
    assert_eq!(one["put"]["operationId"], "replaceAppsV1NamespacedDeployment");
    assert_eq!(one["parameters"][1]["name"], "name");
    let deployment = json!({"$ref": "#/components/schemas/io.k8s.api.apps.v1.Deployment"});
    assert_eq!(one["put"]["requestBody"]["content"]["application/json"]["schema"], deployment);
    assert_eq!(one["get"]["responses"]["200"]["content"]["application/json"]["schema"], deployment);
    let everywhere = &paths["/apis/apps/v1/deployments"]["get"];
    assert_eq!(everywhere["operationId"], "listAppsV1DeploymentForAllNamespaces");
    let scale = &paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]["patch"];
    assert_eq!(scale["operationId"], "patchAppsV1NamespacedDeploymentScale");
    let mut ids = std::collections::HashSet::new();
    for item in paths.as_object().expect("paths").values() {
        for operation in item.as_object().expect("operations").values().filter(|o| o.is_object()) {
            let id = operation["operationId"].as_str().expect("an id");
            assert!(ids.insert(id.to_owned()), "{id} is not unique");
        }
    }
    let mut found = Vec::new();
    references(&document, &mut found);
    for reference in found {
        let name = reference.strip_prefix("#/components/schemas/").expect("a schema");
        assert!(document["components"]["schemas"][name].is_object(), "{name}");
    }
}
