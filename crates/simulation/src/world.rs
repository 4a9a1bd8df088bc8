//! A world: a server, informers, handlers, queues; one thread, one seed, a clock that jumps.

use crate::{
    cluster::Cluster,
    handlers::Temper,
    history::Written,
    log::{Log, Sink},
    operator::{Operator, Way},
    place::Place,
    schedule::{Action, Pause, Schedule, Step},
    source::Source,
    subject::{Ending, NAMESPACES, Settings, Subject},
    totals::{Fault, Totals},
    work::Work,
};
use kube_informer::ObjectKey;
use std::{fmt, sync::Arc, time::Duration};
use tokio::time::Instant;

/// Informers at once, at most.
const MOST_SUBJECTS: usize = 4;
/// Handlers of one informer, at most.
const MOST_HANDLERS: usize = 32;
/// Without a fault in force, everything is well within this time: a watch that died is noticed after ten
/// minutes and a little more, and the longest wait after a failure is a minute.
const RECOVERY: Duration = Duration::from_secs(1_500);

/// How a world ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The hash of all that happened.
    pub hash: u64,
    /// What happened, counted.
    pub totals: Totals,
    /// What was wrong, if anything was.
    pub failure: Option<Failure>,
}

/// Something that must not happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Steps that had been taken.
    pub steps: usize,
    /// What is wrong.
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

pub(crate) fn run_schedule(schedule: &Schedule, trace: Option<Sink>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime
        .expect("a runtime without I/O needs nothing that could be missing")
        .block_on(live(schedule, trace))
}

async fn live(schedule: &Schedule, trace: Option<Sink>) -> Outcome {
    let log = Arc::new(Log::new(trace));
    let mut world = World::new(schedule, &log).await;
    let mut failure = None;
    for (i, step) in schedule.steps.iter().enumerate() {
        world.take(*step).await;
        failure = log.failure().map(|what| Failure { steps: i + 1, what });
        if failure.is_some() {
            break;
        }
    }
    if failure.is_none() {
        world.rest().await;
        world.end().await;
        failure = log.failure().map(|what| Failure { steps: schedule.steps.len(), what });
    }
    Outcome { hash: log.hash(), totals: log.totals(), failure }
}

struct World {
    place: Place,
    subjects: Vec<Subject>,
    subjects_made: usize,
    work: Work,
    workers: tokio::task::JoinHandle<()>,
    /// A program that writes back, in some worlds.
    controller: Option<Controller>,
    log: Arc<Log>,
    last_write: Option<Arc<Written>>,
}

/// A controller: an informer, a queue, and workers that write.
struct Controller {
    subject: Subject,
    work: Work,
    workers: tokio::task::JoinHandle<()>,
}

impl Controller {
    fn new(cluster: &Arc<Cluster>, place: &Place, mut rng: fastrand::Rng, log: &Arc<Log>) -> Self {
        let settings = Settings::random(&mut rng).whole(&mut rng);
        let mut subject = Subject::new("c".into(), settings, place, log);
        let way = if rng.u8(0..3) == 0 { Way::Put } else { Way::Edit };
        let operator = Operator::new(subject.lister(), cluster, way, log);
        let work = Work::new(rng.fork(), Some(operator), Arc::clone(log));
        let workers = work.begin(rng.usize(1..3));
        // Not a handler that declines resyncs.
        subject.add_handler(Temper::Feeding, rng.u64(..) & !3, &work);
        subject.start();
        Self { subject, work, workers }
    }
}

impl World {
    async fn new(schedule: &Schedule, log: &Arc<Log>) -> Self {
        let mut rng = fastrand::Rng::with_seed(schedule.seed ^ 0x5eed);
        let work = Work::new(rng.fork(), None, Arc::clone(log));
        let workers = work.begin(rng.usize(1..4));
        let mut controller = None;
        let place = match schedule.real {
            false => Place::Model(Source::new(rng.fork(), log)),
            true => {
                let cluster = Cluster::new(rng.fork(), log).await;
                let place = Place::Cluster(Arc::clone(&cluster));
                if rng.u8(0..3) == 0 {
                    controller = Some(Controller::new(&cluster, &place, rng.fork(), log));
                }
                place
            }
        };
        Self {
            place,
            subjects: Vec::new(),
            subjects_made: 0,
            work,
            workers,
            controller,
            log: Arc::clone(log),
            last_write: None,
        }
    }

    async fn take(&mut self, step: Step) {
        self.log.note(format_args!("step {:?}", step.action));
        self.act(step.action, step.pick).await;
        match step.pause {
            Pause::None => {}
            Pause::Turns(turns) => {
                for _ in 0..turns {
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

    async fn act(&mut self, action: Action, pick: u64) {
        match action {
            Action::Put => self.put(&key(pick), color(pick), false).await,
            Action::PutOdd => self.put(&key(pick), color(pick), true).await,
            Action::Delete => self.delete(&key(pick)).await,
            Action::Recreate => self.recreate(pick).await,
            Action::Burst(writes) => self.burst(writes, pick).await,
            Action::Advance(by) => self.place.advance(by).await,
            Action::Compact => self.place.compact(pick).await,
            Action::Restore(back) => self.place.restore(back).await,
            Action::Restart => self.place.restart(pick).await,
            Action::Strike(blow) => self.place.strike(blow, pick),
            Action::Lay(trap) => self.place.lay(trap),
            Action::Begin(condition) => self.place.set(condition, true).await,
            Action::End(condition) => self.place.set(condition, false).await,
            Action::NewInformer => self.new_informer(pick),
            Action::RestartProgram(how) => self.restart_program(how, pick).await,
            Action::Start => self.on_subject(pick, Subject::start),
            Action::EndInformer(how) => self.end_informer(how, pick).await,
            Action::AddHandler(temper) => {
                let work = self.work.clone();
                self.on_subject(pick, |subject| {
                    if subject.handlers.len() < MOST_HANDLERS {
                        subject.add_handler(temper, pick, &work);
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
            Action::Rest => self.rest().await,
        }
    }

    fn on_subject(&mut self, pick: u64, act: impl FnOnce(&mut Subject)) {
        if let Some(subject) = choose(&mut self.subjects, pick) {
            act(subject);
        }
    }

    fn await_last(&mut self, pick: u64, act: impl FnOnce(&mut Subject, &Arc<Written>)) {
        if let (Some(write), Some(subject)) = (&self.last_write, choose(&mut self.subjects, pick)) {
            act(subject, write);
        }
    }

    async fn put(&mut self, key: &ObjectKey, color: u64, odd: bool) {
        let write = self.place.put(key, color, odd).await;
        self.last_write = write.or(self.last_write.take());
    }

    async fn delete(&mut self, key: &ObjectKey) {
        let write = self.place.delete(key).await;
        self.last_write = write.or(self.last_write.take());
    }

    /// Another object takes the place of one, perhaps while somebody is not looking.
    async fn recreate(&mut self, pick: u64) {
        let key = key(pick);
        let blind = self.subjects.iter().any(|subject| subject.is_blind() && subject.covers(&key));
        let existed = self.place.delete(&key).await.is_some();
        self.put(&key, color(pick), false).await;
        if existed && blind {
            self.log.strike(Fault::Recreated);
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
        if self.subjects.len() < MOST_SUBJECTS {
            self.subjects_made += 1;
            let settings = Settings::random(&mut fastrand::Rng::with_seed(pick));
            let name = format!("i{}", self.subjects_made);
            let mut subject = Subject::new(name, settings, &self.place, &self.log);
            if !pick.is_multiple_of(4) {
                subject.start();
            }
            self.subjects.push(subject);
        }
    }

    async fn end_informer(&mut self, how: Ending, pick: u64) {
        if !self.subjects.is_empty() {
            self.log.strike(Fault::Stopped);
            let subject = self.subjects.swap_remove(pick as usize % self.subjects.len());
            subject.stop(how).await;
        }
    }

    /// Everything goes down at once, and the same comes up again.
    async fn restart_program(&mut self, how: Ending, pick: u64) {
        if self.subjects.is_empty() {
            return;
        }
        self.log.strike(Fault::ProgramRestarted);
        let old: Vec<Subject> = self.subjects.drain(..).collect();
        let again: Vec<Settings> = old.iter().map(|subject| subject.settings().clone().again(pick)).collect();
        futures_util::future::join_all(old.into_iter().map(|subject| subject.stop(how))).await;
        for settings in again {
            self.subjects_made += 1;
            let name = format!("i{}", self.subjects_made);
            let mut subject = Subject::new(name, settings, &self.place, &self.log);
            subject.add_handler(Temper::Plain, pick, &self.work);
            subject.start();
            self.subjects.push(subject);
        }
    }

    /// Faults end, nobody writes: in the end everything agrees.
    async fn rest(&mut self) {
        self.place.heal().await;
        self.set_clumsy(false);
        self.subjects.iter_mut().for_each(Subject::start);
        let deadline = Instant::now() + RECOVERY;
        let mut wait = Duration::from_millis(1);
        while let Err(why) = self.at_rest() {
            if Instant::now() >= deadline {
                self.log.fail(format_args!("not well after {}s of peace: {why}", RECOVERY.as_secs()));
                return;
            }
            tokio::time::sleep(wait).await;
            // Not in step with any period, so that it is not always the moment of a resync that is looked at.
            wait = (wait * 2).min(Duration::from_millis(28_657));
            self.check();
        }
        self.log.note(format_args!("at rest"));
        self.place.check().await;
        for subject in
            self.subjects.iter().chain(self.controller.as_ref().map(|controller| &controller.subject))
        {
            subject.await_newest(RECOVERY).await;
            subject.check_status();
        }
        self.set_clumsy(true);
        self.place.go_on();
    }

    fn at_rest(&self) -> Result<(), String> {
        if let Some(controller) = &self.controller {
            controller.work.check()?;
            controller.subject.check_rest()?;
        }
        self.subjects.iter().try_for_each(Subject::check_rest)?;
        self.work.check()
    }

    /// Whether workers fail and readers dawdle.
    fn set_clumsy(&self, clumsy: bool) {
        self.work.set_clumsy(clumsy);
        if let Some(controller) = &self.controller {
            controller.work.set_clumsy(clumsy);
        }
    }

    /// Everything ends, and nothing is left.
    async fn end(mut self) {
        let endings = [Ending::Drain, Ending::Drop, Ending::Abandon];
        for (i, subject) in self.subjects.drain(..).enumerate() {
            subject.stop(endings[i % endings.len()]).await;
        }
        self.work.shutdown();
        let _ = self.workers.await;
        drop(self.work);
        if let Some(Controller { subject, work, workers }) = self.controller {
            work.shutdown();
            let _ = workers.await;
            drop(work);
            subject.stop(Ending::Drop).await;
        }
        self.place.end();
        // A task that was told to end does so when its turn comes.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let left = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        if left > 0 {
            self.log.fail(format_args!("{left} tasks are left when everything has ended"));
        }
        let held = self.place.truth().holders();
        if held > 0 {
            self.log.fail(format_args!("{held} objects or their sources are held when everything has ended"));
        }
    }
}

fn choose(subjects: &mut [Subject], pick: u64) -> Option<&mut Subject> {
    let at = (pick / 3) as usize % subjects.len().max(1);
    subjects.get_mut(at)
}

fn key(pick: u64) -> ObjectKey {
    let namespace = NAMESPACES[(pick % 4) as usize];
    ObjectKey::namespaced(namespace, ["x", "y", "z", "x-1", "w", "v"][(pick / 4 % 6) as usize])
}

fn color(pick: u64) -> u64 {
    pick / 24 % 3
}
