//! Creates the namespaces of the benchmark, or empties those of an earlier run.

use super::Driver;
use anyhow::{Context, bail};
use http::Request;
use kube_informer_workload::{App, widget_definition};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The label of namespaces that the benchmark created and may empty.
const OWN_LABEL: &str = "kube-informer/bench";
/// A namespace that stays empty, and the namespace of `churn`.
const EXTRA: [&str; 2] = ["bench-empty", "bench-churn"];
/// Resources that are deleted from them.
const KINDS: [(&str, &str); 5] = [
    ("/api/v1", "pods"),
    ("/api/v1", "configmaps"),
    ("/api/v1", "secrets"),
    ("/api/v1", "events"),
    ("/apis/example.com/v1", "widgets"),
];
/// Time limit for a server to empty a namespace, or to serve a new kind.
const TIMEOUT: Duration = Duration::from_secs(300);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

impl Driver {
    /// Creates namespaces, or empties those of an earlier run. Other namespaces are not touched.
    pub(super) async fn clear_namespaces(&self) -> anyhow::Result<()> {
        for namespace in App::namespaces().iter().chain(&EXTRA) {
            let body = json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": namespace, "labels": {OWN_LABEL: "true"}}});
            match self.create("/api/v1/namespaces", &body, "bench").await {
                Err(error) if code(&error) == Some(409) => self.clear(namespace).await?,
                other => drop(other?),
            }
        }
        Ok(())
    }

    async fn clear(&self, namespace: &str) -> anyhow::Result<()> {
        let found = self.get(&format!("/api/v1/namespaces/{namespace}")).await?;
        if found["metadata"]["labels"][OWN_LABEL] != "true" {
            bail!(
                "the server has a namespace {namespace} that this benchmark did not create; use another server, \
                 or allow it to be emptied with `kubectl label namespace {namespace} {OWN_LABEL}=true`"
            );
        }
        for (base, kind) in KINDS {
            self.remove_all(&format!("{base}/namespaces/{namespace}/{kind}")).await?;
        }
        Ok(())
    }

    /// Deletes all objects under a path; an unknown kind has none.
    async fn remove_all(&self, path: &str) -> anyhow::Result<()> {
        let start = Instant::now();
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        loop {
            let left = match self.get(&format!("{path}?limit=1")).await {
                Err(error) if code(&error) == Some(404) => return Ok(()),
                other => other?,
            };
            if left["items"].as_array().is_none_or(Vec::is_empty) {
                return Ok(());
            }
            // A server that cannot delete all objects in one request continues with the next one.
            let removed = self.send(Request::delete(path), options.to_string().into_bytes()).await;
            if start.elapsed() > TIMEOUT {
                removed.with_context(|| format!("cannot delete the objects under {path}"))?;
                bail!("objects under {path} are still there after the delete");
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Creates the CRD of widgets, and waits until it is served.
    pub(super) async fn define_widgets(&self) -> anyhow::Result<()> {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        match self.create(path, &widget_definition(), "bench").await {
            Err(error) if code(&error) == Some(409) => {}
            other => drop(other?),
        }
        let start = Instant::now();
        while let Err(error) = self.get("/apis/example.com/v1/widgets?limit=1").await {
            if start.elapsed() > TIMEOUT {
                return Err(error.context("the server does not serve the widgets"));
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(Request::get(path), Vec::new()).await
    }
}

/// The status code of a response.
fn code(error: &anyhow::Error) -> Option<u16> {
    match error.downcast_ref()? {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}
