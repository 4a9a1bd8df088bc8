//! Nothing is left behind: no task, no watch, no memory.

use crate::support::{Recorder, object, pass, settle, source, started};
use kube_informer::{HandlerFuncs, Object, Stop, Transform, testing::Fault};
use serde_json::Value;
use std::sync::{Arc, Weak};

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// A value that every piece of user code holds on to, and a way to see whether any of it is left.
fn token() -> (Arc<String>, Weak<String>) {
    let token = Arc::new("held by user code".to_owned());
    let seen = Arc::downgrade(&token);
    (token, seen)
}

#[tokio::test(start_paused = true)]
async fn after_a_stop_no_task_and_no_user_code_is_left() {
    for stop in [Stop::Drain, Stop::Drop] {
        let before = tasks();
        let source = source();
        for i in 0..50 {
            source.put(object(&format!("o{i}"), 1));
        }
        let (token, seen) = token();
        let [hook, transform, index, handler] = [(); 4].map(|()| Arc::clone(&token));
        let informer = source.informer::<Value>(|builder| {
            builder
                .on_error(move |_| assert!(!hook.is_empty()))
                .transform(Transform::new().function(move |_| assert!(!transform.is_empty())))
        });
        informer.index(move |_: &Object<Value>| index.len().checked_sub(1)).unwrap();
        informer.add_handler(HandlerFuncs::<Value>::new().on_add(move |_, _| assert!(!handler.is_empty())));
        drop(token);
        started(&informer).await;
        assert!(tasks() > before);
        informer.stop(stop).await;
        assert_eq!((tasks(), source.open_watches()), (before, 0));
        drop(informer);
        assert_eq!(seen.strong_count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_when_the_informer_is_dropped_at_any_point() {
    let before = tasks();
    for fault in [None, Some(Fault::Silence), Some(Fault::Refuse), Some(Fault::BreakAfter(1))] {
        let source = source();
        source.put(object("a", 1));
        if let Some(fault) = fault {
            source.fail_watch(fault.clone()).fail_list(fault);
        }
        let (token, seen) = token();
        let informer = source.informer::<Value>(|builder| builder);
        informer.add_handler(HandlerFuncs::<Value>::new().on_add(move |_, _| assert!(!token.is_empty())));
        informer.start();
        settle().await;
        drop(informer);
        settle().await;
        assert_eq!((tasks(), source.open_watches(), seen.strong_count()), (before, 0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn coming_and_going_handlers_leave_nothing_behind() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder);
    started(&informer).await;
    let before = tasks();
    let (token, seen) = token();
    for i in 0..200 {
        let held = Arc::clone(&token);
        let registration =
            informer.add_handler(HandlerFuncs::<Value>::new().on_add(move |_, _| assert!(!held.is_empty())));
        if i % 3 == 0 {
            settle().await;
        }
        match i % 2 {
            0 => registration.remove().await,
            _ => drop(registration.scoped()),
        }
        drop(informer.events());
    }
    settle().await;
    drop(token);
    assert_eq!((tasks(), seen.strong_count()), (before, 0));
    informer.stop(Stop::Drop).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_who_add_and_remove_at_once_do_no_harm() {
    let source = source();
    for i in 0..20 {
        source.put(object(&format!("o{i}"), 1));
    }
    let informer = source.informer::<Value>(|builder| builder);
    informer.start();
    let crowd = (0..100).map(|i| {
        let (informer, source) = (informer.clone(), source.clone());
        tokio::spawn(async move {
            let registration = informer.add_handler(Recorder::default());
            source.put(object(&format!("o{}", i % 20), i));
            if i % 2 == 0 {
                registration.synced().await.unwrap();
            }
            registration.remove().await;
        })
    });
    for member in crowd.collect::<Vec<_>>() {
        member.await.unwrap();
    }
    informer.stop(Stop::Drain).await;
    assert_eq!(informer.lister().len(), 20);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_cached_is_no_longer_held() {
    let source = source();
    let informer = source.informer::<Value>(|builder| builder);
    let by_value = informer.index_field("data.value").unwrap();
    informer.add_handler(Recorder::default());
    started(&informer).await;
    for i in 0..100 {
        source.put(object(&format!("o{i}"), i));
    }
    settle().await;
    assert!(informer.cached_bytes() > 0);
    for i in 0..100 {
        source.delete(&format!("ns/o{i}"));
    }
    pass(1).await;
    assert_eq!((informer.cached_bytes(), informer.lister().values(&by_value).unwrap().len()), (0, 0));
}
