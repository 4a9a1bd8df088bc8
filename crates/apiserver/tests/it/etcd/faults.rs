//! Faults of etcd: disconnects, restarts, compaction, loss of data, foreign data.

use std::sync::Arc;
use std::time::Duration;

use kube_embedded_apiserver::storage::{EtcdError, EtcdOptions, EtcdStorage, Storage, StorageError};
use kube_embedded_apiserver::watch_cache::{CacheOptions, ListRequest, WatchItem, WatchRequest};

use super::{ETCD_TIMEOUT, Etcd, shared, until};
use crate::contract::world::{Reader, World, at, key, kind, paths, text, v};

async fn world(storage: EtcdStorage) -> World {
    World::on(Arc::new(storage), Reader::Cached, CacheOptions::default()).await
}

/// Options with a short timeout, because these tests stop etcd.
fn options(url: &str) -> EtcdOptions {
    EtcdOptions::new([url]).timeout(Duration::from_secs(2))
}

#[tokio::test]
async fn reads_survive_a_restart_of_etcd() {
    let Some(mut etcd) = Etcd::start() else { return };
    let world = world(EtcdStorage::connect(options(&etcd.url)).await.unwrap()).await;
    let first = world.create("a/x", v(1)).await;
    let mut watch = world.watch(WatchRequest { revision: at(first), ..WatchRequest::default() }).await;
    etcd.kill();
    let failed = world.storage.create(&key("a/y"), v(2).document("a/y")).await;
    assert_eq!(kind(&failed.unwrap_err()), "internal");
    let any = ListRequest {
        revision: kube_embedded_apiserver::watch_cache::RevisionOption::Any,
        ..ListRequest::default()
    };
    assert_eq!(paths(&world.list(any).await), ["a/x"], "a list that may be stale is served from the cache");
    etcd.restart();
    until("etcd takes writes", async || {
        let (key, document) = (key("a/y"), v(3).document("a/y"));
        // If a response was lost, the object already exists.
        !matches!(world.storage.create(&key, document).await, Err(StorageError::Internal { .. }))
    })
    .await;
    let event = tokio::time::timeout(ETCD_TIMEOUT, watch.text()).await.expect("the watch continues");
    assert!(event.starts_with("ADDED a/y @"), "{event}");
    assert_eq!(paths(&world.list(ListRequest::default()).await), ["a/x", "a/y"]);
}

#[tokio::test]
async fn the_cache_reinitializes_if_changes_were_compacted_while_disconnected() {
    let Some(etcd) = Etcd::start() else { return };
    let proxy = Proxy::new(&etcd.url).await;
    let near = world(EtcdStorage::connect(options(&proxy.url)).await.unwrap()).await;
    let far = EtcdStorage::connect(options(&etcd.url)).await.unwrap();
    let first = near.create("a/x", v(1)).await;
    let mut watch = near.watch(WatchRequest { revision: at(first), ..WatchRequest::default() }).await;
    proxy.disconnect();
    far.delete(&key("a/x"), first).await.unwrap();
    let last = far.create(&key("a/y"), v(2).document("a/y")).await.unwrap().revision;
    far.compact(last).await.unwrap();
    proxy.reconnect();
    let end = tokio::time::timeout(ETCD_TIMEOUT, watch.text()).await.expect("the watch ends");
    assert_eq!(end, "EOF", "its next change is compacted");
    until("the cache is initialized", async || near.cache.is_ready() && near.cache.revision() >= last).await;
    assert_eq!(paths(&near.list(ListRequest::default()).await), ["a/y"]);
    let again = near.create("a/z", v(3)).await;
    let mut watch = near.watch(WatchRequest { revision: at(last), ..WatchRequest::default() }).await;
    assert_eq!(watch.text().await, format!("ADDED a/z @{again} v3"));
}

#[tokio::test]
async fn an_etcd_without_its_data_is_an_empty_store() {
    let Some(mut etcd) = Etcd::start() else { return };
    let world = world(EtcdStorage::connect(options(&etcd.url)).await.unwrap()).await;
    for n in 0..20 {
        world.create(&format!("a/{n}"), v(n)).await;
    }
    let mut watch =
        world.watch(WatchRequest { revision: at(world.current().await), ..WatchRequest::default() }).await;
    etcd.restart_empty();
    let end = tokio::time::timeout(ETCD_TIMEOUT, watch.text()).await.expect("the watch ends");
    assert_eq!(end, "EOF");
    until("the cache is empty", async || {
        world.cache.is_ready()
            && world.cache.list(&ListRequest::default()).await.is_ok_and(|list| list.items.is_empty())
    })
    .await;
    world.create("a/new", v(1)).await;
    assert_eq!(paths(&world.list(ListRequest::default()).await), ["a/new"]);
}

#[tokio::test]
async fn servers_on_one_etcd_see_one_order() {
    let Some(etcd) = shared().await else { return };
    let worlds = [world(etcd.store().await).await, world(etcd.store().await).await].map(Arc::new);
    let start = worlds[0].current().await;
    let request = WatchRequest { revision: at(start), ..WatchRequest::default() };
    let streams =
        [worlds[0].cache.watch(&request).await.unwrap(), worlds[1].cache.watch(&request).await.unwrap()];
    let writers = (0..4).map(|writer| {
        let world = Arc::clone(&worlds[writer % 2]);
        tokio::spawn(async move { write(&world, writer as u64).await })
    });
    futures_util::future::join_all(writers).await.into_iter().for_each(|done| done.unwrap());
    let last = worlds[0].create("zz/last", v(0)).await;
    let mut traces = Vec::new();
    for mut stream in streams {
        let mut trace = Vec::new();
        loop {
            let item = futures_util::StreamExt::next(&mut stream).await.expect("the watch continues");
            trace.push(text(&item));
            if matches!(&item, WatchItem::Event(event) if event.revision() == last) {
                break;
            }
        }
        traces.push(trace);
    }
    assert!(traces[0].len() > 100, "{}", traces[0].len());
    assert_eq!(traces[0], traces[1]);
    // A consistent read on one server shows completed writes of the other.
    for n in 0..20 {
        let revision = worlds[n % 2].create(&format!("b/{n}"), v(0)).await;
        let list = worlds[(n + 1) % 2].list(ListRequest::default()).await;
        assert!(list.revision >= revision && paths(&list).contains(&format!("b/{n}")));
    }
}

async fn write(world: &World, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    for n in 0..80 {
        world.write_at_random(&mut rng, 10, n).await;
    }
}

#[tokio::test]
async fn an_etcd_with_kubernetes_data_is_rejected_by_default() {
    let Some(etcd) = Etcd::start() else { return };
    let mut client = etcd_client::Client::connect([&etcd.url], None).await.unwrap();
    client.put("/registry/pods/default/a", "k8s\0", None).await.unwrap();
    let rejected = EtcdStorage::connect(options(&etcd.url)).await;
    assert!(matches!(rejected, Err(EtcdError::Occupied)), "{rejected:?}");
    let storage = EtcdStorage::connect(options(&etcd.url).share_with_kubernetes(true)).await.unwrap();
    // Other users of etcd take revisions too.
    let world = world(storage).await;
    let before = world.create("a/x", v(0)).await;
    client.put("/registry/pods/default/a", "k8s\0\0", None).await.unwrap();
    assert_eq!(world.current().await, before, "not one of our writes");
    assert_eq!(world.list(ListRequest::default()).await.revision, before);
    assert_eq!(world.create("a/y", v(0)).await, before + 2);
    assert_eq!(world.list(ListRequest::default()).await.revision, before + 2);
}

#[tokio::test]
async fn foreign_values_under_our_prefix_are_ignored() {
    let Some(etcd) = shared().await else { return };
    let world = world(etcd.store().await).await;
    world.create("a/x", v(0)).await;
    let full = format!("{}/things/a/foreign", prefix(&etcd.options()));
    let mut client = etcd_client::Client::connect([&etcd.etcd.url], None).await.unwrap();
    client.put(full, "not an object", None).await.unwrap();
    world.create("a/y", v(0)).await;
    assert_eq!(paths(&world.list(ListRequest::default()).await), ["a/x", "a/y"]);
    world.cache.forget_window().await.unwrap();
    assert_eq!(paths(&world.list(ListRequest::default()).await), ["a/x", "a/y"]);
}

/// The prefix, taken from the `Debug` output.
fn prefix(options: &EtcdOptions) -> String {
    let text = format!("{options:?}");
    text.trim_end_matches(')').rsplit(' ').next().unwrap().to_owned()
}

#[tokio::test]
async fn the_error_names_an_unreachable_etcd() {
    let error = EtcdStorage::connect(options("http://127.0.0.1:1")).await.unwrap_err();
    assert!(error.to_string().contains("http://127.0.0.1:1"), "{error}");
}

#[tokio::test]
async fn mutual_tls_works() {
    use rcgen::{
        BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    };
    let authority = || {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    };
    let (ours, other) = (authority(), authority());
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    // etcd also uses its certificate as a client of itself.
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &ours).unwrap().pem();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let key = key.serialize_pem();
    let flags = format!(
        "--cert-file {} --key-file {} --trusted-ca-file {} --client-cert-auth",
        file("cert", &certificate),
        file("key", &key),
        file("ca", &ours.pem())
    );
    let Some(etcd) = Etcd::start_with("https", &flags) else { return };
    let known = options(&etcd.url).ca_certificate(ours.pem()).client_certificate(&certificate, &key);
    let storage = EtcdStorage::connect(known).await.unwrap();
    world(storage).await.create("a/x", v(0)).await;
    let without_certificate = EtcdStorage::connect(options(&etcd.url).ca_certificate(ours.pem())).await;
    assert!(matches!(without_certificate, Err(EtcdError::Storage { .. })), "{without_certificate:?}");
    let other_ca = options(&etcd.url).ca_certificate(other.pem()).client_certificate(&certificate, &key);
    let untrusted = EtcdStorage::connect(other_ca).await;
    assert!(matches!(untrusted, Err(EtcdError::Storage { .. })), "{untrusted:?}");
}

/// A TCP proxy to etcd that can be disconnected.
struct Proxy {
    url: String,
    connected: tokio::sync::watch::Sender<bool>,
}

impl Proxy {
    async fn new(target: &str) -> Self {
        let target = target.trim_start_matches("http://").to_owned();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (connected, state) = tokio::sync::watch::channel(true);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let (mut state, target) = (state.clone(), target.clone());
                if !*state.borrow_and_update() {
                    continue; // closed at once
                }
                tokio::spawn(async move {
                    let Ok(mut far) = tokio::net::TcpStream::connect(target).await else { return };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = state.wait_for(|connected| !connected) => {}
                    }
                });
            }
        });
        Self { url, connected }
    }

    fn disconnect(&self) {
        self.connected.send_replace(false);
    }

    fn reconnect(&self) {
        self.connected.send_replace(true);
    }
}
