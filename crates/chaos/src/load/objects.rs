//! Very many objects in one cache.

use super::{mb, server::Server, truth};
use crate::{
    cluster::{Direct, config_maps, informer_client},
    resources::{cpu, peak, reset_peak, rss},
    until::until,
};
use kube_informer::{Event, InformerFactory, SharedInformer, on_event};
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// How many objects.
#[derive(Debug, Clone, Copy)]
pub struct ObjectLoad {
    /// Objects in the cache.
    pub objects: u64,
}

/// How long anything may take here.
const PATIENCE: Duration = Duration::from_secs(1800);
const NAMESPACES: u64 = 100;

/// What a handler heard.
#[derive(Default)]
struct Heard {
    adds: AtomicU64,
    others: AtomicU64,
}

/// An informer syncs very many small objects, is made to list them all again, and shows what the server has.
pub async fn many_objects(load: ObjectLoad, say: &dyn Fn(&str)) -> anyhow::Result<String> {
    let ObjectLoad { objects } = load;
    let mut server = Server::start().await?;
    let began = Instant::now();
    server.ask(&format!("fill {objects} {NAMESPACES}")).await?;
    let filled = began.elapsed().as_secs_f64();
    say(&format!("the server holds {objects} objects after {filled:.0}s, in {}", mb(server.rss()?)));
    let factory = InformerFactory::new(informer_client(server.address)?);
    let informer: SharedInformer<Value> = factory.of_kind(config_maps(), |options| options);
    let heard = Arc::new(Heard::default());
    informer.add_handler(listen(&heard));
    let (empty, cpu_before) = (rss()?, cpu()?);
    let began = Instant::now();
    factory.start();
    factory.synced(PATIENCE).await?;
    until(PATIENCE, "the handler has heard of everything", async || {
        Ok(heard.adds.load(Ordering::Relaxed) >= objects)
    })
    .await?;
    let (synced, synced_cpu) = (began.elapsed().as_secs_f64(), cpu()? - cpu_before);
    let (settled, first_peak) = (rss()?, peak()?);
    let (cached, each) = (informer.cached_bytes() as u64, (settled - empty) / objects.max(1));
    say(&format!("synced after {synced:.1}s, {} resident, {each} bytes an object", mb(settled)));
    reset_peak()?;
    let (began, cpu_before) = (Instant::now(), cpu()?);
    let newest = server.ask(&format!("relist {objects} {NAMESPACES}")).await?["newest"].clone();
    let newest = newest.as_u64().unwrap_or_default();
    until(PATIENCE, "the list is through", async || {
        let version = informer.lister().snapshot().resource_version();
        Ok(version.and_then(|version| version.number()).is_some_and(|version| version >= newest))
    })
    .await?;
    let (relisted, relist_cpu) = (began.elapsed().as_secs_f64(), cpu()? - cpu_before);
    let relist_peak = peak()?;
    say(&format!("listed again after {relisted:.1}s, comparing with a LIST"));
    let direct = Direct::new(server.address)?;
    let compared = truth::compare(&direct, &informer).await?;
    let others = heard.others.load(Ordering::Relaxed);
    factory.shutdown().await;
    Ok(format!(
        "objects={compared} synced={synced:.1}s cpu={synced_cpu:.1}s rss={} peak={} bytes/object={each} \
         packed/object={} relist={relisted:.1}s cpu={relist_cpu:.1}s peak={} calls-after-sync={others} server-rss={}",
        mb(settled),
        mb(first_peak),
        cached / objects.max(1),
        mb(relist_peak),
        mb(server.rss()?),
    ))
}

fn listen(heard: &Arc<Heard>) -> impl kube_informer::EventHandler<Value> + use<> {
    let heard = Arc::clone(heard);
    on_event(move |event: &Event<Value>| {
        let counter =
            if matches!(event, Event::Added { initial: true, .. }) { &heard.adds } else { &heard.others };
        counter.fetch_add(1, Ordering::Relaxed);
    })
}
