//! The controller under faults and restarts: it always converges, and never creates more pods than requested.

use http::{Request, Response};
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    client::Body,
};
use kube_embedded_apiserver::{ApiServer, Fault, FaultRule, Faults, LocalServer, Verb};
use kube_informer::InformerFactory;
use kube_informer_examples::replica_set_controller;
use serde_json::json;
use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

const SEEDS: u64 = 200;
const STEPS: usize = 15;
const MOST: usize = 6;

#[test]
fn it_converges_and_never_creates_too_many_pods() {
    let mut totals = Totals::default();
    for seed in 0..SEEDS {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let life = runtime.block_on(World::live(seed));
        assert_eq!(life.surplus, None, "seed {seed}: (pods, requested pods)");
        totals.add(life);
    }
    // The faults must have happened.
    println!("{totals:?}");
    assert!(totals.lost > 200 && totals.restarts > 100 && totals.created > 1000, "{totals:?}");
}

#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    created: usize,
    lost: usize,
    restarts: usize,
    /// The first time there were too many pods: their number, and the requested number.
    surplus: Option<(usize, usize)>,
}

impl Totals {
    fn add(&mut self, other: Self) {
        self.created += other.created;
        self.lost += other.lost;
        self.restarts += other.restarts;
    }
}

struct World {
    seed: u64,
    rng: fastrand::Rng,
    server: LocalServer,
    sets: Api<ReplicaSet>,
    pods: Api<Pod>,
    network: Network,
    process: Option<JoinHandle<()>>,
}

impl World {
    async fn live(seed: u64) -> Totals {
        let start = Instant::now();
        let clock = move || SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000) + start.elapsed();
        let server = ApiServer::builder().seed(seed).clock(clock).in_process().await.unwrap();
        let client = server.client();
        let (sets, pods) = (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
        let network = Network::new(seed, client);
        let rng = fastrand::Rng::with_seed(seed);
        // The controller names pods with it.
        fastrand::seed(seed);
        let mut world = Self { seed, rng, server, sets, pods, network, process: None };
        world.restart().await;
        world.story().await;
        if let Some(process) = world.process.take() {
            process.abort();
        }
        *world.network.totals.lock().unwrap()
    }

    /// Ends the process of the controller wherever it is, and starts another one.
    async fn restart(&mut self) {
        if let Some(process) = self.process.take() {
            process.abort();
            let _ = process.await;
            self.network.totals.lock().unwrap().restarts += 1;
        }
        let seed = self.rng.u64(..);
        let factory = InformerFactory::builder(self.server.client())
            .resync(Duration::from_secs(60))
            .configure(move |informer| informer.seed(seed))
            .build();
        let controller = replica_set_controller(&factory, self.network.client()).unwrap();
        self.process = Some(tokio::spawn(async move {
            controller.await.unwrap();
            drop(factory);
        }));
    }

    async fn story(&mut self) {
        let first = self.rng.usize(..MOST);
        self.ask(first, true).await;
        for _ in 0..STEPS {
            self.disturb().await;
            let pause = self.rng.u64(..2000);
            sleep(Duration::from_millis(pause)).await;
            if self.rng.u8(..4) == 0 {
                self.calm().await;
            }
        }
        self.calm().await;
    }

    /// Causes one fault or change.
    async fn disturb(&mut self) {
        let faults = self.server.faults();
        match self.rng.u8(..14) {
            0..=2 => {
                let replicas = self.rng.usize(..=MOST);
                self.ask(replicas, false).await;
            }
            3..=4 => self.delete_a_pod().await,
            5 => faults.cut_watches(None),
            6 => faults.forget_window(Some("pods")).await.unwrap(),
            7 => {
                faults.compact().await.unwrap();
                faults.forget_window(None).await.unwrap();
            }
            8 => self.reject(&faults),
            9 => faults.lag(Some("replicasets"), self.rng.bool()).await.unwrap(),
            10 => self.restart().await,
            // While the watch of pods is stalled the cache is stale, and no event makes up for a lost response.
            _ => faults.stall_watches(Some("pods"), self.rng.u8(..3) > 0),
        }
    }

    fn reject(&mut self, faults: &Faults) {
        let fault = [
            Fault::InternalError,
            Fault::Unavailable,
            Fault::Conflict,
            Fault::TooManyRequests { retry_after: 1 },
        ];
        let verb = [Verb::Create, Verb::Delete, Verb::Patch, Verb::Get, Verb::List, Verb::Watch];
        let (fault, verb) = (fault[self.rng.usize(..fault.len())], verb[self.rng.usize(..verb.len())]);
        faults.add(FaultRule::new(fault).verb(verb).times(self.rng.u64(1..4)));
    }

    /// Requests another number of pods. The bound rises before the request, because the controller may see it at once.
    async fn ask(&mut self, replicas: usize, first: bool) {
        self.network.asked.fetch_max(replicas, Ordering::SeqCst);
        // Requests of the test itself always succeed.
        self.server.faults().clear();
        if first {
            self.sets.create(&PostParams::default(), &replica_set(replicas)).await.unwrap();
        } else {
            let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
            self.sets.patch("web", &PatchParams::default(), &patch).await.unwrap();
        }
    }

    async fn delete_a_pod(&mut self) {
        self.server.faults().clear();
        let pods = self.pods.list(&ListParams::default()).await.unwrap().items;
        if pods.is_empty() {
            return;
        }
        let name = pods[self.rng.usize(..pods.len())].metadata.name.clone().unwrap();
        // The controller may have deleted it already.
        let _ = self.pods.delete(&name, &DeleteParams::default().grace_period(0)).await;
    }

    /// Ends all faults and waits until there are as many pods as requested; from then on the bound is that number.
    async fn calm(&mut self) {
        let faults = self.server.faults();
        faults.clear();
        faults.lag(None, false).await.unwrap();
        faults.stall_watches(None, false);
        let deadline = Instant::now() + Duration::from_secs(1200);
        loop {
            let set = self.sets.get("web").await.unwrap();
            let want = set.spec.as_ref().unwrap().replicas.unwrap() as usize;
            let have = self.pods.list(&ListParams::default()).await.unwrap().items.len();
            let status = set.status.as_ref();
            let seen = status.is_some_and(|s| {
                s.observed_generation == set.metadata.generation && s.replicas as usize == want
            });
            if have == want && seen {
                self.network.asked.store(want, Ordering::SeqCst);
                return;
            }
            assert!(
                Instant::now() < deadline,
                "seed {}: {have} pods of {want}, status {status:?}",
                self.seed
            );
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// The network between the controller and the server, which loses requests and responses. Counts the pods after each create.
struct Network {
    inner: Client,
    rng: Arc<Mutex<fastrand::Rng>>,
    totals: Arc<Mutex<Totals>>,
    asked: Arc<AtomicUsize>,
}

impl Network {
    fn new(seed: u64, inner: Client) -> Self {
        let rng = Arc::new(Mutex::new(fastrand::Rng::with_seed(!seed)));
        Self { inner, rng, totals: Arc::default(), asked: Arc::default() }
    }

    fn client(&self) -> Client {
        let (inner, rng, totals) = (self.inner.clone(), Arc::clone(&self.rng), Arc::clone(&self.totals));
        let asked = Arc::clone(&self.asked);
        let service = tower::service_fn(move |request: Request<Body>| {
            let (inner, rng, totals, asked) =
                (inner.clone(), Arc::clone(&rng), Arc::clone(&totals), Arc::clone(&asked));
            async move {
                let creates = request.method() == "POST" && request.uri().path().ends_with("/pods");
                let fate = rng.lock().unwrap().u8(..20);
                if fate == 0 {
                    totals.lock().unwrap().lost += 1;
                    return Err(io::Error::other("the request was lost"));
                }
                let response: Response<Body> = inner.send(request).await.map_err(io::Error::other)?;
                if creates && response.status().is_success() {
                    totals.lock().unwrap().created += 1;
                    let (have, asked) = (count(&inner).await, asked.load(Ordering::SeqCst));
                    // Recorded for later: a reconcile survives a panic.
                    if have > asked {
                        totals.lock().unwrap().surplus.get_or_insert((have, asked));
                    }
                }
                if (1..=3).contains(&fate) {
                    totals.lock().unwrap().lost += 1;
                    return Err(io::Error::other("the response was lost"));
                }
                Ok(response)
            }
        });
        Client::new(service, "default")
    }
}

/// Number of pods. An injected fault may hit this request too; then the next create is checked instead.
async fn count(client: &Client) -> usize {
    let pods = Api::<Pod>::default_namespaced(client.clone()).list(&ListParams::default()).await;
    pods.map_or(0, |pods| pods.items.len())
}

fn replica_set(replicas: usize) -> ReplicaSet {
    let labels = json!({"app": "web"});
    let set = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}},
        },
    });
    serde_json::from_value(set).unwrap()
}
