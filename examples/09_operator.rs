//! An operator for a custom resource: each `Site` gets a config map with its page, and an entry in a registry outside the
//! cluster, which is removed before the site disappears. With a status, an event, and leader election.
//!
//! `cargo run -p kube-informer-examples --bin 09_operator`

#![allow(clippy::print_stdout)] // an example prints

use k8s_openapi::{
    api::core::v1::ConfigMap,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::api::{Api, DeleteParams, PostParams};
use kube_informer::{InformerFactory, Object, ObjectKey, generation_changed};
use kube_informer_controller::{
    Action, BoxError, Conditions, Context, Controller, EventType, LeaderElection, Manager, child_name,
    controlled_by,
};
use kube_informer_examples::Cluster;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use tokio::sync::oneshot;

#[derive(kube::CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
#[kube(schema = "disabled")]
struct SiteSpec {
    domain: String,
    page: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct SiteStatus {
    observed_generation: Option<i64>,
    conditions: Option<Vec<Condition>>,
}

/// Brings a site into its desired state. Does nothing if it is in it already.
async fn publish(site: &Object<Site>, context: &Context) -> Result<(), BoxError> {
    let decoded = site.decode()?;
    let mut page = ConfigMap::default();
    page.metadata.name = Some(child_name(site, "page"));
    page.data = Some([("index.html".to_owned(), decoded.spec.page.clone())].into());
    context.apply(&controlled_by(page, site)?).await?;
    // By uid, so that a changed domain replaces the old one, and the cleanup needs nothing else.
    println!("register {} for {}", decoded.spec.domain, site.uid());
    Ok(())
}

/// Publishes a site, and says in its status whether that worked.
async fn reconcile(site: Object<Site>, context: Context) -> Result<Action, BoxError> {
    let published = publish(&site, &context).await;
    let (kind, reason, message) = match &published {
        Ok(()) => (EventType::Normal, "Published", "the page is published".to_owned()),
        Err(error) => (EventType::Warning, "NotPublished", error.to_string()),
    };
    let mut status = site.decode()?.status.clone().unwrap_or_default();
    status.observed_generation = site.generation();
    status.conditions.set(context.condition(&site, "Ready", published.is_ok(), reason, message.as_str()));
    if context.update_status(&site, &status).await? {
        context.event(&site, kind, reason, message);
    }
    published.map(|()| Action::done())
}

/// Removes what is outside the cluster. The garbage collector removes the config map. May run more than once.
async fn clean_up(site: Object<Site>, _: Context) -> Result<Action, BoxError> {
    println!("unregister the domain of {}", site.key());
    Ok(Action::done())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let cluster = Cluster::start().await?;
    let client = cluster.client()?;
    install_crd(&client).await?;
    let factory = InformerFactory::from_config(cluster.config())?;
    let (sites, pages) = (factory.of::<Site>(), factory.of::<ConfigMap>());
    let controller = Controller::new(&sites, client.clone())
        .owns(&pages)
        .when(generation_changed) // not for changes of the status
        .finalizer("example.com/registry", clean_up)
        .run(reconcile);
    let (stop, stopped) = oneshot::channel::<()>();
    // Your program: .serve(([0, 0, 0, 0], 8080).into()).run(), until SIGINT or SIGTERM
    let operator = Manager::new(&factory, client.clone())
        .add(controller)
        .leader_election(LeaderElection::new("default", "site-operator"))
        .until(stopped);
    let user = async {
        let api: Api<Site> = Api::default_namespaced(client);
        let spec = SiteSpec { domain: "shop.example.com".to_owned(), page: "<h1>Shop</h1>".to_owned() };
        api.create(&PostParams::default(), &Site::new("shop", spec)).await?;
        let (shop, wait) = (ObjectKey::namespaced("default", "shop"), Duration::from_secs(30));
        sites.wait_until(&shop, wait, |site| site.is_some_and(is_ready)).await?;
        // Each resource has a watch of its own: the cache of the pages may be behind the one of the sites.
        let page = ObjectKey::namespaced("default", "shop-page");
        pages.wait_until(&page, wait, |page| page.is_some()).await?;
        println!("ready; its page is {page}");
        api.delete("shop", &DeleteParams::default()).await?;
        sites.wait_until(&shop, wait, |site| site.is_none()).await?;
        println!("deleted");
        drop(stop);
        Ok::<_, BoxError>(())
    };
    let (ran, used) = tokio::join!(operator, user);
    ran?;
    used
}

fn is_ready(site: &Object<Site>) -> bool {
    let status = site.decode().ok().and_then(|site| site.status.clone()).unwrap_or_default();
    status.conditions.iter().flatten().any(|is| is.type_ == "Ready" && is.status == "True")
}

/// In a real cluster: `kubectl apply`.
async fn install_crd(client: &kube::Client) -> Result<(), BoxError> {
    let properties = json!({"domain": {"type": "string"}, "page": {"type": "string"}});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["domain", "page"], "properties": properties},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }});
    let crd: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "sites.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Site", "plural": "sites", "singular": "site"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}],
        },
    }))?;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.create(&PostParams::default(), &crd).await?;
    Ok(())
}
