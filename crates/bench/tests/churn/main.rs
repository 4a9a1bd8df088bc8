//! Memory of an informer under churn, counted by the allocator, over a simulated day.
//!
//! `CHURN_HOURS` is the number of simulated hours. One test, because the allocator counts for the whole process.
#![allow(missing_docs, clippy::print_stdout)]

mod churn_source;

use cap::Cap;
use churn_source::ChurnSource;
use kube_informer::{HandlerFuncs, InformerBuilder, ListWatch, SharedInformer, Stop};
use serde_json::Value;
use std::{alloc::System, sync::Arc, time::Duration};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Pods at any time.
const PODS: usize = 2000;
/// Hours, unless `CHURN_HOURS` is set.
const HOURS: u64 = 1;
/// Time after which memory has settled: dictionaries are trained, and the first garbage is compacted.
const SETTLED: Duration = Duration::from_secs(1800);
/// How often memory is measured.
const MEASURED: Duration = Duration::from_secs(300);
/// Measurements of which the mean is taken: garbage comes and goes.
const MEAN_OF: usize = 6;
/// Allowed growth of memory after it has settled.
const GROWTH: f64 = 1.05;

/// The means of successive measurements.
struct Measured {
    bytes: Vec<f64>,
}

impl Measured {
    fn mean(&self) -> f64 {
        let last = &self.bytes[self.bytes.len().saturating_sub(MEAN_OF)..];
        last.iter().sum::<f64>() / last.len() as f64
    }
}

#[tokio::test(start_paused = true)]
async fn memory_does_not_grow_under_churn() {
    let hours = std::env::var("CHURN_HOURS").ok().and_then(|hours| hours.parse().ok()).unwrap_or(HOURS);
    let source = ChurnSource::new(PODS);
    let before = ALLOCATOR.allocated();
    let (origin, served) = (Arc::clone(source.origin()), Arc::new(source.clone()) as Arc<dyn ListWatch>);
    let informer: SharedInformer<Value> = InformerBuilder::new(origin).build(move |_| Arc::clone(&served));
    informer.index_field("spec.nodeName").expect("an index");
    informer.add_handler(HandlerFuncs::new());
    informer.start();
    informer.synced(Duration::from_secs(60)).await.expect("synced");
    tokio::time::sleep(SETTLED).await;
    let mut measured = Measured { bytes: Vec::new() };
    let mut settled = None;
    let rounds = (hours * 3600 - SETTLED.as_secs()) / MEASURED.as_secs();
    for round in 1..=rounds as usize {
        tokio::time::sleep(MEASURED).await;
        measured.bytes.push((ALLOCATOR.allocated() - before) as f64);
        if round < MEAN_OF {
            continue;
        }
        let mean = measured.mean();
        let settled = *settled.get_or_insert(mean);
        if round % (3600 / MEASURED.as_secs() as usize) == MEAN_OF {
            let (kib, growth) = (mean / 1024.0, 100.0 * (mean / settled - 1.0));
            println!("{} events: {kib:.0} KiB, {growth:+.2} %", source.events());
        }
        assert!(mean <= settled * GROWTH, "{mean:.0} bytes are allocated, {settled:.0} when settled");
    }
    let (usage, found) = (informer.memory(), ALLOCATOR.allocated() - before);
    println!("{hours} h, {} events, {found} bytes allocated, {usage:?}", source.events());
    assert_eq!(informer.lister().len(), source.pods());
    assert!(informer.lister().list().iter().all(|object| source.is_current(object)));
    informer.stop(Stop::Drop).await;
}
