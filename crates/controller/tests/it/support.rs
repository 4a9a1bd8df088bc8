//! What the tests share: a server in the process, config maps as objects of the controller, secrets as their children.

use harness::{TimedOut, wait_until};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kube_embedded_apiserver::{ApiServer, LocalServer};
use kube_informer::{InformerFactory, SharedInformer};
use kube_informer_controller::{RunController, RunError};
use serde_json::json;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{sync::oneshot, task::JoinHandle};

pub(crate) const NAMESPACE: &str = "default";

/// A server and informers of it.
pub(crate) struct World {
    pub(crate) server: LocalServer,
    pub(crate) client: Client,
    pub(crate) factory: InformerFactory,
}

impl World {
    pub(crate) async fn start() -> Self {
        let server = ApiServer::builder().seed(1).in_process().await.unwrap();
        let client = server.client();
        let factory = InformerFactory::builder(client.clone()).configure(|informer| informer.seed(1)).build();
        Self { server, client, factory }
    }

    pub(crate) fn configs(&self) -> SharedInformer<ConfigMap> {
        self.factory.of()
    }

    pub(crate) fn secrets(&self) -> SharedInformer<Secret> {
        self.factory.of()
    }

    pub(crate) fn config_api(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) fn secret_api(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) async fn create(&self, name: &str) -> ConfigMap {
        let config = ConfigMap { metadata: named(name), ..ConfigMap::default() };
        self.config_api().create(&PostParams::default(), &config).await.unwrap()
    }

    /// Sets a value of a config map.
    pub(crate) async fn set(&self, name: &str, value: &str) -> ConfigMap {
        let patch = Patch::Merge(json!({"data": {"value": value}}));
        self.config_api().patch(name, &PatchParams::default(), &patch).await.unwrap()
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.config_api().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Creates a secret that a config map controls.
    pub(crate) async fn create_child(&self, name: &str, owner: &ConfigMap) -> Secret {
        let metadata = ObjectMeta { owner_references: Some(vec![owner_ref(owner)]), ..named(name) };
        let secret = Secret { metadata, ..Secret::default() };
        self.secret_api().create(&PostParams::default(), &secret).await.unwrap()
    }
}

pub(crate) fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: Some(NAMESPACE.to_owned()), ..ObjectMeta::default() }
}

pub(crate) fn owner_ref(owner: &ConfigMap) -> OwnerReference {
    OwnerReference {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        name: owner.metadata.name.clone().unwrap(),
        uid: owner.metadata.uid.clone().unwrap(),
        controller: Some(true),
        block_owner_deletion: None,
    }
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Lines that a controller under test writes.
#[derive(Clone, Default, Debug)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Waits until there are at least `count` lines.
    #[track_caller]
    pub(crate) fn reaches(&self, count: usize) -> impl Future<Output = ()> {
        let (log, caller) = (self.clone(), std::panic::Location::caller());
        async move {
            let what = format!("there are {count} lines ({caller})");
            let waited = wait_until::<TimedOut>(secs(600), &what, async || Ok(log.len() >= count)).await;
            assert!(waited.is_ok(), "{}: {:?}", waited.unwrap_err(), log.lines());
        }
    }
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn eventually(mut condition: impl FnMut() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let what = format!("the condition at {caller} holds");
        wait_until::<TimedOut>(secs(600), &what, async || Ok(condition())).await.unwrap();
    }
}

/// Lets every task that can run do so, without moving the clock.
pub(crate) async fn settle() {
    for _ in 0..500 {
        tokio::task::yield_now().await;
    }
}

/// A controller that runs until it is stopped.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    pub(crate) fn start(controller: RunController) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, task: tokio::spawn(controller.until(stopped)) }
    }

    pub(crate) async fn stop(self) {
        drop(self.stop);
        self.task.await.unwrap().unwrap();
    }

    /// The result of a controller that ends by itself.
    pub(crate) async fn ended(self) -> Result<(), RunError> {
        self.task.await.unwrap()
    }
}
