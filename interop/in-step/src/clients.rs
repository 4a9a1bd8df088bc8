//! The clients that watch the server.

use crate::{Contents, Error, TIMEOUT};
use futures_util::StreamExt;
use harness::{NAMESPACES, TimedOut, wait_until};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt};
use kube_embedded_apiserver::ApiServer;
use kube_informer::{Event, InformerFactory, Scope, SharedInformer, on_event};
use kube_runtime::{WatchStreamExt, watcher};
use std::{
    process::Stdio,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
};

type SharedContents = Arc<Mutex<Contents>>;

/// A compared client, and its difference from the expected content.
type Comparison = (String, Option<String>);

pub(crate) struct Clients {
    ours: Vec<OurInformer>,
    kube_rs: SharedContents,
    client_go: Option<Child>,
}

/// One of our informers, and the objects that its handler received.
struct OurInformer {
    name: &'static str,
    informer: SharedInformer<ConfigMap>,
    received: SharedContents,
    _factory: InformerFactory,
}

impl Clients {
    pub(crate) async fn start(server: &ApiServer, client_go: Option<&str>) -> Result<Self, Error> {
        let client = server.client()?;
        let streaming = InformerFactory::new(client.clone());
        let paged = InformerFactory::builder(client.clone())
            .configure(|builder| builder.streaming_list(false).page_size(7).handler_bound(4))
            .build();
        let namespaces =
            InformerFactory::builder(client.clone()).scope(Scope::namespaces(NAMESPACES)?).build();
        let ours = [("streaming", streaming), ("paged", paged), ("namespaces", namespaces)];
        let ours: Vec<_> =
            ours.into_iter().map(|(name, factory)| OurInformer::start(name, factory)).collect();
        for ours in &ours {
            ours.informer.synced(TIMEOUT).await?;
        }
        let kube_rs = SharedContents::default();
        tokio::spawn(watch_with_kube_rs(client, Arc::clone(&kube_rs)));
        let client_go = client_go.map(|program| start_client_go(program, &server.url())).transpose()?;
        if client_go.is_none() {
            println!("SKIPPED: client-go, because no program was given");
        }
        Ok(Self { ours, kube_rs, client_go })
    }

    /// Waits until each client has the expected content, and returns the differences of those that have not.
    pub(crate) async fn compare(self, expected: &Contents) -> Vec<Comparison> {
        let mut results = Vec::new();
        for ours in &self.ours {
            let store = || ours.store();
            results.push((format!("our informer, {}, store", ours.name), difference(expected, store).await));
            let received = || contents(&ours.received);
            let name = format!("our informer, {}, handler", ours.name);
            results.push((name, difference(expected, received).await));
        }
        let kube_rs = || contents(&self.kube_rs);
        results.push(("kube-rs watcher".to_owned(), difference(expected, kube_rs).await));
        if let Some(child) = self.client_go {
            match compare_client_go(child, expected).await {
                Ok(compared) => results.extend(compared),
                Err(error) => results.push(("client-go".to_owned(), Some(error.to_string()))),
            }
        }
        results
    }
}

impl OurInformer {
    fn start(name: &'static str, factory: InformerFactory) -> Self {
        let informer = factory.of::<ConfigMap>();
        let received = SharedContents::default();
        let contents = Arc::clone(&received);
        informer.add_handler(on_event(move |event: &Event<ConfigMap>| {
            let mut contents = contents.lock().expect("no panic under the lock");
            let object = event.object();
            match event {
                Event::Added { .. } | Event::Updated { .. } => {
                    contents.insert(object.key().to_string(), object.resource_version().to_string());
                }
                Event::Deleted(_) => {
                    contents.remove(object.key().as_str());
                }
            }
        }));
        factory.start();
        Self { name, informer, received, _factory: factory }
    }

    fn store(&self) -> Contents {
        let entry = |object: &kube_informer::Object<ConfigMap>| {
            (object.key().to_string(), object.resource_version().to_string())
        };
        self.informer.lister().list().iter().map(entry).collect()
    }
}

fn contents(shared: &SharedContents) -> Contents {
    shared.lock().expect("no panic under the lock").clone()
}

async fn watch_with_kube_rs(client: Client, contents: SharedContents) {
    let mut initial = Contents::new();
    let mut events =
        watcher::watcher(Api::<ConfigMap>::all(client), watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let key = |map: &ConfigMap| format!("{}/{}", map.namespace().unwrap_or_default(), map.name_any());
        let version = |map: &ConfigMap| map.resource_version().unwrap_or_default();
        let mut contents = contents.lock().expect("no panic under the lock");
        match event {
            Ok(watcher::Event::Init) => initial.clear(),
            Ok(watcher::Event::InitApply(map)) => {
                initial.insert(key(&map), version(&map));
            }
            Ok(watcher::Event::InitDone) => *contents = std::mem::take(&mut initial),
            Ok(watcher::Event::Apply(map)) => {
                contents.insert(key(&map), version(&map));
            }
            Ok(watcher::Event::Delete(map)) => {
                contents.remove(&key(&map));
            }
            Err(_) => {} // the watcher retries
        }
    }
}

fn start_client_go(program: &str, url: &str) -> Result<Child, Error> {
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    Ok(command.spawn()?)
}

/// Sends the expected content to the Go program, which responds with a line for each informer: name, tab, difference.
async fn compare_client_go(mut child: Child, expected: &Contents) -> Result<Vec<Comparison>, Error> {
    let (mut stdin, stdout) =
        (child.stdin.take().ok_or("no stdin")?, child.stdout.take().ok_or("no stdout")?);
    stdin.write_all(format!("{}\n", serde_json::to_string(expected)?).as_bytes()).await?;
    let mut lines = BufReader::new(stdout).lines();
    let mut results = Vec::new();
    while let Some(line) = tokio::time::timeout(2 * TIMEOUT, lines.next_line()).await?? {
        let (name, difference) = line.split_once('\t').unwrap_or((&line, "malformed line"));
        results.push((name.to_owned(), Some(difference.to_owned()).filter(|text| !text.is_empty())));
    }
    if results.is_empty() {
        return Err("client-go printed no result".into());
    }
    Ok(results)
}

/// Waits until both are equal. After the timeout it returns how they differ.
async fn difference(expected: &Contents, actual: impl Fn() -> Contents) -> Option<String> {
    let equal = async || Ok::<_, TimedOut>(actual() == *expected);
    if wait_until(TIMEOUT, "the contents are equal", equal).await.is_ok() {
        return None;
    }
    let actual = actual();
    let missing = expected.iter().filter(|(key, version)| actual.get(*key) != Some(version)).count();
    let extra = actual.keys().filter(|key| !expected.contains_key(*key)).count();
    Some(format!("{missing} missing or stale, {extra} extra"))
}
