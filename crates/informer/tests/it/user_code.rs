//! Code of the user that calls back into the informer, or panics, wherever the informer calls it: never under a lock.

use crate::support::{object, secs, source};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_informer::{
    EventHandler, HandlerFuncs, InformerFactory, Object, SharedInformer, Stop, WeakInformer,
    testing::FakeSource,
};
use serde_json::Value;
use std::{
    cmp::Ordering,
    sync::{Arc, Mutex, OnceLock, mpsc},
    time::Duration,
};

/// Runs a check in a thread, so that a deadlock fails the test instead of hanging it.
fn without_deadlock<R: Send + 'static>(check: impl AsyncFnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let _ = sender.send(runtime.block_on(check()));
    });
    receiver.recv_timeout(Duration::from_secs(60)).expect("no deadlock and no panic")
}

/// An informer that code of the user finds once it is built.
type Slot = Arc<OnceLock<WeakInformer<Value>>>;

/// Everything about an informer that takes one of its locks.
fn use_informer(slot: &Slot) -> usize {
    let Some(informer) = slot.get().and_then(WeakInformer::upgrade) else { return 0 };
    if let Ok(index) = informer.index_field("data.value") {
        informer.remove_index(index).unwrap();
    }
    let registration = informer.add_handler(HandlerFuncs::new());
    drop(registration.scoped());
    let _ = (informer.status(), informer.is_stopped(), informer.lister().len());
    informer.handlers().len()
}

fn fill(slot: &Slot, informer: &SharedInformer<Value>) {
    slot.set(informer.downgrade()).unwrap();
}

async fn run(source: &FakeSource, informer: &SharedInformer<Value>) {
    informer.start();
    informer.synced(secs(60)).await.unwrap();
    source.put(object("b", 1));
    source.put(object("a", 2));
    source.delete("ns/b");
    tokio::time::sleep(secs(1)).await;
    assert_eq!(informer.lister().len(), 1);
    assert!(informer.status().is_live(), "{}", informer.status());
}

fn with_a() -> FakeSource {
    let source = source();
    source.put(object("a", 1));
    source
}

#[test]
fn an_error_hook_may_use_the_informer() {
    without_deadlock(async || {
        let (source, slot) = (with_a(), Slot::default());
        let found = Arc::clone(&slot);
        let informer =
            source.informer::<Value>(|builder| builder.on_error(move |_| _ = use_informer(&found)));
        fill(&slot, &informer);
        informer.index(|_: &Object<Value>| -> Option<u8> { panic!("on purpose") }).unwrap();
        run(&source, &informer).await;
    });
}

#[test]
fn an_index_function_may_use_the_informer() {
    without_deadlock(async || {
        let (source, slot) = (with_a(), Slot::default());
        let informer = source.informer::<Value>(|builder| builder);
        fill(&slot, &informer);
        let by_use = informer.index(move |_: &Object<Value>| [use_informer(&slot) < 100]).unwrap();
        run(&source, &informer).await;
        assert_eq!(informer.lister().by(&by_use, &true).unwrap().len(), 1);
    });
}

/// A value that uses the informer, or panics, when it is compared, cloned or dropped.
struct Named {
    name: String,
    slot: Slot,
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Named {}

impl PartialOrd for Named {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Named {
    fn cmp(&self, other: &Self) -> Ordering {
        use_informer(&self.slot);
        assert!(!self.name.contains("bomb") && !other.name.contains("bomb"), "on purpose");
        self.name.cmp(&other.name)
    }
}

impl Clone for Named {
    fn clone(&self) -> Self {
        use_informer(&self.slot);
        Self { name: self.name.clone(), slot: Arc::clone(&self.slot) }
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        use_informer(&self.slot);
    }
}

#[test]
fn values_of_an_index_may_use_the_informer_and_panic() {
    without_deadlock(async || {
        let (source, slot) = (with_a(), Slot::default());
        let informer = source.informer::<Value>(|builder| builder);
        fill(&slot, &informer);
        let by_name = informer
            .index(move |object: &Object<Value>| {
                [Named { name: object.name().to_owned(), slot: Arc::clone(&slot) }]
            })
            .unwrap();
        source.put(object("bomb", 1));
        source.put(object("c", 1));
        informer.start();
        informer.synced(secs(60)).await.unwrap();
        source.put(object("d", 1));
        source.delete("ns/c");
        tokio::time::sleep(secs(1)).await;
        let lister = informer.lister();
        let names: Vec<_> = lister.values(&by_name).unwrap().iter().map(|value| value.name.clone()).collect();
        assert_eq!(names, ["a", "d"], "the index is right about all others");
        assert_eq!(informer.omitted_by(&by_name), Ok(1));
        assert!(informer.status().is_live());
        source.delete("ns/bomb");
        tokio::time::sleep(secs(1)).await;
        assert_eq!((lister.len(), informer.omitted_by(&by_name)), (2, Ok(0)));
        informer.remove_index(by_name).unwrap();
        informer.stop(Stop::Drop).await;
    });
}

/// A handler that uses the informer in its calls and when it is dropped.
struct UsesInformer(Slot);

impl EventHandler<Value> for UsesInformer {
    fn on_add(&mut self, _: &Object<Value>, _: bool) {
        use_informer(&self.0);
    }
}

impl Drop for UsesInformer {
    fn drop(&mut self) {
        use_informer(&self.0);
    }
}

#[test]
fn a_handler_may_use_the_informer_when_it_is_called_and_dropped() {
    without_deadlock(async || {
        let (source, slot) = (with_a(), Slot::default());
        let informer = source.informer::<Value>(|builder| builder);
        fill(&slot, &informer);
        let early = informer.add_handler(UsesInformer(Arc::clone(&slot)));
        informer.add_handler(UsesInformer(Arc::clone(&slot))).remove().await;
        run(&source, &informer).await;
        early.remove().await;
        informer.add_handler(UsesInformer(Arc::clone(&slot)));
        informer.stop(Stop::Drain).await;
        informer.add_handler_with(UsesInformer(slot), Default::default());
    });
}

/// The runtime of the informer is gone: the task of a new handler is dropped where it is spawned.
#[test]
fn a_handler_may_use_the_informer_when_its_runtime_is_gone() {
    let (source, slot) = (with_a(), Slot::default());
    let found = Arc::clone(&slot);
    let informer = source.informer::<Value>(|builder| {
        builder
            .on_error(move |_| _ = found.get().map(|weak| weak.upgrade().map(|informer| informer.status())))
    });
    fill(&slot, &informer);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { informer.start() });
    drop(runtime);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        struct Looks(WeakInformer<Value>);
        impl EventHandler<Value> for Looks {}
        impl Drop for Looks {
            fn drop(&mut self) {
                let _ = self.0.upgrade().map(|informer| (informer.is_stopped(), informer.handlers().len()));
            }
        }
        informer.add_handler(Looks(informer.downgrade()));
        let _ = sender.send(());
    });
    receiver.recv_timeout(Duration::from_secs(60)).expect("no deadlock");
}

#[test]
fn sources_and_configuration_may_use_the_factory() {
    without_deadlock(async || {
        let slot: Arc<Mutex<Option<InformerFactory>>> = Arc::default();
        let (in_source, in_configuration) = (Arc::clone(&slot), Arc::clone(&slot));
        let factory = InformerFactory::from_sources(move |origin, _, namespace| {
            let factory = in_source.lock().unwrap().clone();
            if let Some(factory) = factory.filter(|_| origin.kind().kind == "Pod") {
                factory.of::<ConfigMap>();
            }
            FakeSource::new(origin.kind().clone()).source(namespace)
        })
        .configure(move |builder| {
            let factory = in_configuration.lock().unwrap().clone();
            let informers = factory.map(|factory| factory.informers().len());
            builder.page_size(10 + informers.unwrap_or(0) as u32)
        })
        .build();
        *slot.lock().unwrap() = Some(factory.clone());
        factory.of::<Pod>();
        factory.start();
        factory.synced(secs(60)).await.unwrap();
        assert_eq!(factory.informers().len(), 2, "each of them once");
        factory.shutdown().await;
        slot.lock().unwrap().take();
    });
}

/// A source that asks the factory for the informer that is being made gets the same one, not a second one.
#[test]
fn a_source_that_asks_for_its_own_informer_makes_one() {
    without_deadlock(async || {
        let slot: Arc<Mutex<Option<InformerFactory>>> = Arc::default();
        let asked = Arc::clone(&slot);
        let factory = InformerFactory::from_sources(move |origin, _, namespace| {
            let factory = asked.lock().unwrap().take();
            factory.map(|factory| factory.of::<ConfigMap>());
            FakeSource::new(origin.kind().clone()).source(namespace)
        })
        .build();
        *slot.lock().unwrap() = Some(factory.clone());
        factory.of::<ConfigMap>();
        assert_eq!(factory.informers().len(), 1);
    });
}

#[test]
fn a_transform_may_use_the_informer() {
    without_deadlock(async || {
        let (source, slot) = (with_a(), Slot::default());
        let found = Arc::clone(&slot);
        let transform = kube_informer::Transform::new().function(move |_| _ = use_informer(&found));
        let informer = source.informer::<Value>(|builder| builder.transform(transform));
        fill(&slot, &informer);
        run(&source, &informer).await;
    });
}

/// Tasks that hold a strong handle of their own informer run for ever; those with a weak one end with it.
#[tokio::test(start_paused = true)]
async fn a_handler_with_a_weak_handle_does_not_keep_its_informer() {
    let source = with_a();
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let informer = source.informer::<Value>(|builder| builder);
    let weak = informer.downgrade();
    let seen = Arc::new(Mutex::new(0));
    let (held, count) = (weak.clone(), Arc::clone(&seen));
    informer.add_handler(HandlerFuncs::<Value>::new().on_add(move |object, _| {
        let found = held.upgrade().and_then(|informer| informer.lister().get(object.key()));
        *count.lock().unwrap() += found.into_iter().count();
    }));
    informer.start();
    informer.synced(secs(60)).await.unwrap();
    tokio::time::sleep(secs(1)).await;
    assert_eq!(*seen.lock().unwrap(), 1);
    drop(informer);
    tokio::time::sleep(secs(1)).await;
    assert!(weak.upgrade().is_none());
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), before);
}
