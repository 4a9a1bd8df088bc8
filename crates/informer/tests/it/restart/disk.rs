//! What is on the disk, and what happens if the disk fails.

use super::{Machine, end, lists, save_three, saved};
use crate::support::{Errors, cached, object, pass, secs, settle, source};
use kube_informer::{
    InformerBuilder, Kind, PersistError, PersistOptions, PersistStatus, Scope, Transform, testing::FakeSource,
};
use kube_informer_persist::MemoryDisk;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

#[tokio::test(start_paused = true)]
async fn a_second_process_is_refused() {
    let (machine, source) = (Machine::new(), source());
    let (informer, _) = machine.start(&source).await;
    let second = InformerBuilder::new(Arc::clone(source.origin())).persist(machine.options());
    let Err(error @ PersistError::Open(_)) = second else { panic!("not refused") };
    assert!(error.to_string().contains("in use by another process"), "{error}");
    end(informer).await;
    assert!(InformerBuilder::new(Arc::clone(source.origin())).persist(machine.options()).is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_saved_is_refused_visibly() {
    let secrets = FakeSource::new(Kind::namespaced("", "v1", "Secret", "secrets"));
    let function = || Transform::new().function(|object| object["data"] = Value::Null);
    let cases: [(FakeSource, Transform, Option<&str>); 4] = [
        (secrets, Transform::new(), Some("PersistOptions::key")),
        (source(), function(), Some("Transform::version")),
        (source(), function().version("1"), None),
        (source(), Transform::drop_managed_fields(), None),
    ];
    for (source, transform, refused) in cases {
        source.put(object("a", 1));
        let errors = Errors::default();
        let informer = Machine::new().informer(&source, |builder| errors.hook(builder).transform(transform));
        informer.start();
        settle().await;
        pass(1).await;
        assert!(informer.is_synced(), "it works without");
        let (status, errors) = (informer.persist_status(), errors.take());
        match refused {
            Some(what) => {
                assert!(matches!(&status, PersistStatus::Refused { why } if why.contains(what)), "{status}");
                assert!(errors.len() == 1 && errors[0].contains(what), "{errors:?}");
            }
            None => assert_eq!((status.to_string(), errors), ("saved at version 101".into(), vec![])),
        }
        end(informer).await;
    }
    assert!(matches!(
        InformerBuilder::new(Arc::clone(source().origin())).persist(PersistOptions::on(MemoryDisk::new())),
        Err(PersistError::UnknownCluster)
    ));
}

#[tokio::test(start_paused = true)]
async fn secrets_are_saved_with_a_key_only() {
    let machine = Machine::new();
    let secrets = FakeSource::new(Kind::namespaced("", "v1", "Secret", "secrets"));
    secrets.put(json!({"metadata": {"namespace": "ns", "name": "a"}, "data": {"password": "aHVudGVyMg=="}}));
    let start = |key: u8| {
        let options = machine.options().key([key; 32]);
        secrets.informer::<Value>(|builder| builder.persist(options).unwrap())
    };
    for (key, lists_in_all) in [(1, 1), (1, 1), (2, 2)] {
        let informer = start(key);
        informer.start();
        settle().await;
        assert!(informer.is_synced() && lists(&secrets).1 == lists_in_all, "{key}");
        end(informer).await;
    }
}

/// The end of the log is incomplete: the state before it is used, and the watch delivers the rest again.
#[tokio::test(start_paused = true)]
async fn a_torn_end_costs_only_the_end() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    let (informer, _) = machine.start(&source).await;
    source.put(object("d", 1));
    pass(1).await;
    assert_eq!(saved(&informer), "saved at version 104");
    end(informer).await;
    let torn = machine.disk.files().into_iter().map(|(name, mut bytes)| {
        if name.ends_with(".log") {
            bytes.truncate(bytes.len() - 3);
        }
        (name, bytes)
    });
    let machine = Machine { disk: MemoryDisk::with_files(torn), ..machine };
    let (informer, recorder) = machine.start(&source).await;
    assert_eq!(recorder.take(), ["+a@101!", "+b@102!", "+c@103!", "+d@104"]);
    assert!(informer.is_synced() && lists(&source).1 == 1);
}

/// The machine with one bit flipped in the middle of a file.
fn damaged(machine: Machine, file: &str) -> Machine {
    let files = machine.disk.files().into_iter().map(|(name, mut bytes)| {
        if name.ends_with(file) {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        }
        (name, bytes)
    });
    Machine { disk: MemoryDisk::with_files(files), ..machine }
}

#[tokio::test(start_paused = true)]
async fn a_damaged_log_is_a_normal_start() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    let machine = damaged(machine, ".log");
    let errors = Errors::default();
    let informer = machine.informer(&source, |builder| errors.hook(builder));
    informer.start();
    settle().await;
    let errors = errors.take();
    assert!(errors.len() == 1 && errors[0].contains("not used"), "{errors:?}");
    assert!(informer.is_synced() && lists(&source).1 == 2);
    pass(1).await;
    assert_eq!(saved(&informer), "saved at version 103", "and saved again");
}

#[tokio::test(start_paused = true)]
async fn damaged_content_is_fetched_again() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    let machine = damaged(machine, ".bodies");
    let errors = Errors::default();
    let informer = machine.informer(&source, |builder| errors.hook(builder));
    informer.start();
    settle().await;
    assert_eq!(cached(&informer), ["a@101", "b@102", "c@103"], "identities are intact");
    pass(5).await;
    let errors = errors.take();
    assert!(errors.len() == 1 && errors[0].contains("ns/b"), "{errors:?}");
    assert!(informer.is_synced() && lists(&source).1 == 2);
    assert!(informer.lister().list().iter().all(|object| object.decode().is_ok()));
    assert_eq!(saved(&informer), "saved at version 103", "and saved again");
    end(informer).await;

    let (informer, _) = machine.start(&source).await;
    pass(1).await;
    assert!(informer.lister().list().iter().all(|object| object.decode().is_ok()));
    assert_eq!(lists(&source).1, 2, "without a list");
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_is_reported_and_stops_nothing() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    let errors = Errors::default();
    let informer = machine.informer(&source, |builder| errors.hook(builder));
    informer.start();
    settle().await;
    machine.disk.set_free_bytes(0);
    for n in 0..20 {
        source.put(object("d", n));
        pass(10).await;
    }
    assert_eq!(cached(&informer), ["a@101", "b@102", "c@103", "d@123"]);
    assert!(informer.status().is_live() && informer.ready(Duration::ZERO).is_ok());
    assert!(saved(&informer).starts_with("failing for"), "{}", saved(&informer));
    let failures = errors.take().len();
    assert!((3..10).contains(&failures), "with backoff: {failures}");
    machine.disk.set_free_bytes(u64::MAX);
    pass(130).await;
    assert_eq!(saved(&informer), "saved at version 123");
    end(informer).await;
    let (informer, recorder) = machine.start(&source).await;
    assert_eq!(recorder.take(), ["+a@101!", "+b@102!", "+c@103!", "+d@123!"]);
    assert!(informer.is_synced() && lists(&source).1 == 1);
}

/// While the disk is full it has the previous state.
#[tokio::test(start_paused = true)]
async fn a_log_never_claims_a_version_whose_changes_it_lacks() {
    let (machine, source) = (Machine::new(), source());
    save_three(&machine, &source).await;
    let (informer, _) = machine.start(&source).await;
    for free in [0, 20, 100, 300] {
        machine.disk.set_free_bytes(free);
        source.put(object(&format!("x{free}"), free));
        pass(1).await;
        let copy = Machine { disk: MemoryDisk::with_files(machine.disk.files()), ..machine.clone() };
        let (again, recorder) = copy.start(&source).await;
        assert!(again.is_synced());
        assert_eq!(cached(&again), cached(&informer), "{free}: {:?}", recorder.take());
    }
}

/// Files of a real directory, written by other threads.
#[tokio::test]
async fn real_files_are_private_and_survive() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let source = source();
    source.put(object("a", 1));
    for round in 0..2 {
        let options = PersistOptions::new(&path).cluster_id("test");
        let informer = source.informer::<Value>(|builder| builder.persist(options).unwrap());
        informer.start();
        informer.synced(secs(60)).await.unwrap();
        assert_eq!((cached(&informer), lists(&source).1), (vec!["a@101".to_owned()], 1), "{round}");
        end(informer).await;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        for file in std::fs::read_dir(&path).unwrap() {
            assert_eq!(mode(&file.unwrap().path()), 0o600);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_persister_is_survived() {
    let (machine, source) = (Machine::new(), source());
    source.put(object("a", 1));
    let panics = std::sync::atomic::AtomicUsize::new(0);
    let informer = machine.informer(&source, |builder| {
        builder.fail_points(move |point| {
            let first = panics.load(std::sync::atomic::Ordering::Relaxed) == 0;
            if point == kube_informer::FailPoint::Saving && first {
                panics.store(1, std::sync::atomic::Ordering::Relaxed);
                panic!("no");
            }
        })
    });
    informer.start();
    settle().await;
    pass(1).await;
    assert!(informer.status().is_failed(), "{}", informer.status());
    pass(5).await;
    assert!(informer.status().is_live());
    assert_eq!(saved(&informer), "saved at version 101");
}

/// Namespaces are in one store, and a change of one is none of the others.
#[tokio::test(start_paused = true)]
async fn a_change_in_one_namespace_writes_no_log_of_another() {
    let (machine, source) = (Machine::new(), source());
    let put = |namespace: &str, value: u64| {
        source.put(json!({"metadata": {"namespace": namespace, "name": "a"}, "data": {"value": value}}))
    };
    put("one", 0);
    put("two", 0);
    let scope = Scope::namespaces(["one", "two"]).unwrap();
    let informer = machine.informer(&source, |builder| builder.scope(scope));
    informer.start();
    pass(1).await;
    let length = |namespace: &str| {
        let is_log = |name: &str| name.contains(namespace) && name.ends_with(".log");
        machine.disk.files().iter().find(|(name, _)| is_log(name)).map(|(_, bytes)| bytes.len()).unwrap()
    };
    let (one, two) = (length("one"), length("two"));
    for value in 1..20 {
        put("two", value);
        pass(1).await;
    }
    assert!(length("two") > two + 19 * 50, "{} was {two}", length("two"));
    assert_eq!(length("one"), one);
    put("one", 1);
    pass(1).await;
    assert!(length("one") > one, "its own change");
    end(informer).await;
}
