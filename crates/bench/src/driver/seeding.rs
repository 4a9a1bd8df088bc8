//! Seeds the server.

use super::{Driver, concurrently, send};
use anyhow::bail;
use fastrand::Rng;
use http::Request;
use kube_informer_workload::{Pods, StubbornPods, config_map, event, secret, widget};
use serde_json::{Value, json};

/// Average number of pods on a node.
const PODS_PER_NODE: usize = 50;
/// Number of objects whose compressibility is measured.
const SAMPLE: usize = 500;

impl Driver {
    pub(super) async fn seed_pods(&mut self, corpus: &str, count: usize) -> anyhow::Result<Value> {
        let start = std::time::Instant::now();
        self.clear_namespaces().await?;
        let nodes = count.div_ceil(PODS_PER_NODE);
        let pods: Box<dyn Iterator<Item = Value> + Send> = match corpus {
            "realistic" => Box::new(Pods::new(self.seed, nodes)),
            "stubborn" => Box::new(StubbornPods::new(self.seed, nodes)),
            other => bail!("unknown corpus {other:?}"),
        };
        let client = self.client.clone();
        self.pods = concurrently(pods.take(count), |pod| seed_pod(client.clone(), pod)).await?;
        Ok(json!({"pods": self.pods.len(), "nodes": nodes, "wall_s": start.elapsed().as_secs_f64()}))
    }

    /// Creates objects of another kind.
    pub(super) async fn seed_kind(&mut self, kind: &str, count: usize) -> anyhow::Result<Value> {
        let (generate, base): (fn(&mut Rng, usize) -> Value, _) = match kind {
            "configmaps" => (config_map, "/api/v1"),
            "secrets" => (secret, "/api/v1"),
            "events" => (event, "/api/v1"),
            "widgets" => (widget, "/apis/example.com/v1"),
            other => bail!("no generator for {other:?}"),
        };
        if kind == "widgets" {
            self.define_widgets().await?;
        }
        let mut rng = Rng::with_seed(self.seed);
        for number in 0..count {
            let object = generate(&mut rng, number);
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
            self.create(&format!("{base}/namespaces/{namespace}/{kind}"), &object, "helm").await?;
        }
        Ok(json!({ "objects": count }))
    }

    pub(super) async fn create(&self, path: &str, object: &Value, manager: &str) -> anyhow::Result<Value> {
        let request = Request::post(format!("{path}?fieldManager={manager}"));
        self.send(request, object.to_string().into_bytes()).await
    }

    /// Measures how well single objects compress: plain zstd at its default level, without a dictionary.
    pub(super) async fn compressibility(&self, path: &str) -> anyhow::Result<Value> {
        let list = self.send(Request::get(format!("{path}?limit={SAMPLE}")), Vec::new()).await?;
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let (mut raw, mut packed) = (0, 0);
        for item in items {
            let json = item.to_string();
            raw += json.len();
            packed += zstd::bulk::compress(json.as_bytes(), 0)?.len();
        }
        let count = items.len().max(1);
        Ok(json!({"bytes": raw / count, "zstd_bytes": packed / count}))
    }
}

/// Creates a pod like a controller and its status like a kubelet. Returns its namespace and name.
async fn seed_pod(client: kube::Client, mut pod: Value) -> anyhow::Result<(String, String)> {
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text("namespace"), text("name"));
    let status = pod["status"].take();
    let path = format!("/api/v1/namespaces/{namespace}/pods");
    let request = Request::post(format!("{path}?fieldManager=kube-controller-manager"));
    let mut created = send(client.clone(), request, pod.to_string().into_bytes()).await?;
    created["status"] = status;
    let request = Request::put(format!("{path}/{name}/status?fieldManager=kubelet"));
    send(client, request, created.to_string().into_bytes()).await?;
    Ok((namespace, name))
}
