//! A replica of the operator: a process with the real controllers.

use super::{
    network::Network,
    operator::Operator,
    process::Process,
    server,
    settings::{Division, LEASE, Settings},
    site::{FINALIZER, NAMESPACE, Site},
    totals::Fault,
    truth::{CONTROLLER, Truth},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{InformerFactory, Object, ObjectKey};
use kube_informer_controller::{Controller, LeaderElection, Manager, ManagerError, RunController, Sharding};
use kube_workqueue::ExponentialLimiter;
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

/// The longest delay between two attempts to reconcile a site.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);

/// A replica of the operator.
pub(super) struct Replica {
    pub(super) process: Arc<Process>,
    stop: CancellationToken,
    task: JoinHandle<()>,
    operator: Operator,
}

impl Replica {
    pub(super) fn start(
        name: String,
        truth: &Arc<Truth>,
        network: &Arc<Network>,
        mut rng: fastrand::Rng,
        faulty: bool,
    ) -> Self {
        truth.log.note(format_args!("{name} starts"));
        let (settings, process, stop) = (truth.settings, Process::new(name), CancellationToken::new());
        let client = network.client(&process);
        let factory = factory(&settings, client.clone(), rng.u64(..));
        let children = factory.of::<ConfigMap>();
        let operator = Operator::new(&process, truth, &children, rng.fork(), faulty);
        let controller = controller(&settings, &factory, client.clone(), &operator);
        let manager = Manager::new(&factory, client).add(controller);
        let election = election(&settings, &process.name, &mut rng);
        let manager = match settings.division {
            Division::Leader => manager.leader_election(election),
            Division::Shards(count) => manager.sharding(Sharding::new(election, count.get())),
        };
        let (truth, network) = (Arc::clone(truth), Arc::clone(network));
        let task =
            tokio::spawn(supervise(Arc::clone(&process), manager, stop.clone(), truth, network, factory));
        Self { process, stop, task, operator }
    }

    /// Whether the process has ended, and everything in it.
    pub(super) fn is_ended(&self) -> bool {
        self.task.is_finished()
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Stops the process in order.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Ends the faults of the operator.
    pub(super) fn heal(&self) {
        self.operator.heal();
    }

    pub(super) async fn ended(self) {
        let _ = self.task.await;
    }
}

/// Runs a process until it ends or is killed.
async fn supervise(
    process: Arc<Process>,
    manager: Manager,
    stop: CancellationToken,
    truth: Arc<Truth>,
    network: Arc<Network>,
    factory: InformerFactory,
) {
    let outcome = tokio::select! {
        biased;
        () = process.died() => None,
        outcome = process.run(manager.until(stop.cancelled())) => Some(outcome),
    };
    let worked = truth.stops_working(&process.name);
    process.end();
    network.process_changed();
    match outcome {
        None => {
            truth.log.note(format_args!("{} is dead", process.name));
            truth.record_fault(if worked { Fault::KilledInReconcile } else { Fault::Killed });
        }
        Some(Ok(())) => truth.log.note(format_args!("{} has stopped", process.name)),
        Some(Err(ManagerError::Election(error))) => {
            truth.log.note(format_args!("{} ends: {error}", process.name));
            truth.record_fault(Fault::LeaseLost);
        }
        Some(Err(error)) => truth.log.fail(format_args!("{} ends: {error}", process.name)),
    }
    factory.shutdown().await;
}

fn factory(settings: &Settings, client: kube::Client, seed: u64) -> InformerFactory {
    let Settings { linger, streaming_lists, handler_bound, .. } = *settings;
    let configure = InformerFactory::builder(client).configure(move |informer| {
        informer.seed(seed).linger(linger).streaming_list(streaming_lists).handler_bound(handler_bound)
    });
    configure.build()
}

fn election(settings: &Settings, identity: &str, rng: &mut fastrand::Rng) -> LeaderElection {
    let (start, offset) = (Instant::now(), Duration::from_secs(rng.u64(0..100_000)));
    LeaderElection::new(NAMESPACE, LEASE)
        .identity(identity)
        .lease_duration(settings.lease)
        .renew_deadline(settings.renew_deadline)
        .retry_period(settings.retry_period)
        .clock(move || offset + start.elapsed())
        .wall_clock(move || server::day() + start.elapsed())
        .seed(rng.u64(..))
}

fn controller(
    settings: &Settings,
    factory: &InformerFactory,
    client: kube::Client,
    operator: &Operator,
) -> RunController {
    let limiter = ExponentialLimiter::new(Duration::from_millis(5), MAX_RETRY_DELAY);
    let mut controller = Controller::new(&factory.of::<Site>(), client)
        .named(CONTROLLER)
        .owns(&factory.of::<ConfigMap>())
        .concurrency(settings.concurrency)
        .rate_limiter(limiter)
        .write_timeout(settings.write_timeout)
        .drain_timeout(settings.drain_timeout)
        .deadline(Duration::from_secs(20));
    if settings.finalizer {
        let operator = operator.clone();
        controller =
            controller.finalizer(FINALIZER, move |site, context| operator.clone().clean_up(site, context));
    }
    let operator = operator.clone();
    match settings.by_key {
        false => controller.run(move |site, context| operator.clone().reconcile(site, context)),
        true => controller.run_by_key(move |key: ObjectKey, site: Option<Object<Site>>, context| {
            let operator = operator.clone();
            async move {
                match site {
                    Some(site) => operator.reconcile(site, context).await,
                    None => operator.reconcile_absent(key).await,
                }
            }
        }),
    }
}
