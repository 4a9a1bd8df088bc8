//! What an operator for sites has to get done.

use crate::{
    Error,
    site::{Site, SiteSpec},
};
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
use std::{future::Future, time::Duration};

const PATIENCE: Duration = Duration::from_secs(60);
const SITES: i32 = 20;

/// Creates, changes and deletes sites and watches the operator follow.
pub(crate) async fn check(server: &ApiServer) -> Result<(), Error> {
    let client = server.client()?;
    let sites: Api<Site> = Api::default_namespaced(client.clone());
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    for i in 0..SITES {
        let spec = SiteSpec { replicas: i, image: "site:1".into() };
        sites.create(&PostParams::default(), &Site::new(&format!("s{i}"), spec)).await?;
    }
    for i in 0..SITES {
        follows(&client, i, i, "site:1").await?;
    }
    // The watches end, the history goes: the operator must not notice.
    server.faults().compact().await?;
    server.faults().cut_watches(None);
    for i in 0..SITES {
        let patch = json!({"spec": {"replicas": i + 1, "image": "site:2"}});
        sites.patch(&format!("s{i}"), &PatchParams::default(), &Patch::Merge(patch)).await?;
        let status = json!({"status": {"replicas": i + 1}});
        deployments.patch_status(&format!("s{i}"), &PatchParams::default(), &Patch::Merge(status)).await?;
    }
    for i in 0..SITES {
        follows(&client, i, i + 1, "site:2").await?;
        eventually("the status of the site tells of its pods", async || {
            let status = sites.get(&format!("s{i}")).await?.status.unwrap_or_default();
            Ok(status.replicas == Some(i + 1) && status.observed_generation >= Some(2))
        })
        .await?;
    }
    // What others break is mended.
    deployments.delete("s3", &DeleteParams::default()).await?;
    follows(&client, 3, 4, "site:2").await?;
    let events: Api<Event> = Api::default_namespaced(client.clone());
    eventually("there are events", async || {
        let told = ListParams::default().fields("involvedObject.kind=Site,reason=Deployed");
        Ok(!events.list(&told).await?.items.is_empty())
    })
    .await?;
    goes(&client, "s5").await
}

async fn follows(client: &Client, site: i32, replicas: i32, image: &str) -> Result<(), Error> {
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let name = format!("s{site}");
    eventually(&format!("{name} has {replicas} replicas of {image}, and a service"), async || {
        let Some(spec) = deployments.get_opt(&name).await?.and_then(|deployment| deployment.spec) else {
            return Ok(false);
        };
        let containers = spec.template.spec.map(|pod| pod.containers).unwrap_or_default();
        let runs = containers.first().and_then(|container| container.image.as_deref());
        Ok(spec.replicas == Some(replicas) && runs == Some(image) && services.get_opt(&name).await?.is_some())
    })
    .await
}

/// A site that is deleted leaves its note; what it owned goes with it.
async fn goes(client: &Client, name: &str) -> Result<(), Error> {
    let sites: Api<Site> = Api::default_namespaced(client.clone());
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let notes: Api<ConfigMap> = Api::default_namespaced(client.clone());
    sites.delete(name, &DeleteParams::default()).await?;
    eventually("a deleted site is gone with all it owned, but for its note", async || {
        Ok(sites.get_opt(name).await?.is_none()
            && deployments.get_opt(name).await?.is_none()
            && notes.get_opt(&format!("{name}-goodbye")).await?.is_some())
    })
    .await
}

async fn eventually<F>(what: &str, mut holds: impl FnMut() -> F) -> Result<(), Error>
where
    F: Future<Output = Result<bool, Error>>,
{
    let wait = async {
        while !holds().await? {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| Err(format!("not in time: {what}").into()))
}
