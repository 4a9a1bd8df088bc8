//! The custom resource of both operators.

use crate::Error;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, CustomResource, api::PostParams};
use kube_runtime::wait::{await_condition, conditions::is_crd_established};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The spec of a site. An operator creates a deployment and a service for each site.
#[derive(CustomResource, Debug, Clone, Deserialize, Serialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "SiteStatus",
    schema = "disabled"
)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SiteSpec {
    pub(crate) replicas: i32,
    pub(crate) image: String,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SiteStatus {
    pub(crate) observed_generation: Option<i64>,
    pub(crate) replicas: Option<i32>,
}

/// Creates the CRD and waits until it is established.
pub(crate) async fn create_crd(client: &Client) -> Result<(), Error> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let integer = json!({"type": "integer", "format": "int32"});
    let crd = json!({
        "metadata": {"name": "sites.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "sites", "singular": "site", "kind": "Site"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {
                    "spec": {
                        "type": "object", "required": ["replicas", "image"],
                        "properties": {"replicas": integer, "image": {"type": "string"}}
                    },
                    "status": {
                        "type": "object",
                        "properties": {"replicas": integer, "observedGeneration": {"type": "integer"}}
                    }
                }}}
            }]
        }
    });
    crds.create(&PostParams::default(), &serde_json::from_value(crd)?).await?;
    await_condition(crds, "sites.example.com", is_crd_established()).await?;
    Ok(())
}
