//! A world of controllers: a server, replicas of an operator, and users, in one thread under paused time.

mod end;
mod users;

use super::{
    network::Network,
    replica::Replica,
    schedule::{Action, Schedule, Step},
    server,
    settings::Settings,
    totals::{Fault, Totals},
    truth::{Truth, record},
};
use crate::{
    log::{Log, Sink},
    runtime::run_paused,
    world::Failure,
};
use kube_embedded_apiserver::{LocalServer, storage::MemoryStorage};
use std::{sync::Arc, time::Duration};
use users::Users;

/// The result of a world.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The hash of the trace.
    pub hash: u64,
    /// Counts of faults, writes and checks.
    pub totals: Totals,
    /// The first failed check.
    pub failure: Option<Failure>,
}

/// Runs the world of a seed.
pub fn run(seed: u64, trace: Option<Sink>) -> Outcome {
    run_schedule(&Schedule::generate(seed), trace)
}

pub(super) fn run_schedule(schedule: &Schedule, trace: Option<Sink>) -> Outcome {
    run_paused(run_world(schedule, trace))
}

async fn run_world(schedule: &Schedule, trace: Option<Sink>) -> Outcome {
    let log = Arc::new(Log::new(trace));
    log.note(format_args!("{:?}", schedule.settings));
    let mut world = World::new(schedule, &log).await;
    let mut failure = None;
    for (i, step) in schedule.steps.iter().enumerate() {
        world.run_step(*step).await;
        failure = log.failure().map(|what| Failure { steps: i + 1, what });
        if failure.is_some() {
            break;
        }
    }
    if failure.is_none() {
        world.converge().await;
        failure = log.failure().map(|what| Failure { steps: schedule.steps.len(), what });
    }
    Outcome { hash: log.hash(), totals: world.truth.lock().totals.clone(), failure }
}

struct World {
    settings: Settings,
    truth: Arc<Truth>,
    network: Arc<Network>,
    users: Users,
    storage: MemoryStorage,
    server: LocalServer,
    servers: u64,
    /// Invariant: as many as the settings say. Some may have ended.
    replicas: Vec<Replica>,
    /// Number of processes that have been started.
    started: u64,
    rng: fastrand::Rng,
    /// Keep the records going.
    _recorders: Vec<Arc<dyn Send + Sync>>,
}

impl World {
    async fn new(schedule: &Schedule, log: &Arc<Log>) -> Self {
        let settings = schedule.settings;
        let mut rng = fastrand::Rng::with_seed(schedule.seed ^ settings.seed);
        let (truth, recreate) = Truth::new(settings, log);
        let storage = server::storage();
        let recorders = record(&truth, &storage).await;
        let network = Network::new(&settings, rng.fork(), &truth);
        let server = server::serve(storage.clone(), rng.u64(..)).await;
        network.set_upstream(Some(server.client()));
        let users = Users::new(&truth, server::serve(storage.clone(), rng.u64(..)).await, recreate);
        let mut world = Self {
            settings,
            truth,
            network,
            users,
            storage,
            server,
            servers: 1,
            replicas: Vec::new(),
            started: 0,
            rng,
            _recorders: recorders.into_iter().map(|recorder| recorder as _).collect(),
        };
        for _ in 0..settings.replicas {
            let replica = world.new_replica(true);
            world.replicas.push(replica);
        }
        world
    }

    fn new_replica(&mut self, faulty: bool) -> Replica {
        self.started += 1;
        let name = format!("r{}", self.started);
        Replica::start(name, &self.truth, &self.network, self.rng.fork(), faulty)
    }

    async fn run_step(&mut self, step: Step) {
        self.truth.log.note(format_args!("step {:?}", step.action));
        self.run_action(step.action, step.pick).await;
        tokio::time::sleep(step.pause).await;
    }

    async fn run_action(&mut self, action: Action, pick: u64) {
        match action {
            Action::Put => self.users.put(pick).await,
            Action::Delete => self.users.delete(pick).await,
            Action::Recreate => self.users.recreate(pick).await,
            Action::ChangeChild => self.users.change_child(pick).await,
            Action::UserFinalizer => self.users.change_finalizer(pick).await,
            Action::Kill { polls } => {
                if let Some(replica) = self.running(pick) {
                    replica.process.kill_after(polls);
                    self.network.process_changed();
                }
            }
            Action::Stop => {
                if let Some(replica) = self.running(pick).filter(|replica| !replica.is_stopping()) {
                    replica.stop();
                    self.truth.record_fault(Fault::Stopped);
                }
            }
            Action::Start => self.restart_one(),
            Action::Suspend(time) => self.suspend(pick, time),
            Action::Partition(time) => self.disturb(pick, time, Fault::Partitioned, Network::set_partitioned),
            Action::RejectLeases(time) => {
                self.disturb(pick, time, Fault::LeasesRejected, Network::set_rejects_leases)
            }
            Action::SlowRenewals(time) => {
                self.disturb(pick, time, Fault::SlowRenewals, Network::set_slow_renewals)
            }
            Action::SlowWrites(time) => self.disturb(pick, time, Fault::SlowWrites, Network::set_slow_writes),
            Action::Stall(time) => self.disturb(pick, time, Fault::StalledWatch, Network::set_stalled),
            Action::Cut => {
                if let Some(replica) = self.running(pick) {
                    self.truth.record_fault(Fault::Cut);
                    self.network.reset(&replica.process.name);
                }
            }
            Action::Lag(time) => self.lag(time).await,
            Action::Compact => {
                self.truth.record_fault(Fault::Compacted);
                let _ = self.server.faults().compact().await;
                let _ = self.server.faults().forget_window(None).await;
            }
            Action::RestartServer(time) => self.restart_server(time).await,
        }
    }

    /// A replica that has not ended; for odd numbers one that holds a lease, if there is one.
    fn running(&self, pick: u64) -> Option<&Replica> {
        let running: Vec<_> = self.replicas.iter().filter(|replica| !replica.process.is_dead()).collect();
        let holds = |replica: &&&Replica| !self.truth.leases_of(&replica.process.name).is_empty();
        let holders: Vec<_> = running.iter().filter(holds).copied().collect();
        let of = if pick % 2 == 1 && !holders.is_empty() { holders } else { running };
        of.get((pick / 2) as usize % of.len().max(1)).copied()
    }

    /// Starts a replica in the place of one that has ended.
    fn restart_one(&mut self) {
        if let Some(index) = self.replicas.iter().position(Replica::is_ended) {
            self.replicas[index] = self.new_replica(true);
        }
    }

    fn suspend(&self, pick: u64, time: Duration) {
        let Some(replica) = self.running(pick) else { return };
        self.truth.record_fault(Fault::Suspended);
        let (process, network) = (Arc::clone(&replica.process), Arc::clone(&self.network));
        process.suspend();
        self.truth.stops_working(&process.name);
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            process.resume();
            network.process_changed();
        });
    }

    /// Sets a fault of the link of a replica for a while.
    fn disturb(&self, pick: u64, time: Duration, fault: Fault, set: fn(&Network, &str, bool)) {
        let Some(replica) = self.running(pick) else { return };
        self.truth.record_fault(fault);
        let (name, network) = (replica.process.name.clone(), Arc::clone(&self.network));
        set(&network, &name, true);
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            set(&network, &name, false);
        });
    }

    async fn lag(&self, time: Duration) {
        self.truth.record_fault(Fault::Lagging);
        let faults = self.server.faults();
        let _ = faults.lag(None, true).await;
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            let _ = faults.lag(None, false).await;
        });
    }

    async fn restart_server(&mut self, time: Duration) {
        self.truth.record_fault(Fault::Restarted);
        self.network.set_upstream(None);
        tokio::time::sleep(time).await;
        self.servers += 1;
        self.server = server::serve(self.storage.clone(), self.settings.seed ^ self.servers).await;
        self.network.set_upstream(Some(self.server.client()));
    }
}
