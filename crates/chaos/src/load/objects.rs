//! Many objects in one cache.

use super::{child_server::ChildServer, compare::compare_with_list, mb};
use crate::{
    cluster::{DirectClient, config_maps, informer_client},
    resources::{cpu, peak, reset_peak, rss},
};
use harness::wait_until;
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

/// The size of a load of many objects.
#[derive(Debug, Clone, Copy)]
pub struct ObjectLoad {
    /// Objects in the cache.
    pub objects: u64,
}

/// Limit for each wait.
const TIMEOUT: Duration = Duration::from_secs(1800);
const NAMESPACES: u64 = 100;

/// The number of events that a handler received.
#[derive(Default)]
struct EventCounts {
    initial: AtomicU64,
    others: AtomicU64,
}

/// Syncs many small objects, forces a relist, and compares the cache with a LIST.
pub async fn many_objects(load: ObjectLoad, progress: &dyn Fn(&str)) -> anyhow::Result<String> {
    let ObjectLoad { objects } = load;
    let mut server = ChildServer::start().await?;
    let began = Instant::now();
    server.execute(&format!("fill {objects} {NAMESPACES}")).await?;
    let filled = began.elapsed().as_secs_f64();
    progress(&format!("created {objects} objects after {filled:.0}s, server memory {}", mb(server.rss()?)));
    let factory = InformerFactory::new(informer_client(server.address)?);
    let informer: SharedInformer<Value> = factory.of_kind(config_maps(), |options| options);
    let events = Arc::new(EventCounts::default());
    informer.add_handler(counter(&events));
    let (empty, cpu_before) = (rss()?, cpu()?);
    let began = Instant::now();
    factory.start();
    factory.synced(TIMEOUT).await?;
    wait_until(TIMEOUT, "the handler has received every object", async || {
        anyhow::Ok(events.initial.load(Ordering::Relaxed) >= objects)
    })
    .await?;
    let (synced, synced_cpu) = (began.elapsed().as_secs_f64(), cpu()? - cpu_before);
    let (settled, first_peak) = (rss()?, peak()?);
    let (cached, each) = (informer.cached_bytes() as u64, (settled - empty) / objects.max(1));
    progress(&format!("synced after {synced:.1}s, {} resident, {each} bytes per object", mb(settled)));
    reset_peak()?;
    let (began, cpu_before) = (Instant::now(), cpu()?);
    let newest = server.execute(&format!("relist {objects} {NAMESPACES}")).await?["newest"].clone();
    let newest = newest.as_u64().unwrap_or_default();
    wait_until(TIMEOUT, "the relist is committed", async || {
        let version = informer.lister().snapshot().resource_version();
        anyhow::Ok(version.and_then(|version| version.number()).is_some_and(|version| version >= newest))
    })
    .await?;
    let (relisted, relist_cpu) = (began.elapsed().as_secs_f64(), cpu()? - cpu_before);
    let relist_peak = peak()?;
    progress(&format!("relisted after {relisted:.1}s, comparing with a LIST"));
    let direct = DirectClient::new(server.address)?;
    let compared = compare_with_list(&direct, &informer).await?;
    let others = events.others.load(Ordering::Relaxed);
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

fn counter(events: &Arc<EventCounts>) -> impl kube_informer::EventHandler<Value> + use<> {
    let events = Arc::clone(events);
    on_event(move |event: &Event<Value>| {
        let counter = if matches!(event, Event::Added { initial: true, .. }) {
            &events.initial
        } else {
            &events.others
        };
        counter.fetch_add(1, Ordering::Relaxed);
    })
}
