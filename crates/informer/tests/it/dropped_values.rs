//! Values of the user that use the informer, or panic, when they are dropped or woken: decoded objects, handlers, wakers.

use crate::support::{Errors, object, pass, secs, settle, source};
use futures_util::{FutureExt, StreamExt, task::ArcWake};
use kube_informer::{
    EventHandler, HandlerFuncs, Object, Packing, SharedInformer, Stop, WeakInformer, testing::FakeSource,
};
use serde::Deserialize;
use serde_json::Value;
use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::Context,
    time::Duration,
};

thread_local! {
    /// The informer that dropped values use.
    static INFORMER: RefCell<Option<WeakInformer<Value>>> = const { RefCell::new(None) };
    static DROPS: RefCell<usize> = const { RefCell::new(0) };
}

/// A decoded object that uses the informer when it is dropped.
#[derive(Deserialize)]
struct Decoded {}

impl Drop for Decoded {
    fn drop(&mut self) {
        use_informer();
        DROPS.with_borrow_mut(|drops| *drops += 1);
    }
}

/// Takes the locks of the processor and of all listeners.
fn use_informer() {
    let informer = INFORMER.with_borrow(|weak| weak.as_ref().and_then(WeakInformer::upgrade));
    if let Some(informer) = informer {
        informer.handlers();
        drop(informer.add_handler(HandlerFuncs::new()).scoped());
    }
}

/// Runs a check in a thread, so that a deadlock fails the test instead of hanging it.
fn without_deadlock(check: impl AsyncFnOnce() + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(check());
        sender.send(()).unwrap();
    });
    receiver.recv_timeout(Duration::from_secs(60)).expect("no deadlock and no panic");
}

/// An informer that keeps decoded objects, and whose decoded objects know it.
async fn with_decoded_objects(source: &FakeSource) -> SharedInformer<Decoded> {
    let informer = source.informer::<Decoded>(|builder| builder.packing(Packing::Decoded).handler_bound(1));
    INFORMER.set(Some(informer.cast().downgrade()));
    informer.start();
    informer.synced(secs(60)).await.unwrap();
    informer
}

fn decode_all(informer: &SharedInformer<Decoded>) {
    informer.lister().list().iter().for_each(|object| drop(object.decode().unwrap()));
}

#[test]
fn a_decoded_object_that_is_coalesced_away_may_use_the_informer() {
    without_deadlock(async || {
        let source = source();
        source.put(object("a", 1));
        let informer = with_decoded_objects(&source).await;
        let mut lagging = informer.events();
        for value in 2..10 {
            source.put(object("a", value));
            settle().await;
            decode_all(&informer);
        }
        assert!(DROPS.with_borrow(|drops| *drops) > 0, "coalesced states are dropped");
        while lagging.next().now_or_never().flatten().is_some() {}
        informer.stop(Stop::Drop).await;
    });
}

#[test]
fn a_decoded_object_that_only_a_replay_keeps_may_use_the_informer() {
    without_deadlock(async || {
        let source = source();
        source.put(object("a", 1));
        source.put(object("b", 1));
        let informer = with_decoded_objects(&source).await;
        decode_all(&informer);
        let mut late = informer.events();
        source.delete("ns/a");
        source.delete("ns/b");
        settle().await;
        assert_eq!(DROPS.with_borrow(|drops| *drops), 0, "the replay keeps them");
        while late.next().now_or_never().flatten().is_some() {}
        assert_eq!(DROPS.with_borrow(|drops| *drops), 2);
        informer.stop(Stop::Drop).await;
    });
}

/// A waker of an executor that polls where it is woken.
struct Inline(AtomicUsize);

impl ArcWake for Inline {
    fn wake_by_ref(this: &Arc<Self>) {
        this.0.fetch_add(1, Ordering::SeqCst);
        use_informer();
    }
}

#[test]
fn a_waker_may_use_the_informer() {
    without_deadlock(async || {
        let source = source();
        source.put(object("a", 1));
        let informer = source.informer::<Value>(|builder| builder);
        INFORMER.set(Some(informer.downgrade()));
        let registration = informer.add_handler(HandlerFuncs::new());
        let woken = Arc::new(Inline(AtomicUsize::new(0)));
        let waker = futures_util::task::waker(Arc::clone(&woken));
        let mut synced = Box::pin(registration.synced());
        assert!(synced.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
        informer.start();
        informer.synced(secs(60)).await.unwrap();
        pass(1).await;
        assert!(woken.0.load(Ordering::SeqCst) > 0 && registration.is_synced());
    });
}

/// A handler whose drop panics.
struct PanicsWhenDropped;

impl EventHandler<Value> for PanicsWhenDropped {
    fn on_add(&mut self, _: &Object<Value>, _: bool) {}
}

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_drop_panics_costs_nothing_else() {
    let (source, errors) = (source(), Errors::default());
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| errors.hook(builder));
    let registration = informer.add_handler(PanicsWhenDropped);
    informer.start();
    informer.synced(secs(60)).await.unwrap();
    registration.remove().await;
    settle().await;
    assert!(informer.status().is_live(), "{}", informer.status());
    informer.ready(Duration::MAX).unwrap();
    source.put(object("b", 1));
    informer.wait_until(&"ns/b".parse().unwrap(), secs(5), |object| object.is_some()).await.unwrap();
    assert_eq!(errors.take().len(), 1, "it is reported");
}

/// A decoded object whose drop panics.
#[derive(Deserialize)]
struct Bomb {}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

/// Two panics of drops at once would abort the process.
#[tokio::test(start_paused = true)]
async fn decoded_objects_whose_drop_panics_cost_nothing_else() {
    let (source, errors) = (source(), Errors::default());
    for name in ["a", "b", "c"] {
        source.put(object(name, 1));
    }
    let informer =
        source.informer::<Bomb>(|builder| errors.hook(builder.packing(Packing::Decoded).handler_bound(1)));
    let lagging = informer.events();
    informer.start();
    informer.synced(secs(60)).await.unwrap();
    for object in &informer.lister().list() {
        object.decode().unwrap();
    }
    for name in ["ns/a", "ns/b", "ns/c"] {
        source.delete(name);
    }
    settle().await;
    drop(lagging);
    settle().await;
    assert!(informer.status().is_live(), "{}", informer.status());
    assert_eq!((informer.lister().len(), errors.take()), (0, vec![]));
}

/// A value of an index that panics when it is compared or dropped.
#[derive(Clone, PartialEq, Eq)]
struct Wreck;

impl PartialOrd for Wreck {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wreck {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        panic!("on purpose");
    }
}

impl Drop for Wreck {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

#[tokio::test(start_paused = true)]
async fn values_of_an_index_that_panic_whatever_is_done_with_them_cost_one_object() {
    let (source, errors) = (source(), Errors::default());
    source.put(object("bad", 1));
    source.put(object("good", 1));
    let informer = source.informer::<Value>(|builder| errors.hook(builder));
    let wrecks = |object: &Object<Value>| if object.name() == "bad" { vec![Wreck; 3] } else { vec![] };
    let index = informer.index(wrecks).unwrap();
    informer.start();
    informer.synced(secs(60)).await.unwrap();
    settle().await;
    assert!(informer.status().is_live(), "{}", informer.status());
    assert_eq!((informer.lister().len(), informer.omitted_by(&index)), (2, Ok(1)));
    assert_eq!(errors.take().len(), 1);
}
