//! Leader election on the embedded server, with clocks of its own for each process.

use crate::support::{Log, NAMESPACE, World, eventually, named, secs, settle};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use kube_embedded_apiserver::{Fault, FaultRule, Verb};
use kube_informer::{InformerFactory, Object};
use kube_informer_controller::{
    Action, BoxError, Context, Controller, ElectionError, LeaderElection, Leadership, WriteError,
};
use serde_json::json;
use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};
use tokio::{sync::oneshot, task::JoinHandle, time::Instant};

/// An election whose clock follows the paused clock of the test, plus an offset that a test may change.
fn election(identity: &str, skew: &Arc<AtomicU64>) -> LeaderElection {
    let (start, skew) = (Instant::now(), Arc::clone(skew));
    let clock = move || start.elapsed() + Duration::from_secs(skew.load(Ordering::SeqCst));
    LeaderElection::new(NAMESPACE, "lease").identity(identity).clock(clock).seed(7)
}

fn leases(world: &World) -> Api<Lease> {
    Api::namespaced(world.client.clone(), NAMESPACE)
}

async fn holder(world: &World) -> String {
    let lease = leases(world).get("lease").await.unwrap();
    lease.spec.unwrap().holder_identity.unwrap_or_default()
}

/// A process that takes part in an election. Notes when it starts and ends to lead.
struct Process {
    stop: oneshot::Sender<()>,
    leadership: Leadership,
    task: JoinHandle<Result<Option<()>, ElectionError>>,
}

impl Process {
    fn start(world: &World, election: LeaderElection, name: &str, log: &Log) -> Self {
        struct Ends(Log, String);
        impl Drop for Ends {
            fn drop(&mut self) {
                self.0.note(format!("{} ends", self.1));
            }
        }
        let elector = election.elector(world.client.clone()).unwrap();
        let (leadership, (stop, stopped)) = (elector.leadership().clone(), oneshot::channel::<()>());
        let (name, log) = (name.to_owned(), log.clone());
        let task = tokio::spawn(async move {
            let work = |_| async move {
                log.note(format!("{name} leads"));
                let _ends = Ends(log, name);
                let _ = stopped.await;
            };
            elector.run(pending::<()>(), work).await
        });
        Self { stop, leadership, task }
    }

    /// Stops in order.
    async fn stop(self) {
        drop(self.stop);
        assert_eq!(self.task.await.unwrap(), Ok(Some(())));
    }

    async fn lost(self) -> ElectionError {
        let ended = tokio::time::timeout(secs(600), self.task).await.expect("the lease is lost");
        ended.unwrap().unwrap_err()
    }

    /// Ends without a chance to release the lease.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_a_released_lease_is_taken_at_once() {
    let world = World::start().await;
    let (log, skew) = (Log::default(), Arc::default());
    let a = Process::start(&world, election("a", &skew), "a", &log);
    log.reaches(1).await;
    let b = Process::start(&world, election("b", &skew).seed(8), "b", &log);
    tokio::time::sleep(secs(120)).await;
    assert_eq!(log.lines(), ["a leads"]);
    assert!(a.leadership.is_leading() && !b.leadership.is_leading());
    let before = Instant::now();
    a.stop().await;
    log.reaches(3).await;
    assert_eq!(log.lines(), ["a leads", "a ends", "b leads"]);
    assert!(before.elapsed() < secs(5), "b tries every 2 to 4.4 s");
    let spec = leases(&world).get("lease").await.unwrap().spec.unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("b"), Some(1)));
    b.stop().await;
    assert_eq!(holder(&world).await, "");
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_killed_process_is_taken_when_it_has_expired() {
    let world = World::start().await;
    let (log, skew) = (Log::default(), Arc::default());
    let a = Process::start(&world, election("a", &skew), "a", &log);
    log.reaches(1).await;
    let b = Process::start(&world, election("b", &skew).seed(8), "b", &log);
    tokio::time::sleep(secs(30)).await;
    let killed = Instant::now();
    a.kill().await;
    log.reaches(3).await;
    let took = killed.elapsed();
    // Its last renewal was up to 2 s before, and b tries every 2 to 4.4 s.
    assert!(took >= secs(13) && took <= secs(20), "{took:?}");
    assert_eq!(log.lines(), ["a leads", "a ends", "b leads"]);
    b.stop().await;
}

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_by_years_change_nothing() {
    let world = World::start().await;
    let log = Log::default();
    let (early, late) = (Arc::default(), Arc::new(AtomicU64::new(1_000_000_000)));
    let ancient = || SystemTime::UNIX_EPOCH;
    let future = || SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
    let a = Process::start(&world, election("a", &early).wall_clock(ancient), "a", &log);
    log.reaches(1).await;
    let b = Process::start(&world, election("b", &late).wall_clock(future).seed(8), "b", &log);
    tokio::time::sleep(secs(120)).await;
    assert_eq!(log.lines(), ["a leads"], "the lease looks renewed in 1970");
    a.stop().await;
    log.reaches(3).await;
    let c = Process::start(&world, election("c", &early).wall_clock(ancient).seed(9), "c", &log);
    tokio::time::sleep(secs(120)).await;
    assert_eq!(log.lines()[2..], ["b leads"], "the lease looks renewed in 2096");
    b.kill().await;
    log.reaches(5).await;
    assert_eq!(log.lines()[4], "c leads");
    c.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_cannot_renew_stops_before_others_may_take_the_lease() {
    let world = World::start().await;
    let (log, skew) = (Log::default(), Arc::default());
    let a = Process::start(&world, election("a", &skew), "a", &log);
    log.reaches(1).await;
    for verb in [Verb::Update, Verb::Get] {
        world
            .server
            .faults()
            .add(FaultRule::new(Fault::Unavailable).verb(verb).resource("leases").times(1_000_000));
    }
    let start = Instant::now();
    let leadership = a.leadership.clone();
    let error = a.lost().await;
    let took = start.elapsed();
    assert!(matches!(error, ElectionError::NotRenewed { .. }), "{error}");
    assert!(took >= secs(8) && took <= secs(12), "{took:?}: the renew deadline is 10 s, the lease 15 s");
    assert!(!leadership.is_leading());
    assert_eq!(log.lines(), ["a leads", "a ends"]);
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_hears_nothing_stops_too() {
    let world = World::start().await;
    let (log, skew) = (Log::default(), Arc::default());
    let a = Process::start(&world, election("a", &skew), "a", &log);
    log.reaches(1).await;
    for verb in [Verb::Update, Verb::Get] {
        let slow = FaultRule::new(Fault::Delay(secs(3600))).verb(verb).resource("leases");
        world.server.faults().add(slow.times(1_000_000));
    }
    let start = Instant::now();
    let error = a.lost().await;
    assert!(matches!(error, ElectionError::NotRenewed { .. }), "{error}");
    assert!(start.elapsed() <= secs(13), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn lost_responses_and_conflicts_do_not_cost_the_lease() {
    let world = World::start().await;
    let (log, skew) = (Log::default(), Arc::default());
    let lost = FaultRule::new(Fault::ResponseLost).verb(Verb::Create).resource("leases").times(1);
    world.server.faults().add(lost);
    let a = Process::start(&world, election("a", &skew), "a", &log);
    log.reaches(1).await;
    for fault in [Fault::ResponseLost, Fault::Conflict, Fault::InternalError] {
        let rule = FaultRule::new(fault).verb(Verb::Update).resource("leases").times(2);
        world.server.faults().add(rule);
        tokio::time::sleep(secs(30)).await;
        assert!(a.leadership.is_leading(), "{fault:?}");
    }
    assert_eq!(log.lines(), ["a leads"]);
    a.stop().await;
    assert_eq!(holder(&world).await, "");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_counted_from_the_moment_its_renewal_was_sent() {
    let world = World::start().await;
    let (log, skew) = (Log::default(), Arc::default());
    let slow = FaultRule::new(Fault::Delay(secs(4))).verb(Verb::Create).resource("leases").times(1);
    world.server.faults().add(slow);
    let a = Process::start(&world, election("a", &skew), "a", &log);
    log.reaches(1).await;
    assert!(a.leadership.check(secs(10)).is_ok());
    assert!(a.leadership.check(secs(12)).is_err(), "the request took 4 of the 15 seconds");
    a.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_suspended_while_it_renews_stops_when_it_resumes() {
    let world = World::start().await;
    let (log, skew, start) = (Log::default(), Arc::<AtomicU64>::default(), Instant::now());
    let a = Process::start(&world, election("a", &skew), "a", &log);
    log.reaches(1).await;
    let slow = FaultRule::new(Fault::Delay(secs(4))).verb(Verb::Update).resource("leases").times(1);
    world.server.faults().add(slow);
    tokio::time::sleep(secs(3)).await;
    skew.store(20, Ordering::SeqCst);
    let error = a.lost().await;
    assert!(matches!(error, ElectionError::NotRenewed { .. }), "{error}");
    // The renewal was sent at 2 s.
    assert!(start.elapsed() < secs(7), "with its response, not a retry period later");
}

#[tokio::test(start_paused = true)]
async fn a_release_survives_a_conflict() {
    let world = World::start().await;
    let (log, skew) = (Log::default(), Arc::default());
    let a = Process::start(&world, election("a", &skew), "a", &log);
    log.reaches(1).await;
    world.server.faults().add(FaultRule::new(Fault::Conflict).verb(Verb::Update).resource("leases").times(3));
    a.stop().await;
    assert_eq!(holder(&world).await, "");
}

#[tokio::test(start_paused = true)]
async fn a_stolen_lease_ends_the_work_at_once() {
    let world = World::start().await;
    let (log, skew) = (Log::default(), Arc::default());
    let a = Process::start(&world, election("a", &skew), "a", &log);
    log.reaches(1).await;
    let stolen = Patch::Merge(json!({"spec": {"holderIdentity": "thief", "leaseTransitions": 1}}));
    leases(&world).patch("lease", &PatchParams::default(), &stolen).await.unwrap();
    let start = Instant::now();
    let error = a.lost().await;
    assert!(matches!(&error, ElectionError::Taken { holder, .. } if holder == "thief"), "{error}");
    assert!(start.elapsed() <= secs(3), "at the next renewal, not at the deadline");
    assert_eq!(holder(&world).await, "thief", "it is not released by the one that lost it");
}

#[tokio::test(start_paused = true)]
async fn a_suspended_process_stops_when_it_resumes() {
    let world = World::start().await;
    let (log, skew) = (Log::default(), Arc::<AtomicU64>::default());
    let a = Process::start(&world, election("a", &skew), "a", &log);
    log.reaches(1).await;
    tokio::time::sleep(secs(5)).await;
    assert!(a.leadership.is_leading());
    // The clock of tokio does not notice the suspension.
    skew.store(20, Ordering::SeqCst);
    assert!(!a.leadership.is_leading(), "without waiting for any timer");
    let error = a.lost().await;
    assert!(matches!(error, ElectionError::NotRenewed { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_held_meanwhile_is_not_taken_back() {
    let world = World::start().await;
    let (log, skew) = (Log::default(), Arc::default());
    let a = Process::start(&world, election("a", &skew), "a", &log);
    log.reaches(1).await;
    // Another process took the lease and released it, between two renewals.
    let released = Patch::Merge(
        json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 1}}),
    );
    leases(&world).patch("lease", &PatchParams::default(), &released).await.unwrap();
    let error = a.lost().await;
    assert!(matches!(error, ElectionError::Taken { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn new_leaders_are_reported_once() {
    let world = World::start().await;
    let (log, leaders, skew) = (Log::default(), Log::default(), Arc::default());
    let seen = leaders.clone();
    let a = Process::start(&world, election("a", &skew), "a", &log);
    log.reaches(1).await;
    let b = election("b", &skew).seed(8).on_new_leader(move |leader| {
        seen.note(leader);
        assert_ne!(leader, "a", "a hook may panic");
    });
    let b = Process::start(&world, b, "b", &log);
    tokio::time::sleep(secs(60)).await;
    a.stop().await;
    log.reaches(3).await;
    assert_eq!(leaders.lines(), ["a", "b"]);
    b.stop().await;
}

/// A controller that applies `by: name` to a config map "result", as a process of its own.
fn controller(world: &World, name: &'static str, log: &Log) -> kube_informer_controller::RunController {
    let factory = InformerFactory::new(world.client.clone());
    let configs = factory.of::<ConfigMap>();
    factory.start();
    let log = log.clone();
    Controller::new(&configs, world.client.clone()).named(name).run(
        move |config: Object<ConfigMap>, context: Context| {
            let (log, _factory) = (log.clone(), factory.clone());
            async move {
                let value = config.decode()?.data.clone().unwrap_or_default();
                log.note(format!("{name} {} {:?}", config.name(), value.get("value")));
                let patched = context.patch(&config, |config| config["data"]["by"] = name.into()).await;
                if let Err(WriteError::NotLeading { .. }) = &patched {
                    log.note(format!("{name} is not leading"));
                }
                patched?;
                Ok::<_, BoxError>(Action::done())
            }
        },
    )
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_waits_until_its_caches_show_what_the_server_had() {
    let world = World::start().await;
    world.create("a").await;
    let (log, skew) = (Log::default(), Arc::default());
    let run = controller(&world, "new", &log);
    settle().await;
    tokio::time::sleep(secs(5)).await;
    // The standby's watch is stalled, and its predecessor writes.
    world.server.faults().stall_watches(Some("configmaps"), true);
    world.set("a", "newer").await;
    let elector = election("new", &skew).elector(world.client.clone()).unwrap();
    let task = tokio::spawn(elector.run(pending::<()>(), |leadership| run.lead(leadership, pending::<()>())));
    tokio::time::sleep(secs(20)).await;
    assert_eq!(holder(&world).await, "new");
    assert_eq!(log.lines(), [""; 0], "its cache does not show the write");
    world.server.faults().stall_watches(Some("configmaps"), false);
    log.reaches(1).await;
    assert_eq!(log.lines()[0], "new a Some(\"newer\")");
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_with_quiet_caches_starts_within_three_seconds() {
    let world = World::start().await;
    world.create("a").await;
    let (log, skew) = (Log::default(), Arc::default());
    let run = controller(&world, "new", &log);
    tokio::time::sleep(secs(5)).await;
    // Other kinds change: the version of the server is ahead of that of the cache, although the cache is current.
    let owner = world.config_api().get("a").await.unwrap();
    for n in 0..10 {
        world.create_child(&format!("child-{n}"), &owner).await;
    }
    let elector = election("new", &skew).elector(world.client.clone()).unwrap();
    let start = Instant::now();
    let task = tokio::spawn(elector.run(pending::<()>(), |leadership| run.lead(leadership, pending::<()>())));
    log.reaches(1).await;
    assert!(start.elapsed() <= secs(3), "{:?}", start.elapsed());
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_write_is_not_sent_without_a_lease_that_outlasts_its_request() {
    let world = World::start().await;
    let (log, skew) = (Log::default(), Arc::<AtomicU64>::default());
    let run = controller(&world, "only", &log);
    let queue = run.queue().clone();
    let elector = election("only", &skew).elector(world.client.clone()).unwrap();
    let leadership = elector.leadership().clone();
    let task = tokio::spawn(elector.run(pending::<()>(), |leadership| run.lead(leadership, pending::<()>())));
    world.create("a").await;
    eventually(|| log.len() >= 2).await;
    settle().await;
    log.take();
    let before = world.config_api().get("a").await.unwrap().metadata.resource_version;
    // The machine was suspended for 11 s: the lease of 15 s is valid, but not for the 5 s that a request may take.
    skew.store(11, Ordering::SeqCst);
    assert!(leadership.is_leading());
    let reset = Patch::Merge(json!({"data": {"by": "nobody"}}));
    let changed = world.config_api().patch("a", &PatchParams::default(), &reset).await.unwrap();
    assert_ne!(changed.metadata.resource_version, before);
    queue.add(kube_informer::ObjectKey::namespaced(NAMESPACE, "a"));
    settle().await;
    assert!(log.lines().contains(&"only is not leading".to_owned()), "{log:?}");
    let now = world.config_api().get("a").await.unwrap();
    assert_eq!(now.metadata.resource_version, changed.metadata.resource_version, "nothing was written");
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_an_attempt_leaves_no_lease_behind() {
    let world = World::start().await;
    let skew = Arc::default();
    let lost = FaultRule::new(Fault::ResponseLost).verb(Verb::Create).resource("leases").times(1);
    world.server.faults().add(lost);
    let elector = election("a", &skew).elector(world.client.clone()).unwrap();
    let outcome = elector.run(tokio::time::sleep(secs(1)), |_| async { panic!("never led") }).await;
    assert_eq!(outcome, Ok(None::<()>));
    assert_eq!(holder(&world).await, "", "the first attempt had acquired it");
}

#[tokio::test(start_paused = true)]
async fn a_late_apply_does_not_undo_a_newer_one() {
    let world = World::start().await;
    let (log, skew) = (Log::default(), Arc::default());
    let factory = InformerFactory::new(world.client.clone());
    let (configs, secrets) = (factory.of::<ConfigMap>(), factory.of::<Secret>());
    let owner = world.create("a").await;
    world.create_child("child", &owner).await;
    let noted = log.clone();
    let run = Controller::new(&configs, world.client.clone()).reads(&secrets).run(
        move |_: Object<ConfigMap>, context: Context| {
            let log = noted.clone();
            async move {
                let mut late = Secret { metadata: named("child"), ..Secret::default() };
                late.string_data = Some([("by".to_owned(), "late".to_owned())].into());
                let applied = context.apply(&late).await;
                log.note(if applied.is_err_and(|error| error.is_conflict()) {
                    "conflict"
                } else {
                    "applied"
                });
                Ok::<_, BoxError>(Action::done())
            }
        },
    );
    let queue = run.queue().clone();
    let elector = election("late", &skew).elector(world.client.clone()).unwrap();
    let task = tokio::spawn(elector.run(pending::<()>(), |leadership| run.lead(leadership, pending::<()>())));
    log.reaches(1).await;
    assert_eq!(log.take(), ["applied"]);
    settle().await;
    world.server.faults().stall_watches(Some("secrets"), true);
    let newer = Patch::Merge(json!({"stringData": {"by": "newer"}}));
    world.secret_api().patch("child", &PatchParams::default(), &newer).await.unwrap();
    queue.add(kube_informer::ObjectKey::namespaced(NAMESPACE, "a"));
    log.reaches(1).await;
    assert_eq!(log.take(), ["conflict"]);
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn two_processes_never_lead_at_once_whatever_the_server_does() {
    for seed in 0..20 {
        let world = World::start().await;
        let (log, skew) = (Log::default(), Arc::<AtomicU64>::default());
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut processes = Vec::new();
        for (n, name) in ["a", "b", "c"].into_iter().enumerate() {
            let election = election(name, &skew).seed(seed * 10 + n as u64);
            processes.push((name, Process::start(&world, election, name, &log)));
        }
        for _ in 0..40 {
            let faults = [Fault::Unavailable, Fault::ResponseLost, Fault::Conflict, Fault::Delay(secs(4))];
            let verbs = [Verb::Get, Verb::Update, Verb::Create];
            let rule = FaultRule::new(faults[rng.usize(..4)]).verb(verbs[rng.usize(..3)]).resource("leases");
            world.server.faults().add(rule.times(rng.u64(1..12)));
            tokio::time::sleep(secs(rng.u64(1..20))).await;
            let leading = processes.iter().filter(|(_, process)| process.leadership.is_leading()).count();
            assert!(leading <= 1, "seed {seed}: {:?}", log.lines());
            // Processes that lost their lease start again.
            for (name, process) in &mut processes {
                if process.task.is_finished() {
                    let again = format!("{name}-{}", rng.u32(..));
                    let election = election(&again, &skew).seed(rng.u64(..));
                    *process = Process::start(&world, election, name, &log);
                }
            }
        }
        let mut leader = None;
        for line in log.lines() {
            let (name, what) = line.split_once(' ').unwrap();
            match what {
                "leads" => assert_eq!(leader.replace(name.to_owned()), None, "seed {seed}: {line}"),
                _ => assert_eq!(leader.take().as_deref(), Some(name), "seed {seed}: {line}"),
            }
        }
        assert!(log.len() >= 3, "seed {seed}: leadership changed: {:?}", log.lines());
        for (_, process) in processes {
            process.kill().await;
        }
    }
}
