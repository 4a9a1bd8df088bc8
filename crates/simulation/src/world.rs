//! A world: a server, informers, handlers and work queues, in one thread under paused time.

use crate::{
    backend::Backend,
    cluster::Cluster,
    handlers::Behaviour,
    history::Write,
    log::{Log, Sink},
    model::ModelServer,
    operator::{Operator, WriteMode},
    restarts::{Boot, ClockChange, Crash, DiskFault, Program},
    runtime::run_paused,
    schedule::{Action, Pause, Schedule, Step},
    subject::{IndexKind, NAMES, NAMESPACES, Settings, SharedFactory, StopMode, Subject},
    totals::{Fault, Totals},
    work::Work,
};
use kube_informer::{ObjectKey, Stop};
use std::{fmt, sync::Arc, time::Duration};
use tokio::time::Instant;

/// Maximum number of informers at once.
const MAX_SUBJECTS: usize = 4;
/// Maximum number of handlers of one informer.
const MAX_HANDLERS: usize = 32;
/// Time limit for convergence after all faults ended. A stalled watch is noticed after a little more than ten
/// minutes, and the longest backoff is a minute.
const CONVERGENCE_TIMEOUT: Duration = Duration::from_secs(1_500);

/// The result of a world.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The hash of the trace.
    pub hash: u64,
    /// Counts of faults, writes, events and checks.
    pub totals: Totals,
    /// The first failed check.
    pub failure: Option<Failure>,
}

/// A failed check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The number of steps before it.
    pub steps: usize,
    /// Which check failed, and how.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} steps: {}", self.steps, self.what)
    }
}

/// Runs the world of a seed.
pub fn run(seed: u64, trace: Option<Sink>) -> Outcome {
    run_schedule(&Schedule::generate(seed), trace)
}

/// Runs the world with restarts of a seed.
pub fn run_restarts(seed: u64, trace: Option<Sink>) -> Outcome {
    run_schedule(&Schedule::restarts(seed), trace)
}

pub(crate) fn run_schedule(schedule: &Schedule, trace: Option<Sink>) -> Outcome {
    run_paused(run_world(schedule, trace))
}

async fn run_world(schedule: &Schedule, trace: Option<Sink>) -> Outcome {
    let log = Arc::new(Log::new(trace));
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
        world.shut_down().await;
        failure = log.failure().map(|what| Failure { steps: schedule.steps.len(), what });
    }
    Outcome { hash: log.hash(), totals: log.totals(), failure }
}

struct World {
    backend: Backend,
    subjects: Vec<Subject>,
    subjects_made: usize,
    /// In some worlds, a factory of several informers.
    factory: Option<Arc<SharedFactory>>,
    work: Work,
    workers: tokio::task::JoinHandle<()>,
    /// In some worlds, a controller that writes to the server.
    controller: Option<Controller>,
    /// In worlds with restarts, the program that saves its caches.
    program: Option<Program>,
    log: Arc<Log>,
    last_write: Option<Arc<Write>>,
}

/// A controller: an informer, a queue, and workers that write.
struct Controller {
    subject: Subject,
    work: Work,
    workers: tokio::task::JoinHandle<()>,
}

impl Controller {
    fn new(cluster: &Arc<Cluster>, backend: &Backend, mut rng: fastrand::Rng, log: &Arc<Log>) -> Self {
        let settings = Settings::random(&mut rng).for_controller(&mut rng);
        let mut subject = Subject::new("c".into(), settings, None, backend, log);
        let mode = if rng.u8(0..3) == 0 { WriteMode::Put } else { WriteMode::Edit };
        let operator = Operator::new(subject.lister(), cluster, mode, log);
        let work = Work::new(rng.fork(), Some(operator), Arc::clone(log));
        let workers = work.start(rng.usize(1..3));
        // A seed for which the handler gets the resync period of the informer.
        subject.add_handler(Behaviour::Enqueueing, rng.u64(..) & !7, &work);
        subject.start();
        Self { subject, work, workers }
    }
}

impl World {
    async fn new(schedule: &Schedule, log: &Arc<Log>) -> Self {
        let mut rng = fastrand::Rng::with_seed(schedule.seed ^ 0x5eed);
        let work = Work::new(rng.fork(), None, Arc::clone(log));
        let workers = work.start(rng.usize(1..4));
        let mut controller = None;
        let backend = match schedule.real {
            false => Backend::Model(ModelServer::new(rng.fork(), log)),
            true => {
                let cluster = Cluster::new(rng.fork(), log).await;
                let backend = Backend::Cluster(Arc::clone(&cluster));
                if rng.u8(0..3) == 0 && !schedule.saves {
                    controller = Some(Controller::new(&cluster, &backend, rng.fork(), log));
                }
                backend
            }
        };
        let program = schedule.saves.then(|| Program::new(&backend, log));
        let factory = (rng.u8(0..3) == 0 && program.is_none()).then(|| {
            let mut settings = Settings::random(&mut rng);
            settings.by_factory = true;
            SharedFactory::new(settings, &backend, log)
        });
        Self {
            backend,
            subjects: Vec::new(),
            subjects_made: 0,
            factory,
            work,
            workers,
            controller,
            program,
            log: Arc::clone(log),
            last_write: None,
        }
    }

    async fn run_step(&mut self, step: Step) {
        self.log.note(format_args!("step {:?}", step.action));
        self.run_action(step.action, step.pick).await;
        match step.pause {
            Pause::None => {}
            Pause::Yields(times) => {
                for _ in 0..times {
                    tokio::task::yield_now().await;
                }
            }
            Pause::Time(time) => tokio::time::sleep(time).await,
        }
        self.check();
    }

    fn check(&mut self) {
        self.subjects.iter_mut().for_each(Subject::check);
        if let Some(controller) = &mut self.controller {
            controller.subject.check();
        }
    }

    async fn run_action(&mut self, action: Action, pick: u64) {
        match action {
            Action::Put => self.put(&key(pick), color(pick), false).await,
            Action::PutInvalid => self.put(&key(pick), color(pick), true).await,
            Action::Delete => self.delete(&key(pick)).await,
            Action::Recreate => self.recreate(pick).await,
            Action::Burst(writes) => self.burst(writes, pick).await,
            Action::Advance(by) => self.backend.advance(by).await,
            Action::Compact => self.backend.compact(pick).await,
            Action::Restore(back) => self.backend.restore(back).await,
            Action::Restart => self.backend.restart(pick).await,
            Action::InjectFault(fault) => self.backend.inject(fault, pick),
            Action::ArmFault(fault) => self.backend.arm(fault),
            Action::BeginCondition(condition) => self.backend.set(condition, true).await,
            Action::EndCondition(condition) => self.backend.set(condition, false).await,
            Action::NewInformer => self.new_informer(pick),
            Action::RestartProgram(how) => self.restart_program(how, pick).await,
            Action::Start => self.on_subject(pick, Subject::start),
            Action::StopInformer(how) => self.stop_informer(how, pick).await,
            Action::AddHandler(behaviour) => {
                let work = self.work.clone();
                self.on_subject(pick, |subject| {
                    if subject.handlers.len() < MAX_HANDLERS {
                        subject.add_handler(behaviour, pick, &work);
                    }
                });
            }
            Action::RemoveHandler => {
                if let Some(subject) = choose(&mut self.subjects, pick) {
                    subject.remove_handler(pick / 7).await;
                }
            }
            Action::AddIndex(kind) => self.on_subject(pick, |subject| subject.add_index(kind)),
            Action::AwaitWrite(within) => {
                self.await_last(pick, |subject, write| subject.await_write(write, within))
            }
            Action::AwaitCondition(within) => {
                self.await_last(pick, |subject, write| subject.await_condition(write, within));
            }
            Action::Crash(crash) => self.crash(crash, pick).await,
            Action::Boot(boot) => self.boot(boot, pick),
            Action::Disk(fault) => self.on_subject(pick, |subject| subject.set_disk_fault(fault)),
            Action::Converge => self.converge().await,
        }
    }

    fn on_subject(&mut self, pick: u64, act: impl FnOnce(&mut Subject)) {
        if let Some(subject) = choose(&mut self.subjects, pick) {
            act(subject);
        }
    }

    fn await_last(&mut self, pick: u64, act: impl FnOnce(&mut Subject, &Arc<Write>)) {
        if let (Some(write), Some(subject)) = (&self.last_write, choose(&mut self.subjects, pick)) {
            act(subject, write);
        }
    }

    async fn put(&mut self, key: &ObjectKey, color: u64, invalid: bool) {
        let write = self.backend.put(key, color, invalid).await;
        self.last_write = write.or(self.last_write.take());
    }

    async fn delete(&mut self, key: &ObjectKey) {
        let write = self.backend.delete(key).await;
        self.last_write = write.or(self.last_write.take());
    }

    /// Deletes an object and creates another one of the same name.
    async fn recreate(&mut self, pick: u64) {
        let key = key(pick);
        let unwatched = self.subjects.iter().any(|subject| subject.lacks_watch() && subject.covers(&key));
        let existed = self.backend.delete(&key).await.is_some();
        self.put(&key, color(pick), false).await;
        if existed && unwatched {
            self.log.record_fault(Fault::Recreated);
        }
    }

    async fn burst(&mut self, writes: u8, pick: u64) {
        let mut rng = fastrand::Rng::with_seed(pick);
        for _ in 0..writes {
            let pick = rng.u64(0..6) + (pick % 4) * 6;
            match rng.u8(0..4) {
                0 => self.delete(&key(pick)).await,
                1 => self.recreate(pick).await,
                _ => self.put(&key(pick), color(rng.u64(..)), false).await,
            }
            for _ in 0..rng.u8(0..4) {
                tokio::task::yield_now().await;
            }
        }
    }

    fn new_informer(&mut self, pick: u64) {
        let down = self.program.as_ref().map_or(0, Program::down);
        if self.subjects.len() + down < MAX_SUBJECTS {
            let mut rng = fastrand::Rng::with_seed(pick);
            let mut settings = self.backend.supported(Settings::random(&mut rng));
            if let Some(program) = &self.program {
                settings = program.settings(settings, &mut rng);
            }
            let mut subject = self.create_subject(settings, pick);
            if !pick.is_multiple_of(4) {
                subject.start();
            }
            self.subjects.push(subject);
        }
    }

    fn create_subject(&mut self, settings: Settings, pick: u64) -> Subject {
        self.subjects_made += 1;
        let name = format!("i{}", self.subjects_made);
        let shared = self.factory.as_ref().filter(|_| settings.by_factory);
        let settings = match shared {
            Some(factory) => factory.settings(settings, pick),
            None => settings,
        };
        Subject::new(name, settings, shared, &self.backend, &self.log)
    }

    async fn stop_informer(&mut self, how: StopMode, pick: u64) {
        if !self.subjects.is_empty() {
            self.log.record_fault(Fault::Stopped);
            let subject = self.subjects.swap_remove(pick as usize % self.subjects.len());
            subject.stop(how).await;
        }
    }

    /// Stops all informers at once, and starts new ones with the same settings.
    async fn restart_program(&mut self, how: StopMode, pick: u64) {
        if self.subjects.is_empty() {
            return;
        }
        self.log.record_fault(Fault::ProgramRestarted);
        let old: Vec<Subject> = self.subjects.drain(..).collect();
        let new: Vec<Settings> =
            old.iter().map(|subject| subject.settings().clone().with_seed(pick)).collect();
        futures_util::future::join_all(old.into_iter().map(|subject| subject.stop(how))).await;
        for settings in new {
            let mut subject = self.create_subject(settings, 1);
            subject.add_handler(Behaviour::Plain, pick, &self.work);
            subject.start();
            self.subjects.push(subject);
        }
    }

    async fn crash(&mut self, crash: Crash, pick: u64) {
        if let Some(program) = &mut self.program {
            program.crash(std::mem::take(&mut self.subjects), crash, pick).await;
        }
    }

    fn boot(&mut self, boot: Boot, pick: u64) {
        let started = self.program.as_mut().map(|program| program.boot(boot, pick)).unwrap_or_default();
        for (settings, fault) in started {
            let mut subject = self.create_subject(settings, 1);
            subject.set_disk_fault(fault);
            if pick.is_multiple_of(3) {
                // Filled from saved fields.
                subject.add_index(IndexKind::Field);
            }
            subject.add_handler(Behaviour::Plain, pick, &self.work);
            subject.add_handler(Behaviour::Filtering { color: pick % 3 }, pick, &self.work);
            subject.start();
            self.subjects.push(subject);
        }
    }

    /// Ends all faults, waits until everything agrees with the history, and checks the rest.
    async fn converge(&mut self) {
        self.boot(Boot { clock: ClockChange::None }, 1);
        self.subjects.iter().for_each(|subject| subject.set_disk_fault(DiskFault::Healed));
        self.backend.clear_faults().await;
        self.set_inject_failures(false);
        let controller = self.controller.as_ref().map(|controller| &controller.subject);
        if self.subjects.iter().chain(controller).any(Subject::waits_without_limit) {
            self.backend.reset_connections();
        }
        self.subjects.iter_mut().for_each(Subject::start);
        let deadline = Instant::now() + CONVERGENCE_TIMEOUT;
        let mut wait = Duration::from_millis(1);
        while let Err(why) = self.check_converged() {
            if Instant::now() >= deadline {
                let seconds = CONVERGENCE_TIMEOUT.as_secs();
                self.log.fail(format_args!("no convergence within {seconds}s after all faults ended: {why}"));
                return;
            }
            tokio::time::sleep(wait).await;
            // A prime number of milliseconds, so that the checks do not always coincide with a resync.
            wait = (wait * 2).min(Duration::from_millis(28_657));
            self.check();
        }
        self.log.note(format_args!("converged"));
        self.backend.check().await;
        for subject in
            self.subjects.iter().chain(self.controller.as_ref().map(|controller| &controller.subject))
        {
            subject.await_newest(CONVERGENCE_TIMEOUT).await;
            subject.check_status();
        }
        if let Some(program) = &self.program {
            program.check_saved(&self.subjects).await;
        }
        self.set_inject_failures(true);
        self.backend.resume();
    }

    fn check_converged(&self) -> Result<(), String> {
        if let Some(controller) = &self.controller {
            controller.work.check()?;
            controller.subject.check_converged()?;
        }
        self.subjects.iter().try_for_each(Subject::check_converged)?;
        self.work.check()
    }

    /// Sets whether workers sometimes fail and slow readers pause for long.
    fn set_inject_failures(&self, inject_failures: bool) {
        self.work.set_inject_failures(inject_failures);
        if let Some(controller) = &self.controller {
            controller.work.set_inject_failures(inject_failures);
        }
    }

    /// Stops everything, and checks that no task and no object is left.
    async fn shut_down(mut self) {
        let endings = [StopMode::Drain, StopMode::Drop, StopMode::Abandon];
        for (i, subject) in self.subjects.drain(..).enumerate() {
            subject.stop(endings[i % endings.len()]).await;
        }
        if let Some(factory) = self.factory.take() {
            factory.check_stopped();
            factory.shut_down(Stop::Drop).await;
        }
        self.work.shutdown().await;
        let _ = self.workers.await;
        drop(self.work);
        if let Some(Controller { subject, work, workers }) = self.controller {
            work.shutdown().await;
            let _ = workers.await;
            drop(work);
            subject.stop(StopMode::Drop).await;
        }
        self.backend.shut_down();
        // Lets cancelled tasks run to their end.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let left = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        if left > 0 {
            self.log.fail(format_args!("{left} tasks are left after everything was stopped"));
        }
        let held = self.backend.truth().origin_references();
        if held > 0 {
            self.log.fail(format_args!("{held} objects or sources are left after everything was stopped"));
        }
    }
}

fn choose(subjects: &mut [Subject], pick: u64) -> Option<&mut Subject> {
    let at = (pick / 3) as usize % subjects.len().max(1);
    subjects.get_mut(at)
}

pub(crate) fn key(pick: u64) -> ObjectKey {
    let namespace = NAMESPACES[(pick % 4) as usize];
    ObjectKey::namespaced(namespace, NAMES[(pick / 4 % 6) as usize])
}

fn color(pick: u64) -> u64 {
    pick / 24 % 3
}
