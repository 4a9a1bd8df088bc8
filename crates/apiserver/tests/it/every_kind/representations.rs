//! Tables, metadata, YAML, selectors.

use serde_json::{Value, json};

use super::{create, kinds};
use crate::cluster::Cluster;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

#[tokio::test(start_paused = true)]
async fn every_kind_has_a_table() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await.iter().filter(|kind| !kind.is_alias()) {
        let created = create(&c, kind).await;
        for path in [kind.object_path(), format!("{}?fieldSelector=metadata.name!=none", kind.path())] {
            let (code, table) = c.get_as(&path, TABLE).await;
            assert_eq!((code, &table["kind"]), (200, &json!("Table")), "{}: {table}", kind.kind);
            let columns = table["columnDefinitions"].as_array().expect("columns");
            let rows = table["rows"].as_array().expect("rows");
            assert!(columns.iter().any(|column| column["name"] == "Name"), "{}", kind.kind);
            // The age of an IPAddress is a cell without a column, as in kube-apiserver.
            let cells = columns.len() + usize::from(kind.kind == "IPAddress");
            let counts = rows.iter().map(|row| row["cells"].as_array().map(Vec::len));
            assert!(counts.into_iter().all(|count| count == Some(cells)), "{}", kind.kind);
            let own = rows.iter().find(|row| row["object"]["metadata"]["uid"] == created["metadata"]["uid"]);
            assert_eq!(own.expect("a row")["object"]["kind"], "PartialObjectMetadata", "{}", kind.kind);
        }
        let (_, table) = c.get_as(&format!("{}?includeObject=Object", kind.object_path()), TABLE).await;
        assert_eq!(table["rows"][0]["object"]["kind"], kind.kind.as_str());
        let (_, table) = c.get_as(&format!("{}?includeObject=None", kind.object_path()), TABLE).await;
        assert!(table["rows"][0]["object"].is_null(), "{}: {table}", kind.kind);
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_can_be_read_without_its_content() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await.iter().filter(|kind| !kind.is_alias()) {
        let created = create(&c, kind).await;
        let (code, partial) = c.get_as(&kind.object_path(), METADATA).await;
        assert_eq!((code, &partial["kind"]), (200, &json!("PartialObjectMetadata")), "{}", kind.kind);
        assert_eq!(partial["apiVersion"], "meta.k8s.io/v1");
        assert_eq!(partial["metadata"]["uid"], created["metadata"]["uid"]);
        assert_eq!(partial.as_object().map(|fields| fields.len()), Some(3), "{}: {partial}", kind.kind);
        let (code, list) = c.get_as(&kind.path(), METADATA_LIST).await;
        assert_eq!((code, &list["kind"]), (200, &json!("PartialObjectMetadataList")), "{}", kind.kind);
        let items = list["items"].as_array().expect("items");
        assert!(
            items.iter().any(|item| item["metadata"]["uid"] == created["metadata"]["uid"]),
            "{}",
            kind.kind
        );
    }
}

/// YAML is another notation of the same object, in both directions.
#[tokio::test(start_paused = true)]
async fn every_kind_can_be_written_and_read_as_yaml() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await.iter().filter(|kind| !kind.is_alias()) {
        // JSON is YAML too.
        let body = kind.sample().to_string();
        let (code, created, _) = c.send_text("POST", &kind.path(), "application/yaml", body).await;
        assert_eq!(code, 201, "{}: {created}", kind.kind);
        let yaml = c.read_text(&kind.object_path(), "application/yaml").await;
        let (code, put, _) = c.send_text("PUT", &kind.object_path(), "application/yaml", yaml).await;
        let (_, stored) = c.get(&kind.object_path()).await;
        assert_eq!((code, &put), (200, &stored), "{}", kind.kind);
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_can_be_selected_by_name() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await.iter().filter(|kind| !kind.is_alias()) {
        let created = create(&c, kind).await;
        let name = created["metadata"]["name"].as_str().expect("a name");
        let count = async |selector: &str| {
            let (code, list) = c.get(&format!("{}?fieldSelector={selector}", kind.path())).await;
            assert_eq!(code, 200, "{}: {list}", kind.kind);
            list["items"].as_array().map_or(0, Vec::len)
        };
        assert_eq!(count(&format!("metadata.name={name}")).await, 1, "{}", kind.kind);
        assert_eq!(count("metadata.name=nothing").await, 0, "{}", kind.kind);
        if kind.namespaced {
            assert_eq!(count(&format!("metadata.name={name},metadata.namespace=other")).await, 0);
        }
        let (code, status) = c.get(&format!("{}?fieldSelector=spec.unknown=1", kind.path())).await;
        assert_eq!(code, 400, "{}: {status}", kind.kind);
    }
}

/// OpenAPI names every kind with a schema that its objects have.
#[tokio::test(start_paused = true)]
async fn every_kind_has_a_schema_in_openapi() {
    let c = Cluster::new().await;
    let (_, index) = c.get("/openapi/v3").await;
    for kind in kinds(&c).await {
        let place = if kind.api_version.contains('/') { "apis" } else { "api" };
        let url = index["paths"][format!("{place}/{}", kind.api_version)]["serverRelativeURL"].as_str();
        let (_, document) =
            c.get(url.unwrap_or_else(|| panic!("no document for {}", kind.api_version))).await;
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        let is_of_kind = |schema: &&Value| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten();
            kinds.filter(|k| k["kind"] == kind.kind.as_str()).count() > 0
        };
        let schema =
            schemas.values().find(is_of_kind).unwrap_or_else(|| panic!("no schema of {}", kind.kind));
        for field in kind.sample().as_object().expect("fields").keys() {
            assert!(!schema["properties"][field].is_null(), "{field} of {}", kind.kind);
        }
    }
}
