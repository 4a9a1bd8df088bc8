//! What happens to etcd while we use it: it is cut off, killed, compacted, emptied, shared.

use std::sync::Arc;
use std::time::Duration;

use kube_embedded_apiserver::storage::{EtcdError, EtcdOptions, EtcdStorage, Storage, StorageError};
use kube_embedded_apiserver::watch_cache::{CacheOptions, ListRequest, WatchItem, WatchRequest};

use super::{ETCD_TIMEOUT, Etcd, turn};
use crate::contract::world::{Reader, World, at, key, kind, paths, text, v};

async fn world(storage: EtcdStorage) -> World {
    World::on(Arc::new(storage), Reader::Cached, CacheOptions::default()).await
}

/// Short deadlines: etcd is away on purpose.
fn options(url: &str) -> EtcdOptions {
    EtcdOptions::new([url]).timeout(Duration::from_secs(2))
}

/// Waits until something holds, looking again and again.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(ETCD_TIMEOUT, looking).await.unwrap_or_else(|_| panic!("never: {what}"));
}

#[tokio::test]
async fn a_restart_of_etcd_is_noticed_by_nobody_who_reads() {
    let Some(mut etcd) = Etcd::start() else { return };
    let world = world(EtcdStorage::connect(options(&etcd.url)).await.unwrap()).await;
    let first = world.create("a/x", v(1)).await;
    let mut watch = world.watch(WatchRequest { revision: at(first), ..WatchRequest::default() }).await;
    etcd.kill();
    let refused = world.storage.create(&key("a/y"), v(2).document("a/y")).await;
    assert_eq!(kind(&refused.unwrap_err()), "internal");
    let any = ListRequest {
        revision: kube_embedded_apiserver::watch_cache::RevisionOption::Any,
        ..ListRequest::default()
    };
    assert_eq!(paths(&world.list(any).await), ["a/x"], "what may be old is still read");
    etcd.restart();
    until("etcd takes writes", async || {
        let (key, document) = (key("a/y"), v(3).document("a/y"));
        // An answer may have been lost: then the object is there.
        !matches!(world.storage.create(&key, document).await, Err(StorageError::Internal { .. }))
    })
    .await;
    let event = tokio::time::timeout(ETCD_TIMEOUT, watch.text()).await.expect("the watch goes on");
    assert!(event.starts_with("ADDED a/y @"), "{event}");
    assert_eq!(paths(&world.list(ListRequest::default()).await), ["a/x", "a/y"]);
}

#[tokio::test]
async fn what_is_compacted_while_we_are_cut_off_is_read_anew() {
    let Some(etcd) = Etcd::start() else { return };
    let line = Line::new(&etcd.url).await;
    let near = world(EtcdStorage::connect(options(&line.url)).await.unwrap()).await;
    let far = EtcdStorage::connect(options(&etcd.url)).await.unwrap();
    let first = near.create("a/x", v(1)).await;
    let mut watch = near.watch(WatchRequest { revision: at(first), ..WatchRequest::default() }).await;
    line.cut();
    far.delete(&key("a/x"), first).await.unwrap();
    let last = far.create(&key("a/y"), v(2).document("a/y")).await.unwrap().revision;
    far.compact(last).await.unwrap();
    line.mend();
    let end = tokio::time::timeout(ETCD_TIMEOUT, watch.text()).await.expect("the watch ends");
    assert_eq!(end, "EOF", "its past is gone");
    until("the cache is back", async || near.cache.is_ready() && near.cache.revision() >= last).await;
    assert_eq!(paths(&near.list(ListRequest::default()).await), ["a/y"]);
    let again = near.create("a/z", v(3)).await;
    let mut watch = near.watch(WatchRequest { revision: at(last), ..WatchRequest::default() }).await;
    assert_eq!(watch.text().await, format!("ADDED a/z @{again} v3"));
}

#[tokio::test]
async fn an_etcd_that_comes_back_empty_is_an_empty_store() {
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
    let Some(etcd) = turn().await else { return };
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
            let item = futures_util::StreamExt::next(&mut stream).await.expect("the watch goes on");
            trace.push(text(&item));
            if matches!(&item, WatchItem::Event(event) if event.revision() == last) {
                break;
            }
        }
        traces.push(trace);
    }
    assert!(traces[0].len() > 100, "{}", traces[0].len());
    assert_eq!(traces[0], traces[1]);
    // A consistent read on one shows what was answered by the other, at once.
    for n in 0..20 {
        let revision = worlds[n % 2].create(&format!("b/{n}"), v(0)).await;
        let list = worlds[(n + 1) % 2].list(ListRequest::default()).await;
        assert!(list.revision >= revision && paths(&list).contains(&format!("b/{n}")));
    }
}

async fn write(world: &World, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    for n in 0..80 {
        let path = format!("a/{}", rng.u64(..10));
        let (key, document) = (key(&path), v(n).document(&path));
        let outcome = match world.storage.get(&key).await.unwrap() {
            None => world.storage.create(&key, document).await,
            Some(stored) if rng.u8(..4) == 0 => world.storage.delete(&key, stored.revision).await,
            Some(stored) => world.storage.update(&key, stored.revision, document).await,
        };
        match outcome {
            Ok(_) | Err(StorageError::Conflict(_) | StorageError::Exists(_) | StorageError::NotFound) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn an_etcd_of_kubernetes_is_refused_unless_told() {
    let Some(etcd) = Etcd::start() else { return };
    let mut client = etcd_client::Client::connect([&etcd.url], None).await.unwrap();
    client.put("/registry/pods/default/a", "k8s\0", None).await.unwrap();
    let refused = EtcdStorage::connect(options(&etcd.url)).await;
    assert!(matches!(refused, Err(EtcdError::Occupied)), "{refused:?}");
    let storage = EtcdStorage::connect(options(&etcd.url).share_with_kubernetes(true)).await.unwrap();
    // Others take revisions too; ours go on.
    let world = world(storage).await;
    let before = world.create("a/x", v(0)).await;
    client.put("/registry/pods/default/a", "k8s\0\0", None).await.unwrap();
    assert_eq!(world.current().await, before, "not one of our writes");
    assert_eq!(world.list(ListRequest::default()).await.revision, before);
    assert_eq!(world.create("a/y", v(0)).await, before + 2);
    assert_eq!(world.list(ListRequest::default()).await.revision, before + 2);
}

#[tokio::test]
async fn what_others_put_under_our_prefix_is_left_out() {
    let Some(etcd) = turn().await else { return };
    let world = world(etcd.store().await).await;
    world.create("a/x", v(0)).await;
    let full = format!("{}/things/a/odd", prefix(&etcd.options()));
    let mut client = etcd_client::Client::connect([&etcd.etcd.url], None).await.unwrap();
    client.put(full, "odd", None).await.unwrap();
    world.create("a/y", v(0)).await;
    assert_eq!(paths(&world.list(ListRequest::default()).await), ["a/x", "a/y"]);
    world.cache.forget_window().await.unwrap();
    assert_eq!(paths(&world.list(ListRequest::default()).await), ["a/x", "a/y"]);
}

/// As its `Debug` says it.
fn prefix(options: &EtcdOptions) -> String {
    let text = format!("{options:?}");
    text.trim_end_matches(')').rsplit(' ').next().unwrap().to_owned()
}

#[tokio::test]
async fn an_etcd_that_is_not_there_is_named() {
    let error = EtcdStorage::connect(options("http://127.0.0.1:1")).await.unwrap_err();
    assert!(error.to_string().contains("http://127.0.0.1:1"), "{error}");
}

#[tokio::test]
async fn tls_with_both_sides_shown() {
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
    // etcd talks to itself with its own certificate.
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
    let stranger = EtcdStorage::connect(options(&etcd.url).ca_certificate(ours.pem())).await;
    assert!(matches!(stranger, Err(EtcdError::Storage { .. })), "{stranger:?}");
    let impostor = options(&etcd.url).ca_certificate(other.pem()).client_certificate(&certificate, &key);
    let refused = EtcdStorage::connect(impostor).await;
    assert!(matches!(refused, Err(EtcdError::Storage { .. })), "{refused:?}");
}

/// A line to etcd that can be cut and mended.
struct Line {
    url: String,
    whole: tokio::sync::watch::Sender<bool>,
}

impl Line {
    async fn new(target: &str) -> Self {
        let target = target.trim_start_matches("http://").to_owned();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (whole, state) = tokio::sync::watch::channel(true);
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
                        _ = state.wait_for(|whole| !whole) => {}
                    }
                });
            }
        });
        Self { url, whole }
    }

    fn cut(&self) {
        self.whole.send_replace(false);
    }

    fn mend(&self) {
        self.whole.send_replace(true);
    }
}
