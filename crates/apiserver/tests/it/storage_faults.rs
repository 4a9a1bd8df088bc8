//! Controllers over a store that fails for a while: what they could not do is done later, and nothing is removed too early.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use kube_embedded_apiserver::storage::{
    ChangeStream, Document, Follower, MemoryStorage, Page, Range, Storage, StorageError, Stored,
};
use kube_embedded_apiserver::{ApiServer, LocalServer};
use serde_json::json;

/// Requests that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Request {
    List,
    Update,
    Delete,
}

/// A store in memory whose requests under some prefixes fail.
struct FailingStorage {
    memory: MemoryStorage,
    failing: Mutex<BTreeSet<(Request, &'static str)>>,
    /// Whether other requests proceed before a write does.
    is_slow: AtomicBool,
}

impl FailingStorage {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            memory: MemoryStorage::new(),
            failing: Mutex::default(),
            is_slow: AtomicBool::default(),
        })
    }

    fn fail(&self, request: Request, prefix: &'static str) {
        self.failing.lock().expect("not poisoned").insert((request, prefix));
    }

    fn heal(&self) {
        self.failing.lock().expect("not poisoned").clear();
    }

    async fn pause(&self) {
        if self.is_slow.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
        }
    }

    fn check(&self, request: Request, key: &str) -> Result<(), StorageError> {
        let failing = self.failing.lock().expect("not poisoned");
        if failing.iter().any(|(failing, prefix)| *failing == request && key.starts_with(prefix)) {
            return Err(StorageError::Internal { message: "the disk is on fire".to_owned(), source: None });
        }
        Ok(())
    }
}

impl Storage for FailingStorage {
    fn current_revision(&self) -> BoxFuture<'_, Result<u64, StorageError>> {
        self.memory.current_revision()
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Stored>>, StorageError>> {
        self.memory.get(key)
    }

    fn list<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Result<Page, StorageError>> {
        match self.check(Request::List, &range.prefix) {
            Ok(()) => self.memory.list(range),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn create<'a>(
        &'a self,
        key: &'a str,
        document: Document,
    ) -> BoxFuture<'a, Result<Arc<Stored>, StorageError>> {
        Box::pin(async move {
            self.pause().await;
            self.memory.create(key, document).await
        })
    }

    fn update<'a>(
        &'a self,
        key: &'a str,
        expected: u64,
        document: Document,
    ) -> BoxFuture<'a, Result<Arc<Stored>, StorageError>> {
        match self.check(Request::Update, key) {
            Ok(()) => Box::pin(async move {
                self.pause().await;
                self.memory.update(key, expected, document).await
            }),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn delete<'a>(&'a self, key: &'a str, expected: u64) -> BoxFuture<'a, Result<Arc<Stored>, StorageError>> {
        match self.check(Request::Delete, key) {
            Ok(()) => self.memory.delete(key, expected),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: u64) -> BoxFuture<'a, Result<ChangeStream, StorageError>> {
        self.memory.watch(prefix, after)
    }

    fn follow<'a>(
        &'a self,
        prefix: &'a str,
        follower: Weak<dyn Follower>,
    ) -> BoxFuture<'a, Result<(), StorageError>> {
        self.memory.follow(prefix, follower)
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<(), StorageError>> {
        self.memory.compact(revision)
    }

    fn size(&self) -> BoxFuture<'_, Result<u64, StorageError>> {
        self.memory.size()
    }
}

async fn server(storage: &Arc<FailingStorage>) -> LocalServer {
    let storage = Arc::clone(storage) as Arc<dyn Storage>;
    ApiServer::builder().seed(3).storage(storage).in_process().await.expect("the server starts")
}

async fn keys(storage: &FailingStorage) -> Vec<String> {
    let range = Range { prefix: "/".to_owned(), ..Range::default() };
    let page = storage.memory.list(&range).await.expect("a list");
    page.items.iter().map(|item| item.key.to_string()).collect()
}

/// Keys of the namespace `team` and its objects.
async fn remaining(storage: &FailingStorage) -> Vec<String> {
    keys(storage).await.into_iter().filter(|key| key.contains("team")).collect()
}

/// A write after which queued keys are reconciled.
async fn write(client: &Client, name: &str) {
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a config map");
    Api::default_namespaced(client.clone()).create(&PostParams::default(), &map).await.expect("stored");
}

/// A namespace `team` with two config maps.
async fn namespace_with_maps(client: &Client) {
    let namespace: Namespace =
        serde_json::from_value(json!({"metadata": {"name": "team"}})).expect("a namespace");
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.expect("stored");
    for name in ["a", "b"] {
        let map: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": name}})).expect("a config map");
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "team");
        maps.create(&PostParams::default(), &map).await.expect("stored");
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_not_removed_before_its_objects_when_a_list_fails() {
    let storage = FailingStorage::new();
    let client = server(&storage).await.client();
    namespace_with_maps(&client).await;
    storage.fail(Request::List, "/configmaps/");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.delete("team", &DeleteParams::default()).await.expect("accepted");
    let maps = keys(&storage).await.into_iter().filter(|key| key.contains("/team/")).count();
    let namespace = keys(&storage).await.into_iter().any(|key| key.ends_with("/namespaces/team"));
    assert!(namespace || maps == 0, "a removed namespace left {maps} objects");
    storage.heal();
    write(&client, "trigger").await;
    let left = remaining(&storage).await;
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_deleted_keeps_its_namespace_until_it_can() {
    let storage = FailingStorage::new();
    let client = server(&storage).await.client();
    namespace_with_maps(&client).await;
    let map = keys(&storage).await.into_iter().find(|key| key.ends_with("/team/a")).expect("the map");
    storage.fail(Request::Delete, map.leak());
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.delete("team", &DeleteParams::default()).await.expect("accepted");
    let left = remaining(&storage).await;
    assert_eq!(left.len(), 2, "the map and its namespace: {left:?}");
    storage.heal();
    write(&client, "trigger").await;
    let left = remaining(&storage).await;
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn a_crd_whose_status_could_not_be_written_is_established_later_and_blocks_nothing() {
    let storage = FailingStorage::new();
    let client = server(&storage).await.client();
    namespace_with_maps(&client).await;
    storage.fail(Request::Update, "/apiextensions.k8s.io/");
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}}))
    .expect("a CRD");
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let stored = definitions.create(&PostParams::default(), &definition).await.expect("stored");
    // The CRD controller comes before that of namespaces, and its key fails.
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.delete("team", &DeleteParams::default()).await.expect("accepted");
    assert!(namespaces.get_opt("team").await.expect("a response").is_none(), "the namespace is emptied");
    storage.heal();
    write(&client, "trigger").await;
    let stored = definitions.get(&stored.name_any()).await.expect("the CRD");
    let conditions = stored.status.and_then(|status| status.conditions).unwrap_or_default();
    let established = conditions.iter().any(|c| c.type_ == "Established" && c.status == "True");
    assert!(established, "{conditions:?}");
}

/// Two services never take the same port or address, even if both are written before either is stored.
#[tokio::test(start_paused = true)]
async fn services_that_are_written_at_the_same_time_share_no_port_and_no_address() {
    let storage = FailingStorage::new();
    let server = server(&storage).await;
    let services: Api<Service> = Api::default_namespaced(server.client());
    let service = |name: &str, spec: serde_json::Value| -> Service {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).expect("a service")
    };
    let external = json!({"type": "ExternalName", "externalName": "a.example.com"});
    for name in ["a", "b", "c"] {
        services.create(&PostParams::default(), &service(name, external.clone())).await.expect("stored");
    }
    storage.is_slow.store(true, Ordering::Relaxed);
    let taken = json!({"type": "NodePort", "externalName": null, "clusterIP": "10.96.7.7", "ports": [{"port": 80, "nodePort": 30_007}]});
    let (params, patch) = (PatchParams::default(), Patch::Merge(json!({"spec": taken})));
    let created = PostParams::default();
    let new = service(
        "d",
        json!({"type": "NodePort", "clusterIP": "10.96.7.7", "ports": [{"port": 80, "nodePort": 30_007}]}),
    );
    let results = tokio::join!(
        services.patch("a", &params, &patch),
        services.patch("b", &params, &patch),
        services.create(&created, &new),
    );
    let codes = [results.0, results.1, results.2].map(|result| match result {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    });
    assert_eq!(codes.iter().filter(|code| **code == 200).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 422).count(), 2, "{codes:?}");
    let all = services.list(&ListParams::default()).await.expect("a list");
    let spec = |service: &Service| service.spec.clone().expect("a spec");
    let owners = all.iter().filter(|service| spec(service).cluster_ip.as_deref() == Some("10.96.7.7"));
    assert_eq!(owners.count(), 1);
}
