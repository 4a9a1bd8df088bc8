//! Resyncs under a clock that is not exact.

use crate::support::{Recorder, object, secs, settle, source, started};
use kube_informer::InformerBuilder;
use std::time::Duration;

/// A tick that comes late must not make the next one look early: a handler with the period of its informer
/// is called at every tick.
#[tokio::test(start_paused = true)]
async fn a_late_tick_does_not_swallow_the_next() {
    let source = source();
    source.put(object("a", 1));
    let recorder = Recorder::default();
    let informer = source.informer(|builder: InformerBuilder| builder.resync(secs(10)));
    informer.add_handler(recorder.clone());
    started(&informer).await;
    recorder.take();

    tokio::time::advance(secs(10) + Duration::from_millis(5)).await;
    settle().await;
    assert_eq!(recorder.take().len(), 1, "the first tick, 5 ms late");
    tokio::time::advance(secs(10) - Duration::from_millis(5)).await;
    settle().await;
    assert_eq!(recorder.take().len(), 1, "the second tick, on time");
}
