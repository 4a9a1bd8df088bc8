//! Shards of several replicas on the embedded server, each replica with a clock and caches of its own.

mod churn;
mod replicas;

use crate::support::{NAMESPACE, World, eventually, secs, settle};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use kube_embedded_apiserver::{ApiServer, Fault, FaultRule, Verb, watch_cache::FeatureGates};
use kube_informer::{InformerFactory, ObjectKey, ShardRange, Uid};
use kube_informer_controller::{ElectionConfigError, LeaderElection, Manager, ManagerError, Sharding};
use replicas::{Log, Replica, Step};
use serde_json::json;
use std::{collections::BTreeMap, future::pending};
use tokio::time::Instant;

/// The shards of each holder; those without a holder are under "".
async fn holders(world: &World) -> BTreeMap<String, Vec<u32>> {
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), NAMESPACE);
    let mut holders = BTreeMap::<String, Vec<u32>>::new();
    for lease in leases.list(&ListParams::default()).await.unwrap() {
        let shard = lease.metadata.name.unwrap().strip_prefix("shard-").unwrap().parse().unwrap();
        let holder = lease.spec.unwrap().holder_identity.unwrap_or_default();
        holders.entry(holder).or_default().push(shard);
    }
    holders
}

/// Waits until these replicas hold all shards, in equal parts.
async fn balanced(world: &World, replicas: &[&str], shards: usize) -> BTreeMap<String, Vec<u32>> {
    let start = Instant::now();
    loop {
        let found = holders(world).await;
        let names: Vec<_> = found.keys().map(String::as_str).collect();
        let counts: Vec<_> = found.values().map(Vec::len).collect();
        let equal =
            counts.iter().max().zip(counts.iter().min()).is_some_and(|(most, least)| most - least <= 1);
        if names == replicas && equal && counts.iter().sum::<usize>() == shards {
            return found;
        }
        assert!(start.elapsed() < secs(120), "{found:?}");
        tokio::time::sleep(secs(1)).await;
    }
}

fn shard_of(object: &ConfigMap, shards: u32) -> u32 {
    let uid = Uid::from(object.metadata.uid.as_deref().unwrap());
    ShardRange::index_of(uid, shards.try_into().unwrap())
}

/// Deletes and creates a config map until its uid is in one of these shards.
async fn create_in(world: &World, name: &str, of: u32, shards: &[u32]) -> ConfigMap {
    loop {
        let created = world.create(name).await;
        if shards.contains(&shard_of(&created, of)) {
            return created;
        }
        world.delete(name).await;
    }
}

#[tokio::test(start_paused = true)]
async fn three_replicas_divide_eight_shards_and_their_objects() {
    let (world, log) = (World::start().await, Log::default());
    for n in 0..24 {
        world.create(&format!("c-{n}")).await;
    }
    let replicas = ["a", "b", "c"].map(|name| Replica::start(&world, name, 8, &log));
    let holders = balanced(&world, &["a", "b", "c"], 8).await;
    tokio::time::sleep(secs(10)).await;
    assert_eq!(balanced(&world, &["a", "b", "c"], 8).await, holders, "nothing moves any more");
    log.take();
    let mut expected = BTreeMap::new();
    for n in 0..24 {
        let name = format!("c-{n}");
        let shard = shard_of(&world.set(&name, "new").await, 8);
        let holder = holders.iter().find(|(_, shards)| shards.contains(&shard)).unwrap().0;
        expected.insert(name, holder.clone());
    }
    tokio::time::sleep(secs(10)).await;
    let starts = log.steps().into_iter().filter(|step| step.what == "starts");
    let by: BTreeMap<_, _> = starts.map(|step| (step.key, step.replica)).collect();
    assert_eq!(by, expected);
    assert_eq!(expected.values().collect::<std::collections::BTreeSet<_>>().len(), 3);
    log.check_intervals();
    for replica in replicas {
        replica.stop().await;
    }
    assert_eq!(
        self::holders(&world).await.keys().collect::<Vec<_>>(),
        [""],
        "a stopped replica releases its shards"
    );
}

/// Sets the holder of the only Lease.
async fn set_holder(world: &World, holder: &str) {
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), NAMESPACE);
    let patch = Patch::Merge(json!({"spec": {"holderIdentity": holder}}));
    leases.patch("shard-0", &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_released_during_an_attempt_is_taken_at_once() {
    let (world, log) = (World::start().await, Log::default());
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), NAMESPACE);
    let lease = serde_json::from_value(json!({
        "metadata": {"name": "shard-0", "labels": {"kube-informer/shards": "shard"}},
        "spec": {"holderIdentity": "x", "leaseDurationSeconds": 15},
    }));
    leases.create(&PostParams::default(), &lease.unwrap()).await.unwrap();
    let replica = Replica::start(&world, "a", 1, &log);
    tokio::time::sleep(secs(3)).await;
    let slow = FaultRule::new(Fault::Delay(secs(1))).verb(Verb::Update).resource("leases").times(1);
    world.server.faults().add(slow);
    set_holder(&world, "").await;
    tokio::time::sleep(secs(1) / 10).await;
    // The attempt of the replica is under way, and will fail.
    set_holder(&world, "x").await;
    set_holder(&world, "").await;
    tokio::time::sleep(secs(1)).await;
    tokio::time::sleep(secs(1) / 2).await;
    assert_eq!(holders(&world).await, BTreeMap::from([("a".to_owned(), vec![0])]));
    replica.kill().await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_stops_asks_for_no_shards() {
    let (world, log) = (World::start().await, Log::default());
    let [a, b] = ["a", "b"].map(|name| Replica::start(&world, name, 4, &log));
    balanced(&world, &["a", "b"], 4).await;
    tokio::time::sleep(secs(10)).await;
    // The other one takes the first shard before the second one is released.
    let slow = FaultRule::new(Fault::Delay(secs(1))).verb(Verb::Update).resource("leases").times(1);
    world.server.faults().add(slow);
    a.stop().await;
    tokio::time::sleep(secs(5)).await;
    assert_eq!(holders(&world).await, BTreeMap::from([("b".to_owned(), vec![0, 1, 2, 3])]));
    b.kill().await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_stops_withdraws_its_requests() {
    // The request is done when the replica stops, or under way.
    for wait in [secs(5), secs(1) / 2] {
        let (world, log) = (World::start().await, Log::default());
        let leases: Api<Lease> = Api::namespaced(world.client.clone(), NAMESPACE);
        for shard in 0..3 {
            let lease = serde_json::from_value(json!({
                "metadata": {"name": format!("shard-{shard}"), "labels": {"kube-informer/shards": "shard"}},
                "spec": {"holderIdentity": "x", "leaseDurationSeconds": 600},
            }));
            leases.create(&PostParams::default(), &lease.unwrap()).await.unwrap();
        }
        let slow = FaultRule::new(Fault::Delay(secs(1))).verb(Verb::Patch).resource("leases").times(1);
        world.server.faults().add(slow);
        let replica = Replica::start(&world, "a", 3, &log);
        let asked = || async {
            let annotations = leases.list(&ListParams::default()).await.unwrap().items;
            let preferred =
                |lease: Lease| lease.metadata.annotations?.remove("kube-informer/preferred-holder");
            annotations.into_iter().filter_map(preferred).collect::<Vec<_>>()
        };
        tokio::time::sleep(wait).await;
        assert_eq!(asked().await.len(), usize::from(wait > secs(1)));
        replica.stop().await;
        tokio::time::sleep(secs(5)).await;
        assert_eq!(asked().await, [""; 0], "stopped after {wait:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_shards_of_a_dead_replica_are_taken_within_the_lease_duration() {
    let (world, log) = (World::start().await, Log::default());
    let [a, b, c] = ["a", "b", "c"].map(|name| Replica::start(&world, name, 8, &log));
    let before = balanced(&world, &["a", "b", "c"], 8).await;
    tokio::time::sleep(secs(10)).await;
    a.kill().await;
    let killed = Instant::now();
    create_in(&world, "orphan", 8, &before["a"]).await;
    while holders(&world).await.contains_key("a") {
        assert!(killed.elapsed() <= secs(17), "the lease duration is 15 s: {:?}", holders(&world).await);
        tokio::time::sleep(secs(1)).await;
    }
    // The proof that caches are current takes up to three seconds.
    eventually(|| log.steps().iter().any(|step| step.key == "orphan")).await;
    assert!(killed.elapsed() <= secs(20), "{:?}", killed.elapsed());
    balanced(&world, &["b", "c"], 8).await;
    log.check_intervals();
    b.kill().await;
    c.kill().await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_joins_gets_shards_when_their_reconciles_have_ended() {
    let (world, log) = (World::start().await, Log::default());
    let a = Replica::start(&world, "a", 4, &log);
    balanced(&world, &["a"], 4).await;
    let blocked = create_in(&world, "blocked", 4, &[0]).await;
    a.block("blocked");
    world.set("blocked", "now").await;
    eventually(|| log.is_running("a", "blocked")).await;
    let b = Replica::start(&world, "b", 4, &log);
    tokio::time::sleep(secs(20)).await;
    let found = holders(&world).await;
    assert_eq!(found["b"].len(), 1, "one of two shards: {found:?}");
    assert!(found["a"].contains(&shard_of(&blocked, 4)), "it waits for its reconcile: {found:?}");
    a.unblock();
    let found = balanced(&world, &["a", "b"], 4).await;
    assert!(found["b"].contains(&0), "{found:?}");
    eventually(|| log.steps().iter().any(|step| step.replica == "b" && step.key == "blocked")).await;
    log.check_intervals();
    a.stop().await;
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_holder_reads_requests_for_its_shards_in_the_responses_to_its_renewals() {
    let (world, log) = (World::start().await, Log::default());
    let a = Replica::start(&world, "a", 4, &log);
    balanced(&world, &["a"], 4).await;
    world.server.faults().stall_watches(Some("leases"), true);
    let b = Replica::start(&world, "b", 4, &log);
    tokio::time::sleep(secs(60)).await;
    let found = holders(&world).await;
    assert_eq!(found["a"].len(), 2, "its informer of the Leases receives nothing: {found:?}");
    world.server.faults().stall_watches(Some("leases"), false);
    balanced(&world, &["a", "b"], 4).await;
    a.stop().await;
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_recreated_in_another_shard_waits_for_the_replica_that_has_the_old_one() {
    let (world, log) = (World::start().await, Log::default());
    let [a, b] = ["a", "b"].map(|name| Replica::start(&world, name, 4, &log));
    let holders = balanced(&world, &["a", "b"], 4).await;
    create_in(&world, "x", 4, &holders["a"]).await;
    tokio::time::sleep(secs(5)).await;
    log.take();
    a.block("x");
    world.set("x", "now").await;
    eventually(|| log.is_running("a", "x")).await;
    world.delete("x").await;
    create_in(&world, "x", 4, &holders["b"]).await;
    // Keys that are not being reconciled do not wait.
    create_in(&world, "y", 4, &holders["b"]).await;
    tokio::time::sleep(secs(60)).await;
    assert!(log.steps().iter().any(|step| step.replica == "b" && step.key == "y"));
    assert!(!log.steps().iter().any(|step| step.replica == "b" && step.key == "x"), "{:?}", log.steps());
    let released = Instant::now();
    a.unblock();
    eventually(|| log.is_ended("b", "x")).await;
    assert!(released.elapsed() <= secs(5), "one renewal: {:?}", released.elapsed());
    log.check_intervals();
    a.stop().await;
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_know_the_old_object_waits_too() {
    let (world, log) = (World::start().await, Log::default());
    let a = Replica::start(&world, "a", 2, &log);
    balanced(&world, &["a"], 2).await;
    create_in(&world, "x", 2, &[1]).await;
    a.block("x");
    world.set("x", "now").await;
    eventually(|| log.is_running("a", "x")).await;
    world.delete("x").await;
    create_in(&world, "x", 2, &[0]).await;
    create_in(&world, "y", 2, &[0]).await;
    // It starts with a list in which the old object is missing.
    let b = Replica::start(&world, "b", 2, &log);
    balanced(&world, &["a", "b"], 2).await;
    assert_eq!(holders(&world).await["b"], [0]);
    tokio::time::sleep(secs(60)).await;
    assert!(log.steps().iter().any(|step| step.replica == "b" && step.key == "y"), "{:?}", log.steps());
    assert!(!log.steps().iter().any(|step| step.replica == "b" && step.key == "x"), "{:?}", log.steps());
    a.unblock();
    eventually(|| log.is_ended("b", "x")).await;
    log.check_intervals();
    a.stop().await;
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_gained_shard_waits_until_its_caches_show_what_the_server_had() {
    let (world, log) = (World::start().await, Log::default());
    let [a, b] = ["a", "b"].map(|name| Replica::start(&world, name, 4, &log));
    let before = balanced(&world, &["a", "b"], 4).await;
    create_in(&world, "x", 4, &before["a"]).await;
    eventually(|| log.is_ended("a", "x")).await;
    tokio::time::sleep(secs(10)).await;
    log.take();
    world.server.faults().stall_watches(Some("configmaps"), true);
    a.kill().await;
    world.set("x", "newer").await;
    balanced(&world, &["b"], 4).await;
    tokio::time::sleep(secs(20)).await;
    assert!(!log.steps().iter().any(|step| step.replica == "b" && step.key == "x"), "its cache is stale");
    world.server.faults().stall_watches(Some("configmaps"), false);
    eventually(|| log.is_ended("b", "x")).await;
    let written = world.config_api().get("x").await.unwrap().data.unwrap();
    assert_eq!(written["seen"], "b newer");
    b.kill().await;
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_cancels_the_reconciles_of_its_shard_only() {
    let (world, log) = (World::start().await, Log::default());
    let a = Replica::start(&world, "a", 2, &log);
    balanced(&world, &["a"], 2).await;
    create_in(&world, "x", 2, &[0]).await;
    create_in(&world, "y", 2, &[1]).await;
    tokio::time::sleep(secs(5)).await;
    for name in ["x", "y"] {
        a.block(name);
        world.set(name, "now").await;
    }
    eventually(|| log.is_running("a", "x") && log.is_running("a", "y")).await;
    let stolen = Patch::Merge(json!({"spec": {"holderIdentity": "thief", "leaseTransitions": 9}}));
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), NAMESPACE);
    leases.patch("shard-0", &PatchParams::default(), &stolen).await.unwrap();
    eventually(|| !log.is_running("a", "x")).await;
    assert!(log.is_running("a", "y"));
    let cancelled = log.steps().into_iter().rfind(|step| step.key == "x").unwrap();
    assert_eq!(cancelled.what, "is cancelled");
    a.unblock();
    // The thief does not renew it.
    let found = balanced(&world, &["a"], 2).await;
    assert_eq!(found["a"], [0, 1]);
    eventually(|| log.is_ended("a", "x")).await;
    a.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_write_is_not_sent_without_the_lease_of_its_shard() {
    let (world, log) = (World::start().await, Log::default());
    let a = Replica::start(&world, "a", 2, &log);
    balanced(&world, &["a"], 2).await;
    world.create("x").await;
    eventually(|| log.is_ended("a", "x")).await;
    tokio::time::sleep(secs(5)).await;
    a.block("x");
    let changed = world.set("x", "now").await;
    eventually(|| log.is_running("a", "x")).await;
    // The machine was suspended for 11 s: the leases of 15 s are valid, but not for the 5 s that a request may take.
    a.suspend(11);
    a.unblock();
    settle().await;
    let steps = log.steps();
    assert!(steps.iter().any(|step| step.what == "does not write"), "{steps:?}");
    let found = world.config_api().get("x").await.unwrap();
    assert_eq!(found.metadata.resource_version, changed.metadata.resource_version);
    // It renews them, and retries.
    eventually(|| log.is_ended("a", "x")).await;
    a.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_reconciled_once_by_the_holder_of_its_shard() {
    let (world, log) = (World::start().await, Log::default());
    let [a, b] = ["a", "b"].map(|name| Replica::start(&world, name, 4, &log));
    let holders = balanced(&world, &["a", "b"], 4).await;
    for (name, holder) in [("x", "a"), ("y", "b")] {
        create_in(&world, name, 4, &holders[holder]).await;
    }
    eventually(|| log.is_ended("a", "x") && log.is_ended("b", "y")).await;
    log.take();
    world.delete("x").await;
    world.delete("y").await;
    tokio::time::sleep(secs(30)).await;
    let mut absent: Vec<_> = log.steps().into_iter().filter(|step| step.what == "is absent").collect();
    absent.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(absent, [Step::new("a", "x", "is absent"), Step::new("b", "y", "is absent")]);
    a.stop().await;
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn configurations_that_cannot_work_are_errors() {
    let world = World::start().await;
    let sharding = Sharding::new(LeaderElection::new(NAMESPACE, "shard"), 0);
    let manager = Manager::new(&world.factory, world.client.clone()).sharding(sharding);
    let error = manager.until(pending::<()>()).await.unwrap_err();
    assert!(matches!(error, ManagerError::Config(ElectionConfigError::Shards(0))), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_informer_of_a_shard_receives_only_its_part_from_a_server_that_can() {
    let mut gates = FeatureGates::default();
    gates.sharded_list_and_watch = true;
    let server = ApiServer::builder().seed(1).gates(gates).in_process().await.unwrap();
    let client = server.client();
    let factory = InformerFactory::new(client.clone());
    let world = World { server, client, factory };
    let informers = [0, 1].map(|shard| {
        let shard = ShardRange::nth(shard, 2).unwrap();
        world.factory.of_with::<ConfigMap, ConfigMap>(|options| options.shard_selector(shard.into()))
    });
    assert!(!informers[0].is_same(&informers[1]));
    world.create("x").await;
    world.factory.start();
    world.factory.synced(secs(60)).await.unwrap();
    let mut names = [vec![], vec![]];
    for n in 0..20 {
        let name = format!("c-{n}");
        let created = world.create(&name).await;
        names[shard_of(&created, 2) as usize].push(name);
    }
    settle().await;
    for (informer, names) in informers.iter().zip(&names) {
        assert!(names.len() > 3);
        for name in names {
            assert!(informer.lister().get(&ObjectKey::namespaced(NAMESPACE, name)).is_some(), "{name}");
        }
    }
    let cached: usize = informers.iter().map(|informer| informer.lister().len()).sum();
    assert_eq!(
        cached,
        world.config_api().list(&ListParams::default()).await.unwrap().items.len() + others(&world).await
    );
}

/// Config maps of other namespaces.
async fn others(world: &World) -> usize {
    let all: Api<ConfigMap> = Api::all(world.client.clone());
    let all = all.list(&ListParams::default()).await.unwrap().items;
    all.iter().filter(|config| config.metadata.namespace.as_deref() != Some(NAMESPACE)).count()
}
