//! The program whose informers save their caches: its crashes, and its starts.

use super::{
    Damage, Expected,
    expected::{SavedLog, expected, logs_of},
    persistence::{Files, Persistence, WallClock},
};
use crate::{
    backend::Backend,
    log::Log,
    model::ModelServer,
    selection::Part,
    subject::{Settings, StopMode, Subject},
    totals::Fault,
    truth::ClientId,
    world::key,
};
use crash_disk::{Failing, Note, Operation, after_kill, after_power_loss};
use kube_informer_wire::sync::lock;
use std::{sync::Arc, time::Duration};

/// Time within which a converged cache is saved. The longest pause after failures of the disk is two minutes.
const SAVE_TIMEOUT: Duration = Duration::from_secs(130);
/// A process that is killed in an operation is killed in one of this many last ones.
const LAST_OPERATIONS: usize = 30;

/// The end of a program, and the damage to its directories until it starts again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crash {
    pub(crate) ending: Ending,
    pub(crate) damage: Damage,
    /// Whether the server may be restored and then pass the saved versions while the program is down.
    pub(crate) may_hide_restore: bool,
}

/// How a program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Stopped(StopMode),
    /// Killed between two operations of the disk.
    Killed,
    /// Killed within an operation.
    KilledWriting,
    /// Any part of what was not synced is lost.
    PowerLost,
}

/// A start of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Boot {
    pub(crate) clock: ClockChange,
}

/// The change of the wall clock while the program was down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockChange {
    None,
    /// It was down for longer than a saved state may be old.
    Later,
    /// The clock was set back.
    Back,
}

/// A fault of the disk that lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskFault {
    /// Only this many more bytes can be written.
    Full(u64),
    Failing(Failing),
    Healed,
}

/// The program of a world.
pub(crate) struct Program {
    clock: WallClock,
    backend: Backend,
    log: Arc<Log>,
    down: Vec<Down>,
}

/// An informer whose process has ended.
struct Down {
    settings: Settings,
    files: Files,
    expected: Vec<Expected>,
    is_readable: bool,
    /// Clients that stand for the saved states.
    placeholders: Vec<ClientId>,
}

impl Program {
    pub(crate) fn new(backend: &Backend, log: &Arc<Log>) -> Self {
        let (backend, log) = (backend.clone(), Arc::clone(log));
        Self { clock: WallClock::new(), backend, log, down: Vec::new() }
    }

    /// The settings of a new informer of the program.
    pub(crate) fn settings(&self, settings: Settings, rng: &mut fastrand::Rng) -> Settings {
        settings.saving(rng, &self.clock)
    }

    /// The number of informers whose process has ended.
    pub(crate) fn down(&self) -> usize {
        self.down.len()
    }

    /// Ends the processes of all informers.
    pub(crate) async fn crash(&mut self, subjects: Vec<Subject>, crash: Crash, pick: u64) {
        self.log.record_fault(match crash.ending {
            Ending::Stopped(_) => Fault::ProgramRestarted,
            Ending::Killed | Ending::KilledWriting => Fault::Killed,
            Ending::PowerLost => Fault::PowerLost,
        });
        for (i, subject) in subjects.into_iter().enumerate() {
            let mut rng = fastrand::Rng::with_seed(pick.wrapping_add(i as u64));
            let down = self.end(subject, crash, &mut rng).await;
            self.down.extend(down);
        }
    }

    async fn end(&self, subject: Subject, crash: Crash, rng: &mut fastrand::Rng) -> Option<Down> {
        let mut settings = subject.settings().clone();
        let persistence = settings.persistence.clone()?;
        let must_be_saved = subject.must_be_saved(crash.ending, self.backend.truth().lock().history.epoch());
        let at_crash = crash.ending.files(&persistence, rng);
        let how = if let Ending::Stopped(how) = crash.ending { how } else { StopMode::Drop };
        let name = subject.name().to_owned();
        subject.stop(how).await;
        if persistence.disk.failures() > 0 {
            self.log.record_fault(Fault::DiskFailed);
        }
        let mut files = at_crash.unwrap_or_else(|| persistence.disk.files());
        // The write that a stop waits for may fail, too.
        let has_failed = crash.ending != Ending::Killed && persistence.disk.failures() > 0;
        for (log, version) in logs_of(&files, &settings.coverage).iter().zip(must_be_saved) {
            let saved = log.as_ref().and_then(|log| log.position).map(|(version, _)| version);
            if version.is_some() && saved < version && !has_failed {
                self.log
                    .fail(format_args!("{name} was saved at {version:?}, and its files are at {saved:?}"));
            }
        }
        let (before, is_readable) = self.damage(&mut settings, &mut files, crash.damage, rng).await;
        let expected = expected(&persistence, &settings.coverage, &before, &files);
        self.log.note(format_args!("{name} ends, {crash:?}, expected {expected:?}"));
        let placeholders = if crash.may_hide_restore { Vec::new() } else { self.hold(&expected) };
        Some(Down { settings, files, expected, is_readable, placeholders })
    }

    /// Damages files, or changes the settings of the next process. Returns the logs before any damage, and whether they can be
    /// read.
    async fn damage(
        &self,
        settings: &mut Settings,
        files: &mut Files,
        damage: Damage,
        rng: &mut fastrand::Rng,
    ) -> (Vec<Option<SavedLog>>, bool) {
        let copies = settings.persistence.as_ref().map(|persistence| {
            let copies = lock(&persistence.copies).clone();
            persistence.keep_copy(files);
            copies
        });
        match damage {
            Damage::OtherCluster => *files = self.other_cluster(settings, rng).await,
            Damage::OtherTransform => settings.coverage.change_transform(rng),
            Damage::OtherSelector => settings.coverage.change_selection(rng),
            _ => {}
        }
        *settings = self.backend.supported(settings.clone());
        let before = logs_of(files, &settings.coverage);
        let is_applied = damage.apply(files, &copies.unwrap_or_default(), rng);
        if let Some(fault) = damage.fault().filter(|_| is_applied) {
            self.log.record_fault(fault);
        }
        // Another copy is intact, too.
        let before = if damage == Damage::OlderCopy { logs_of(files, &settings.coverage) } else { before };
        (before, damage != Damage::Unreadable)
    }

    /// The files of an informer with the same settings, of another cluster.
    async fn other_cluster(&self, settings: &Settings, rng: &mut fastrand::Rng) -> Files {
        let log = Arc::new(Log::new(None));
        let kind = self.backend.truth().origin().kind().clone();
        let backend = Backend::Model(ModelServer::of_kind(kind, rng.fork(), &log));
        let mut settings = settings.clone().with_seed(rng.u64(..));
        let Some(persistence) = &mut settings.persistence else { return Files::new() };
        *persistence = persistence.restarted(Files::new(), rng.u64(..), Vec::new());
        persistence.cluster = "other";
        let disk = persistence.disk.clone();
        settings.panics.stop();
        for _ in 0..8 {
            backend.put(&key(rng.u64(..)), rng.u64(0..3), false).await;
        }
        let mut subject = Subject::new("other".into(), settings, None, &backend, &log);
        subject.start();
        tokio::time::sleep(Duration::from_secs(2)).await;
        subject.stop(StopMode::Drop).await;
        disk.files()
    }

    /// Clients that are at the saved states, so that the world does not hide a restore from them.
    fn hold(&self, expected: &[Expected]) -> Vec<ClientId> {
        let mut truth = self.backend.truth().lock();
        let hold = |expected: &Expected| {
            let client = truth.new_client();
            truth.restarts_from(client, &expected.states);
            client
        };
        expected.iter().map(hold).collect()
    }

    /// Starts the processes of all informers that are down. Returns their settings, and the faults of their disks.
    pub(crate) fn boot(&mut self, boot: Boot, pick: u64) -> Vec<(Settings, DiskFault)> {
        let seconds = match boot.clock {
            ClockChange::None => 0,
            ClockChange::Later => 700,
            ClockChange::Back => -30,
        };
        if seconds != 0 && !self.down.is_empty() {
            self.log.record_fault(Fault::ClockChanged);
            self.clock.set_forward(seconds);
        }
        let down = std::mem::take(&mut self.down);
        // If the clock was set back, a state from the future may become a recent one when the clock is set forward for another.
        while down.iter().any(|informer| self.exclude_undetectable(informer)) {}
        let started = down.into_iter().enumerate().map(|(i, informer)| {
            let Down { settings, files, mut expected, is_readable, placeholders } = informer;
            let mut truth = self.backend.truth().lock();
            placeholders.into_iter().for_each(|client| truth.remove_client(client));
            drop(truth);
            for expected in expected.iter_mut().filter(|_| !is_readable) {
                expected.is_intact = false;
            }
            let seed = pick.wrapping_add(i as u64);
            let mut settings = settings.with_seed(seed);
            let persistence = settings.persistence.take();
            settings.persistence = persistence.map(|before| before.restarted(files, seed, expected));
            let fault = if is_readable { DiskFault::Healed } else { DiskFault::Failing(Failing::Reads) };
            (settings, fault)
        });
        started.collect()
    }

    /// Lets a saved state become too old to be resumed, if nothing else would show that the server was restored. Returns whether
    /// the clock was set forward for that.
    fn exclude_undetectable(&self, informer: &Down) -> bool {
        let Down { settings, expected, .. } = informer;
        let Some(persistence) = &settings.persistence else { return false };
        let truth = self.backend.truth().lock();
        let partitions = settings.coverage.partitions();
        let is_excluded = partitions.iter().zip(expected).any(|(partition, expected)| {
            let part = Part::new(*partition, settings.coverage.selection);
            expected.saved_at.is_some_and(|saved_at| persistence.is_recent(saved_at))
                && expected.states.iter().any(|&state| truth.is_undetectable(state, &part))
        });
        drop(truth);
        if is_excluded {
            self.log.record_fault(Fault::Undetectable);
            self.clock.set_forward(1 + persistence.resume_within.as_secs() as i64);
        }
        is_excluded
    }

    /// Checks that the caches are saved, after convergence.
    pub(crate) async fn check_saved(&self, subjects: &[Subject]) {
        tokio::time::sleep(SAVE_TIMEOUT).await;
        for subject in subjects {
            let Some(persistence) = &subject.settings().persistence else { continue };
            let logs = logs_of(&persistence.disk.files(), &subject.settings().coverage);
            for (log, version) in logs.iter().zip(subject.versions()) {
                let saved = log.as_ref().and_then(|log| log.position).map(|(version, _)| version);
                if saved != version {
                    let status = subject.persist_status();
                    self.log.fail(format_args!(
                        "{} is at {version:?} and saved at {saved:?}: {status}",
                        subject.name()
                    ));
                }
            }
        }
    }
}

impl Ending {
    /// The files at the end of a process; `None` if they are those after it has stopped.
    fn files(self, persistence: &Persistence, rng: &mut fastrand::Rng) -> Option<Files> {
        let mut operations = persistence.disk.operations();
        let files = match self {
            Self::Stopped(_) => return None,
            Self::Killed => {
                operations.push(Operation::Note(Note::Committed(0)));
                after_kill(&operations, rng)
            }
            Self::KilledWriting | Self::PowerLost => {
                let first = persistence.first_operation.max(operations.len().saturating_sub(LAST_OPERATIONS));
                operations.truncate(rng.usize(first..=operations.len()));
                match self {
                    Self::PowerLost => after_power_loss(&operations, rng),
                    _ => after_kill(&operations, rng),
                }
            }
        };
        Some(files.files())
    }
}

impl Subject {
    /// Injects a fault into the disk.
    pub(crate) fn set_disk_fault(&self, fault: DiskFault) {
        let Some(persistence) = &self.settings().persistence else { return };
        let disk = &persistence.disk;
        match fault {
            DiskFault::Full(bytes) => disk.set_free_bytes(bytes),
            DiskFault::Failing(failing) => disk.set_failing(Some(failing)),
            DiskFault::Healed => {
                disk.set_failing(None);
                disk.set_free_bytes(u64::MAX);
            }
        }
    }

    /// The versions that must be in the files after this end of the process, for each partition.
    fn must_be_saved(&self, ending: Ending, epoch: u32) -> Vec<Option<u64>> {
        let failed =
            self.settings().persistence.as_ref().is_none_or(|persistence| persistence.disk_failures() > 0);
        match ending {
            Ending::Killed => self.saved_version().map(Some).into_iter().collect(),
            Ending::Stopped(_) if !failed && epoch == 0 => self.versions(),
            _ => Vec::new(),
        }
    }
}
