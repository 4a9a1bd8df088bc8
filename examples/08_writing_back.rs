//! Changing objects on the server, starting from what the cache holds.
//!
//! The informer drops annotations, as programs do that need only a few fields. An edit of another field leaves them as they
//! are; an edit of the annotations themselves is refused, because the cache does not know them; server-side apply sets
//! one of them without knowing the others.
//!
//! `cargo run -p kube-informer-examples --bin 08_writing_back`

#![allow(clippy::print_stdout)] // an example prints

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube_informer::{InformerFactory, Transform};
use kube_informer_examples::Cluster;
use serde_json::json;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = Cluster::start().await?;
    let client = cluster.client()?;
    let api: Api<Deployment> = Api::default_namespaced(client.clone());
    api.create(&PostParams::default(), &serde_json::from_value(web())?).await?;

    let transform = Transform::drop_managed_fields().drop_field("metadata.annotations")?;
    let factory = InformerFactory::builder(client.clone()).transform(transform).build();
    let deployments = factory.of::<Deployment>();
    factory.start();
    factory.synced(Duration::from_secs(30)).await?;
    let cached = deployments.lister().get(&"default/web".parse()?).ok_or("the list has it")?;

    // A JSON patch, for this version of this object only. With kube's feature `jsonpatch`:
    // `api.patch("web", &PatchParams::default(), &Patch::Json::<()>(patch)).await?`.
    let patch = cached.edit(|deployment| deployment["spec"]["replicas"] = 3.into())?;
    let request = http::Request::patch("/apis/apps/v1/namespaces/default/deployments/web")
        .header("content-type", "application/json-patch+json")
        .body(serde_json::to_vec(&patch)?)?;
    let edited: Deployment = client.request(request).await?;
    println!("edited: {}", show(&edited));

    if let Err(error) =
        cached.edit(|deployment| deployment["metadata"]["annotations"]["note"] = "reviewed".into())
    {
        println!("refused: {error}");
    }

    // The document holds what is set here and the name of the object, nothing else.
    let apply = cached.edit_via_apply("reviewer", |fields| {
        fields["metadata"]["annotations"]["note"] = "reviewed".into();
    })?;
    let params = PatchParams::apply(apply.manager());
    let applied = api.patch(apply.name(), &params, &Patch::Apply(&apply)).await?;
    let owner = applied.metadata.annotations.as_ref().and_then(|all| all.get("owner"));
    println!("applied: {}, owner still {}", show(&applied), owner.map_or("none", String::as_str));
    factory.shutdown().await;
    Ok(())
}

fn web() -> serde_json::Value {
    let labels = json!({"app": "web"});
    json!({
        "metadata": {"name": "web", "annotations": {"owner": "shop"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        },
    })
}

fn show(deployment: &Deployment) -> String {
    let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(0);
    let note = deployment.metadata.annotations.as_ref().and_then(|all| all.get("note"));
    format!("replicas {replicas}, note {}", note.map_or("none", String::as_str))
}
