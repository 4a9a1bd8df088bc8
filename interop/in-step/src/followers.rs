//! Everybody who follows the server.

use crate::{Contents, Error, PATIENCE};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt};
use kube_embedded_apiserver::ApiServer;
use kube_informer::{Event, InformerFactory, Scope, SharedInformer, on_event};
use kube_runtime::{WatchStreamExt, watcher};
use std::{
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, Command},
};

type Known = Arc<Mutex<Contents>>;

/// All followers, by name.
pub(crate) struct Followers {
    ours: Vec<Ours>,
    kube_rs: Known,
    client_go: Option<Child>,
}

/// An informer of our own, and what its handler was told.
struct Ours {
    name: &'static str,
    informer: SharedInformer<ConfigMap>,
    told: Known,
    _factory: InformerFactory,
}

impl Followers {
    pub(crate) async fn start(server: &ApiServer, client_go: Option<&str>) -> Result<Self, Error> {
        let client = server.client()?;
        let streaming = InformerFactory::new(client.clone());
        let paged = InformerFactory::builder(client.clone())
            .configure(|builder| builder.streaming_list(false).page_size(7).handler_bound(4))
            .build();
        let namespaces = InformerFactory::builder(client.clone())
            .scope(Scope::namespaces(["a", "a-b", "ab", "default"]))
            .build();
        let ours = [("streaming", streaming), ("paged", paged), ("namespaces", namespaces)];
        let ours: Vec<_> = ours.into_iter().map(|(name, factory)| Ours::start(name, factory)).collect();
        for follower in &ours {
            follower.informer.synced(PATIENCE).await?;
        }
        let kube_rs = Known::default();
        tokio::spawn(follow_with_kube_rs(client, Arc::clone(&kube_rs)));
        let client_go = client_go.map(|program| start_client_go(program, &server.url())).transpose()?;
        if client_go.is_none() {
            println!("client-go does not take part: no program was given");
        }
        Ok(Self { ours, kube_rs, client_go })
    }

    /// Waits for each follower to have what is expected; says how it differs if it never does.
    pub(crate) async fn compare(self, expected: &Contents) -> Vec<(String, Option<String>)> {
        let mut results = Vec::new();
        for ours in &self.ours {
            let store = || ours.store();
            results.push((format!("our informer, {}, store", ours.name), eventually(expected, store).await));
            let told = || ours.told.lock().expect("no panic under the lock").clone();
            results.push((format!("our informer, {}, handler", ours.name), eventually(expected, told).await));
        }
        let known = || self.kube_rs.lock().expect("no panic under the lock").clone();
        results.push(("kube-rs watcher".to_owned(), eventually(expected, known).await));
        if let Some(child) = self.client_go {
            match ask_client_go(child, expected).await {
                Ok(answers) => results.extend(answers),
                Err(error) => results.push(("client-go".to_owned(), Some(error.to_string()))),
            }
        }
        results
    }
}

impl Ours {
    fn start(name: &'static str, factory: InformerFactory) -> Self {
        let informer = factory.of::<ConfigMap>();
        let told = Known::default();
        let known = Arc::clone(&told);
        informer.add_handler(on_event(move |event: &Event<ConfigMap>| {
            let mut known = known.lock().expect("no panic under the lock");
            let object = event.object();
            match event {
                Event::Added { .. } | Event::Updated { .. } => {
                    known.insert(object.key().to_string(), object.resource_version().to_string());
                }
                Event::Deleted(_) => {
                    known.remove(object.key().as_str());
                }
            }
        }));
        factory.start();
        Self { name, informer, told, _factory: factory }
    }

    fn store(&self) -> Contents {
        let entry = |object: &kube_informer::Object<ConfigMap>| {
            (object.key().to_string(), object.resource_version().to_string())
        };
        self.informer.lister().list().iter().map(entry).collect()
    }
}

async fn follow_with_kube_rs(client: Client, known: Known) {
    let mut fresh = Contents::new();
    let mut events =
        watcher::watcher(Api::<ConfigMap>::all(client), watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let key = |map: &ConfigMap| format!("{}/{}", map.namespace().unwrap_or_default(), map.name_any());
        let version = |map: &ConfigMap| map.resource_version().unwrap_or_default();
        let mut known = known.lock().expect("no panic under the lock");
        match event {
            Ok(watcher::Event::Init) => fresh.clear(),
            Ok(watcher::Event::InitApply(map)) => {
                fresh.insert(key(&map), version(&map));
            }
            Ok(watcher::Event::InitDone) => *known = std::mem::take(&mut fresh),
            Ok(watcher::Event::Apply(map)) => {
                known.insert(key(&map), version(&map));
            }
            Ok(watcher::Event::Delete(map)) => {
                known.remove(&key(&map));
            }
            Err(_) => {} // it retries by itself
        }
    }
}

fn start_client_go(program: &str, url: &str) -> Result<Child, Error> {
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    Ok(command.spawn()?)
}

/// Tells the Go program what to expect; it answers with a line for each of its followers: name, tab, difference.
async fn ask_client_go(
    mut child: Child,
    expected: &Contents,
) -> Result<Vec<(String, Option<String>)>, Error> {
    let (mut stdin, stdout) =
        (child.stdin.take().ok_or("no stdin")?, child.stdout.take().ok_or("no stdout")?);
    stdin.write_all(format!("{}\n", serde_json::to_string(expected)?).as_bytes()).await?;
    let mut lines = BufReader::new(stdout).lines();
    let mut answers = Vec::new();
    while let Some(line) = tokio::time::timeout(2 * PATIENCE, lines.next_line()).await?? {
        let (name, difference) = line.split_once('\t').unwrap_or((&line, "no answer"));
        answers.push((name.to_owned(), Some(difference.to_owned()).filter(|text| !text.is_empty())));
    }
    if answers.is_empty() {
        return Err("client-go said nothing".into());
    }
    Ok(answers)
}

/// Waits until both are equal; otherwise says how they differ.
async fn eventually(expected: &Contents, actual: impl Fn() -> Contents) -> Option<String> {
    let equal = async {
        while actual() != *expected {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, equal).await.is_ok() {
        return None;
    }
    let actual = actual();
    let missing = expected.iter().filter(|(key, version)| actual.get(*key) != Some(version)).count();
    let surplus = actual.keys().filter(|key| !expected.contains_key(*key)).count();
    Some(format!("{missing} missing or old, {surplus} too many"))
}
