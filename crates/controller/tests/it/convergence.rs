//! A controller under random faults: it always converges, and never has more children than requested.

use crate::support::{NAMESPACE, named, owner_ref, secs};
use http::{Request, Response};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    client::Body,
};
use kube_embedded_apiserver::{ApiServer, Fault, FaultRule, Faults, LocalServer, Verb};
use kube_informer::{InformerFactory, Object};
use kube_informer_controller::{Action, BoxError, Context, Controller, RunController};
use serde_json::json;
use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep};

const SEEDS: u64 = 60;
const STEPS: usize = 15;
const MOST: usize = 5;

#[test]
fn it_converges_and_never_creates_too_many_children() {
    let mut totals = Totals::default();
    for seed in 0..SEEDS {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let life = runtime.block_on(World::live(seed));
        assert_eq!(life.surplus, None, "seed {seed}: (children, requested children)");
        totals.created += life.created;
        totals.lost += life.lost;
        totals.restarts += life.restarts;
    }
    // The faults must have happened.
    assert!(totals.lost > 100 && totals.created > 300 && totals.restarts > 30, "{totals:?}");
}

#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    created: usize,
    lost: usize,
    restarts: usize,
    /// The first time there were too many children: their number, and the requested number.
    surplus: Option<(usize, usize)>,
}

struct World {
    seed: u64,
    rng: fastrand::Rng,
    server: LocalServer,
    configs: Api<ConfigMap>,
    secrets: Api<Secret>,
    network: Network,
    /// Numbers the names of children.
    names: Arc<AtomicUsize>,
    process: Option<tokio::task::JoinHandle<()>>,
}

impl World {
    async fn live(seed: u64) -> Totals {
        let server = ApiServer::builder().seed(seed).in_process().await.unwrap();
        let client = server.client();
        let network = Network::new(seed, client.clone());
        let (configs, secrets) =
            (Api::namespaced(client.clone(), NAMESPACE), Api::namespaced(client, NAMESPACE));
        let rng = fastrand::Rng::with_seed(seed);
        let mut world =
            Self { seed, rng, server, configs, secrets, network, names: Arc::default(), process: None };
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
            .configure(move |informer| informer.seed(seed))
            .build();
        let run = controller(&factory, self.network.client(), Arc::clone(&self.names));
        self.process = Some(tokio::spawn(async move {
            run.await.unwrap();
            drop(factory);
        }));
    }

    async fn story(&mut self) {
        let first = self.rng.usize(..MOST);
        self.ask(first, true).await;
        for _ in 0..STEPS {
            self.disturb().await;
            sleep(Duration::from_millis(self.rng.u64(..2000))).await;
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
            3..=4 => self.delete_a_child().await,
            5 => faults.cut_watches(None),
            6 => faults.forget_window(Some("secrets")).await.unwrap(),
            7 => {
                faults.compact().await.unwrap();
                faults.forget_window(None).await.unwrap();
            }
            8 => self.reject(&faults),
            9 => faults.lag(Some("configmaps"), self.rng.bool()).await.unwrap(),
            10 => self.restart().await,
            // While the watch is stalled the cache is stale, and no event makes up for a lost response.
            _ => faults.stall_watches(Some("secrets"), self.rng.u8(..3) > 0),
        }
    }

    fn reject(&mut self, faults: &Faults) {
        let fault = [
            Fault::InternalError,
            Fault::Unavailable,
            Fault::Conflict,
            Fault::TooManyRequests { retry_after: 1 },
        ];
        let verb = [Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Watch];
        let (fault, verb) = (fault[self.rng.usize(..fault.len())], verb[self.rng.usize(..verb.len())]);
        faults.add(FaultRule::new(fault).verb(verb).times(self.rng.u64(1..4)));
    }

    /// Requests another number of children. The bound rises before the request, because the controller may see it at once.
    async fn ask(&mut self, replicas: usize, first: bool) {
        self.network.asked.fetch_max(replicas, Ordering::SeqCst);
        // Requests of the test itself always succeed.
        self.server.faults().clear();
        let data = json!({"data": {"replicas": replicas.to_string()}});
        if first {
            let mut config: ConfigMap = serde_json::from_value(data).unwrap();
            config.metadata = named("owner");
            self.configs.create(&PostParams::default(), &config).await.unwrap();
        } else {
            self.configs.patch("owner", &PatchParams::default(), &Patch::Merge(data)).await.unwrap();
        }
    }

    async fn delete_a_child(&mut self) {
        self.server.faults().clear();
        let children = self.secrets.list(&ListParams::default()).await.unwrap().items;
        if !children.is_empty() {
            let name = children[self.rng.usize(..children.len())].metadata.name.clone().unwrap();
            // The controller may have deleted it already.
            let _ = self.secrets.delete(&name, &DeleteParams::default()).await;
        }
    }

    /// Ends all faults and waits until there are as many children as requested; from then on the bound is that number.
    async fn calm(&mut self) {
        let faults = self.server.faults();
        faults.clear();
        faults.lag(None, false).await.unwrap();
        faults.stall_watches(None, false);
        let deadline = Instant::now() + secs(1200);
        loop {
            let want = wanted(&self.configs.get("owner").await.unwrap());
            let have = self.secrets.list(&ListParams::default()).await.unwrap().items.len();
            if have == want {
                self.network.asked.store(want, Ordering::SeqCst);
                return;
            }
            assert!(Instant::now() < deadline, "seed {}: {have} children of {want}", self.seed);
            sleep(Duration::from_millis(100)).await;
        }
    }
}

fn wanted(config: &ConfigMap) -> usize {
    config.data.as_ref().unwrap()["replicas"].parse().unwrap()
}

/// Keeps as many secrets as a config map asks for, each with a new name.
fn controller(factory: &InformerFactory, client: Client, names: Arc<AtomicUsize>) -> RunController {
    let (configs, secrets) = (factory.of::<ConfigMap>(), factory.of::<Secret>());
    let (lister, by_owner) = (secrets.lister(), secrets.index_controller().unwrap());
    Controller::new(&configs, client).owns(&secrets).run(
        move |config: Object<ConfigMap>, context: Context| {
            let (lister, names) = (lister.clone(), Arc::clone(&names));
            async move {
                let owner = config.decode()?;
                let children = lister.by(&by_owner, &config.uid())?;
                for _ in children.len()..wanted(&owner) {
                    let name = format!("child-{}", names.fetch_add(1, Ordering::SeqCst));
                    let metadata =
                        ObjectMeta { owner_references: Some(vec![owner_ref(&owner)]), ..named(&name) };
                    context.create(&Secret { metadata, ..Secret::default() }).await?;
                }
                for child in children.iter().skip(wanted(&owner)) {
                    context.delete(child).await?;
                }
                Ok::<_, BoxError>(Action::done())
            }
        },
    )
}

/// The network between the controller and the server, which loses requests and responses. Counts the children after each create.
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
                let creates = request.method() == "POST";
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
        Client::new(service, NAMESPACE)
    }
}

/// Number of children. An injected fault may hit this request too; then the next create is checked instead.
async fn count(client: &Client) -> usize {
    let secrets = Api::<Secret>::namespaced(client.clone(), NAMESPACE).list(&ListParams::default()).await;
    secrets.map_or(0, |secrets| secrets.items.len())
}
