//! Several controllers, one lease, one endpoint, one order of stopping.

use crate::support::{Log, NAMESPACE, World, eventually, secs, settle};
use harness::{TimedOut, wait_until};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use kube_embedded_apiserver::{Fault, FaultRule, Verb};
use kube_informer::{InformerFactory, Object, SharedInformer, Stop};
use kube_informer_controller::{
    Action, BoxError, Context, Controller, ElectionConfigError, LeaderElection, Manager, ManagerError,
    Metrics, RunController, RunError,
};
use serde_json::json;
use std::{future::pending, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, oneshot},
    time::Instant,
};

/// An election whose clock is that of the test.
fn election(identity: &str) -> LeaderElection {
    let start = Instant::now();
    LeaderElection::new(NAMESPACE, "lease").identity(identity).clock(move || start.elapsed()).seed(3)
}

async fn holder(world: &World) -> String {
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), NAMESPACE);
    leases.get("lease").await.unwrap().spec.unwrap().holder_identity.unwrap_or_default()
}

/// A controller that notes its name and that of the object.
fn noting(
    world: &World,
    informer: &SharedInformer<ConfigMap>,
    name: &'static str,
    log: &Log,
) -> RunController {
    let log = log.clone();
    Controller::new(informer, world.client.clone()).named(name).run(move |config: Object<ConfigMap>, _| {
        log.note(format!("{name} {}", config.name()));
        std::future::ready(Ok::<_, BoxError>(Action::done()))
    })
}

#[tokio::test(start_paused = true)]
async fn a_stop_drains_then_releases_the_lease_then_stops_informers() {
    let world = World::start().await;
    let (log, configs) = (Log::default(), world.configs());
    let gate = Arc::new(Semaphore::new(0));
    let (noted, entered, client, informer) =
        (log.clone(), Arc::clone(&gate), world.client.clone(), configs.clone());
    let run = Controller::new(&configs, world.client.clone()).run(
        move |config: Object<ConfigMap>, context: Context| {
            let (log, gate, client, informer) =
                (noted.clone(), Arc::clone(&entered), client.clone(), informer.clone());
            async move {
                log.note(format!("starts {}", config.name()));
                gate.acquire().await?.forget();
                let leases: Api<Lease> = Api::namespaced(client, NAMESPACE);
                let held = leases.get("lease").await?.spec.unwrap().holder_identity;
                log.note(format!("held by {}", held.unwrap_or_default()));
                log.note(format!("informer stopped: {}", informer.is_stopped()));
                // Writes still work.
                context.patch(&config, |config| config["data"]["done"] = "yes".into()).await?;
                log.note("ends");
                Ok::<_, BoxError>(Action::done())
            }
        },
    );
    for name in ["a", "b"] {
        world.create(name).await;
    }
    let (stop, stopped) = oneshot::channel::<()>();
    let manager = Manager::new(&world.factory, world.client.clone()).add(run).leader_election(election("me"));
    let task = tokio::spawn(manager.until(stopped));
    log.reaches(1).await;
    drop(stop);
    settle().await;
    assert!(!configs.is_stopped());
    gate.add_permits(10);
    task.await.unwrap().unwrap();
    assert_eq!(
        log.lines(),
        ["starts a", "held by me", "informer stopped: false", "ends"],
        "the second key is not taken, the lease is held and informers run until the end of the first"
    );
    assert_eq!(holder(&world).await, "");
    assert!(configs.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn a_standby_is_warm_and_takes_over_from_a_killed_leader() {
    let world = World::start().await;
    world.create("a").await;
    let log = Log::default();
    let process = |name: &'static str| {
        let factory = InformerFactory::new(world.client.clone());
        let configs = factory.of::<ConfigMap>();
        let run = noting(&world, &configs, name, &log);
        let manager =
            Manager::new(&factory, world.client.clone()).add(run).leader_election(election(name).seed(9));
        (tokio::spawn(manager.until(pending::<()>())), configs)
    };
    let (first, _) = process("first");
    log.reaches(1).await;
    let (second, standby) = process("second");
    eventually(|| standby.is_synced()).await;
    tokio::time::sleep(secs(60)).await;
    assert_eq!(log.take(), ["first a"], "the standby does nothing");
    first.abort();
    let killed = Instant::now();
    log.reaches(1).await;
    assert_eq!(log.lines(), ["second a"]);
    // The rest of the lease, one retry period with jitter, and the proof that the cache is current.
    assert!(killed.elapsed() <= Duration::from_millis(15_000 + 4_400 + 3_000), "{:?}", killed.elapsed());
    second.abort();
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_cancels_reconciles_and_ends_the_manager() {
    let world = World::start().await;
    world.create("a").await;
    let (log, configs) = (Log::default(), world.configs());
    let noted = log.clone();
    let run = Controller::new(&configs, world.client.clone()).drain_timeout(secs(3600)).run(
        move |_: Object<ConfigMap>, _| {
            struct Cancelled(Log);
            impl Drop for Cancelled {
                fn drop(&mut self) {
                    self.0.note("cancelled");
                }
            }
            let cancelled = Cancelled(noted.clone());
            async move {
                cancelled.0.note("starts");
                pending::<Result<Action, BoxError>>().await
            }
        },
    );
    let manager = Manager::new(&world.factory, world.client.clone()).add(run).leader_election(election("me"));
    let task = tokio::spawn(manager.until(pending::<()>()));
    log.reaches(1).await;
    let stolen = Patch::Merge(json!({"spec": {"holderIdentity": "thief"}}));
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), NAMESPACE);
    leases.patch("lease", &PatchParams::default(), &stolen).await.unwrap();
    let start = Instant::now();
    let error = task.await.unwrap().unwrap_err();
    assert!(matches!(error, ManagerError::Election(_)), "{error}");
    assert_eq!(log.lines(), ["starts", "cancelled"]);
    assert!(start.elapsed() < secs(5), "not after the drain timeout");
    assert!(configs.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn an_error_of_one_controller_stops_all() {
    let world = World::start().await;
    world.create("a").await;
    let log = Log::default();
    let other = InformerFactory::new(world.client.clone());
    let (configs, theirs) = (world.configs(), other.of::<ConfigMap>());
    let manager = Manager::new(&world.factory, world.client.clone())
        .add(noting(&world, &configs, "one", &log))
        .add(noting(&world, &theirs, "two", &log));
    let task = tokio::spawn(manager.until(pending::<()>()));
    log.reaches(2).await;
    eventually(|| theirs.is_synced()).await;
    theirs.stop(Stop::Drop).await;
    let error = task.await.unwrap().unwrap_err();
    assert!(matches!(error, ManagerError::Controller(RunError::InformerEnded { .. })), "{error}");
    assert!(configs.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn configurations_that_cannot_work_are_errors() {
    let world = World::start().await;
    let run = Controller::new(&world.configs(), world.client.clone())
        .write_timeout(secs(13))
        .run(|_: Object<ConfigMap>, _| std::future::ready(Ok::<_, BoxError>(Action::done())));
    let manager = Manager::new(&world.factory, world.client.clone()).add(run).leader_election(election("me"));
    let error = manager.until(pending::<()>()).await.unwrap_err();
    assert!(
        matches!(error, ManagerError::Config(ElectionConfigError::WriteTimeout { .. })),
        "a write could start only in the 2 s after a renewal: {error}"
    );
    let log = Log::default();
    let manager = Manager::new(&world.factory, world.client.clone())
        .add(noting(&world, &world.configs(), "one", &log))
        .add(noting(&world, &world.configs(), "two", &log))
        .add(noting(&world, &world.configs(), "one", &log));
    let error = manager.until(pending::<()>()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"2 controllers are named "one" (of configmaps, configmaps): give each a name of its own with Controller::named"#
    );
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let manager = Manager::new(&world.factory, world.client.clone()).serve(taken.local_addr().unwrap());
    let error = manager.until(pending::<()>()).await.unwrap_err();
    assert!(matches!(error, ManagerError::Listen { .. }), "{error}");
}

/// Status and body of a GET.
async fn get(address: std::net::SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// A manager that serves on a free port.
struct Served {
    address: std::net::SocketAddr,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<Result<(), ManagerError>>,
}

impl Served {
    async fn start(manager: Manager) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        Self { address, stop, task: tokio::spawn(manager.serve_on(listener).until(stopped)) }
    }

    /// Waits until a GET has this status, and returns the body.
    async fn until_status(&self, path: &str, expected: u16) -> String {
        let mut last = String::new();
        let waited = wait_until::<TimedOut>(secs(60), path, async || {
            let (status, body) = get(self.address, path).await;
            last = body;
            Ok(status == expected)
        });
        waited.await.unwrap();
        last
    }

    async fn stop(self) {
        drop(self.stop);
        self.task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn readyz_names_what_is_not_ready_and_why() {
    let world = World::start().await;
    world.create("a").await;
    let faults = world.server.faults();
    for verb in [Verb::List, Verb::Watch] {
        faults.add(FaultRule::new(Fault::Forbidden).verb(verb).resource("secrets").times(1_000_000));
    }
    let (log, secrets) = (Log::default(), world.factory.of::<Secret>());
    let noted = log.clone();
    let run = Controller::new(&world.configs(), world.client.clone()).owns(&secrets).run(
        move |config: Object<ConfigMap>, _| {
            noted.note(config.name());
            std::future::ready(Ok::<_, BoxError>(Action::done()))
        },
    );
    let manager = Manager::new(&world.factory, world.client.clone())
        .add(run)
        .ready_check("license", || Err("not paid".to_owned()));
    let served = Served::start(manager).await;
    let body = wait_for_line(&served, "[-] cache secrets: ").await;
    assert!(body.contains("403") || body.to_lowercase().contains("forbidden"), "{body}");
    assert!(body.contains("[-] controller configmaps: waiting for its caches\n"), "{body}");
    assert!(body.contains("[-] license: not paid\n"), "{body}");
    assert_eq!(get(served.address, "/healthz").await.0, 200, "a restart would not help");
    assert_eq!(get(served.address, "/metrics").await.0, 404, "no recorder");
    assert_eq!(get(served.address, "/").await.0, 404);
    faults.clear();
    let body = wait_for_line(&served, "[+] controller configmaps: running").await;
    assert!(body.contains("[+] cache secrets: ") && body.contains("[+] cache configmaps: "), "{body}");
    served.stop().await;
}

async fn wait_for_line(served: &Served, start: &str) -> String {
    let mut last = String::new();
    let waited = wait_until::<TimedOut>(secs(60), start, async || {
        last = get(served.address, "/readyz").await.1;
        Ok(last.lines().any(|line| line.starts_with(start)))
    });
    let waited = waited.await;
    assert!(waited.is_ok(), "{last}");
    last
}

#[tokio::test]
async fn a_standby_is_ready_and_metrics_are_served() {
    let metrics = Metrics::install().unwrap();
    assert!(Metrics::install().is_err(), "one for the process");
    let world = World::start().await;
    world.create("a").await;
    let log = Log::default();
    let leases = LeaderElection::new(NAMESPACE, "lease");
    let leader = {
        let configs = world.configs();
        let run = noting(&world, &configs, "leader", &log);
        let manager = Manager::new(&world.factory, world.client.clone()).add(run).metrics(metrics);
        Served::start(manager.leader_election(leases.clone().identity("leader"))).await
    };
    leader.until_status("/readyz", 200).await;
    log.reaches(1).await;
    let standby = {
        let factory = InformerFactory::new(world.client.clone());
        let run = noting(&world, &factory.of(), "standby", &log);
        let manager =
            Manager::new(&factory, world.client.clone()).add(run).metrics_with(|| "own 1\n".to_owned());
        Served::start(manager.leader_election(leases.identity("standby"))).await
    };
    standby.until_status("/readyz", 200).await;
    wait_for_line(&standby, "[+] controller standby: waiting to lead; held by leader").await;
    assert_eq!(get(standby.address, "/metrics").await, (200, "own 1\n".to_owned()));
    let text = leader.until_status("/metrics", 200).await;
    assert!(text.contains(r#"controller_reconcile_total{controller="leader",result="done"} 1"#), "{text}");
    assert!(text.contains(r#"leader_election_master_status{name="lease"}"#), "{text}");
    assert!(text.contains(r#"workqueue_adds_total{name="leader"}"#), "{text}");
    standby.stop().await;
    leader.stop().await;
}

#[cfg(unix)]
#[tokio::test]
async fn sigterm_stops_a_manager_in_order() {
    let world = World::start().await;
    world.create("a").await;
    let (log, configs) = (Log::default(), world.configs());
    let run = noting(&world, &configs, "only", &log);
    let manager = Manager::new(&world.factory, world.client.clone())
        .add(run)
        .leader_election(LeaderElection::new(NAMESPACE, "lease").identity("only"));
    let task = tokio::spawn(manager.run());
    // The handler is installed before the first reconcile.
    log.reaches(1).await;
    let own = std::process::id().to_string();
    let sent = std::process::Command::new("kill").args(["-TERM", &own]).status().unwrap();
    assert!(sent.success());
    task.await.unwrap().unwrap();
    assert_eq!(holder(&world).await, "");
}
