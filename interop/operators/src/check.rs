//! Checks of an operator for sites.

use crate::{
    Error,
    site::{Site, SiteSpec},
};
use harness::wait_until;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Event, Service},
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kube_embedded_apiserver::ApiServer;
use serde_json::json;
use std::time::Duration;

/// Limit for each reaction of the operator.
const TIMEOUT: Duration = Duration::from_secs(60);
const SITES: i32 = 20;

/// Creates, updates and deletes sites, and checks the reactions of the operator.
pub(crate) async fn run(server: &ApiServer) -> Result<(), Error> {
    let client = server.client()?;
    let sites: Api<Site> = Api::default_namespaced(client.clone());
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    for i in 0..SITES {
        let spec = SiteSpec { replicas: i, image: "site:1".into() };
        sites.create(&PostParams::default(), &Site::new(&format!("s{i}"), spec)).await?;
    }
    for i in 0..SITES {
        check_owned_objects(&client, i, i, "site:1").await?;
    }
    // The operator must recover from cut watches and a compacted history.
    server.faults().compact().await?;
    server.faults().cut_watches(None);
    for i in 0..SITES {
        let patch = json!({"spec": {"replicas": i + 1, "image": "site:2"}});
        sites.patch(&format!("s{i}"), &PatchParams::default(), &Patch::Merge(patch)).await?;
        let status = json!({"status": {"replicas": i + 1}});
        deployments.patch_status(&format!("s{i}"), &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    for i in 0..SITES {
        check_owned_objects(&client, i, i + 1, "site:2").await?;
        wait_until(TIMEOUT, "the status of the site has the replicas of its deployment", async || {
            let status = sites.get(&format!("s{i}")).await?.status.unwrap_or_default();
            Ok::<_, Error>(status.replicas == Some(i + 1) && status.observed_generation >= Some(2))
        })
        .await?;
    }
    // The operator must recreate a deleted deployment.
    deployments.delete("s3", &DeleteParams::default()).await?;
    check_owned_objects(&client, 3, 4, "site:2").await?;
    let events: Api<Event> = Api::default_namespaced(client.clone());
    wait_until(TIMEOUT, "the operator has recorded events", async || {
        let deployed = ListParams::default().fields("involvedObject.kind=Site,reason=Deployed");
        Ok::<_, Error>(!events.list(&deployed).await?.items.is_empty())
    })
    .await?;
    check_deletion(&client, "s5").await
}

/// Waits for the deployment and the service of a site.
async fn check_owned_objects(client: &Client, site: i32, replicas: i32, image: &str) -> Result<(), Error> {
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let name = format!("s{site}");
    wait_until(TIMEOUT, &format!("{name} has {replicas} replicas of {image}, and a service"), async || {
        let Some(spec) = deployments.get_opt(&name).await?.and_then(|deployment| deployment.spec) else {
            return Ok(false);
        };
        let containers = spec.template.spec.map(|pod| pod.containers).unwrap_or_default();
        let actual = containers.first().and_then(|container| container.image.as_deref());
        let deployed = spec.replicas == Some(replicas) && actual == Some(image);
        Ok::<_, Error>(deployed && services.get_opt(&name).await?.is_some())
    })
    .await
}

/// Deletes a site, and waits for its finalizer and the garbage collection of its deployment.
async fn check_deletion(client: &Client, name: &str) -> Result<(), Error> {
    let sites: Api<Site> = Api::default_namespaced(client.clone());
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let notes: Api<ConfigMap> = Api::default_namespaced(client.clone());
    sites.delete(name, &DeleteParams::default()).await?;
    wait_until(TIMEOUT, "a deleted site is finalized and its deployment deleted", async || {
        Ok::<_, Error>(
            sites.get_opt(name).await?.is_none()
                && deployments.get_opt(name).await?.is_none()
                && notes.get_opt(&format!("{name}-goodbye")).await?.is_some(),
        )
    })
    .await
}
