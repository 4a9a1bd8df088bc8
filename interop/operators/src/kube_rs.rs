//! An operator for sites on unmodified kube-rs: a `Controller` with owned objects, server-side apply, status, events and
//! a finalizer.

use crate::site::{Site, SiteStatus};
use futures_util::StreamExt;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Service},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use kube_runtime::{
    controller::{self, Action, Controller},
    events::{Event, EventType, Recorder, Reporter},
    finalizer::{self, finalizer},
    watcher,
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

const FINALIZER: &str = "example.com/goodbye";

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Kube(#[from] kube::Error),
    #[error(transparent)]
    Finalizer(#[from] Box<finalizer::Error<kube::Error>>),
}

struct Operator {
    client: Client,
    events: Recorder,
}

/// Runs until it is dropped.
pub(crate) async fn run(client: Client) {
    let events = Recorder::new(client.clone(), Reporter { controller: "sites".into(), instance: None });
    let operator = Arc::new(Operator { client: client.clone(), events });
    Controller::new(Api::<Site>::all(client.clone()), watcher::Config::default())
        .owns(Api::<Deployment>::all(client.clone()), watcher::Config::default())
        .owns(Api::<Service>::all(client), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(100)), operator)
        .for_each(|done| {
            // A site that was deleted before its reconciliation is not an error.
            match done {
                Ok(_) | Err(controller::Error::ObjectNotFound(_)) => {}
                Err(error) => println!("kube-rs: {error}"),
            }
            std::future::ready(())
        })
        .await;
}

async fn reconcile(site: Arc<Site>, operator: Arc<Operator>) -> Result<Action, Failure> {
    let sites: Api<Site> = Api::namespaced(operator.client.clone(), &site.namespace().unwrap_or_default());
    let action = finalizer(&sites, FINALIZER, site, async |event| match event {
        finalizer::Event::Apply(site) => operator.apply(&site).await,
        finalizer::Event::Cleanup(site) => operator.finalize(&site).await,
    });
    Ok(action.await.map_err(Box::new)?)
}

impl Operator {
    async fn apply(&self, site: &Site) -> Result<Action, kube::Error> {
        let namespace = site.namespace().unwrap_or_default();
        let (name, force) = (site.name_any(), PatchParams::apply("sites").force());
        let owned = json!({"name": name, "ownerReferences": [site.controller_owner_ref(&())]});

        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &namespace);
        let before = deployments.get_opt(&name).await?.and_then(|deployment| deployment.resource_version());
        let deployment = deployments.patch(&name, &force, &Patch::Apply(deployment(site, &owned))).await?;
        if deployment.resource_version() != before {
            let note = Some("deployment changed".to_owned());
            let (reason, action) = ("Deployed".to_owned(), "Apply".to_owned());
            let event = Event { type_: EventType::Normal, reason, note, action, secondary: None };
            self.events.publish(&event, &site.object_ref(&())).await?;
        }
        let services: Api<Service> = Api::namespaced(self.client.clone(), &namespace);
        services.patch(&name, &force, &Patch::Apply(service(&name, &owned))).await?;

        let status = SiteStatus {
            observed_generation: site.metadata.generation,
            replicas: deployment.status.and_then(|status| status.replicas).filter(|replicas| *replicas > 0),
        };
        if site.status.as_ref() != Some(&status) {
            let sites: Api<Site> = Api::namespaced(self.client.clone(), &namespace);
            let patch = Patch::Merge(json!({"status": status}));
            sites.patch_status(&name, &PatchParams::default(), &patch).await?;
        }
        Ok(Action::await_change())
    }

    /// Creates a ConfigMap for the deleted site.
    async fn finalize(&self, site: &Site) -> Result<Action, kube::Error> {
        let notes: Api<ConfigMap> =
            Api::namespaced(self.client.clone(), &site.namespace().unwrap_or_default());
        let mut note = ConfigMap::default();
        note.metadata.name = Some(format!("{}-goodbye", site.name_any()));
        match notes.create(&PostParams::default(), &note).await {
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
            other => drop(other?),
        }
        Ok(Action::await_change())
    }
}

fn deployment(site: &Site, metadata: &Value) -> Value {
    let labels = json!({"site": site.name_any()});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {
            "replicas": site.spec.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "site", "image": site.spec.image}]}
            }
        }
    })
}

fn service(name: &str, metadata: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"selector": {"site": name}, "ports": [{"port": 80, "targetPort": 8080}]}
    })
}
