//! Random settings of informers.

use super::{durations::Durations, task_panics::TaskPanics, transform::TransformKind};
use crate::{history::View, log::Log, operator::WRONG, restarts::Persistence, selection::Selection};
use kube_informer::{InformerBuilder, InformerOptions, Packing, Scope, Transform};
use std::{collections::BTreeSet, sync::Arc, time::Duration};

/// The namespaces of a world. The name of one is a prefix of another.
pub(crate) const NAMESPACES: [&str; 4] = ["a", "a-b", "b", "c"];

/// The names of the objects in each namespace.
pub(crate) const NAMES: [&str; 6] = ["x", "y", "z", "x-1", "w", "v"];

/// How content is stored. `Packed` is rare, because training a dictionary takes a tenth of the time of a world.
const PACKING: [Packing; 4] = [Packing::Raw, Packing::Raw, Packing::Decoded, Packing::Packed];

/// The objects that an informer covers, and how they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// `None` is all namespaces.
    pub(crate) namespaces: Option<BTreeSet<&'static str>>,
    pub(crate) selection: Selection,
    pub(crate) transform: TransformKind,
}

/// Settings of one informer.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) coverage: Coverage,
    pub(crate) durations: Durations,
    streaming: bool,
    page_size: Option<u32>,
    queue_bound: usize,
    handler_bound: usize,
    linger: bool,
    packing: Packing,
    /// Whether a factory creates the informer.
    pub(crate) by_factory: bool,
    pub(crate) panics: TaskPanics,
    /// How the cache is saved, if it is.
    pub(crate) persistence: Option<Persistence>,
    seed: u64,
}

impl Coverage {
    fn random(rng: &mut fastrand::Rng) -> Self {
        let namespaces = match rng.u8(0..4) {
            0 | 1 => None,
            2 => rng.choice(NAMESPACES).map(|one| BTreeSet::from([one])),
            _ => {
                let mut some: BTreeSet<&'static str> = NAMESPACES.into_iter().collect();
                if let Some(left_out) = rng.choice(NAMESPACES) {
                    some.remove(left_out);
                }
                Some(some)
            }
        };
        Self { namespaces, selection: Selection::random(rng), transform: TransformKind::random(rng) }
    }

    pub(crate) fn scope(&self) -> Scope {
        match &self.namespaces {
            Some(names) => Scope::namespaces(names.iter().copied()).expect("valid names"),
            None => Scope::all(),
        }
    }

    /// The partitions: each is listed and watched on its own.
    pub(crate) fn partitions(&self) -> Vec<Option<&'static str>> {
        match &self.namespaces {
            None => vec![None],
            Some(names) => names.iter().map(|&name| Some(name)).collect(),
        }
    }

    /// Another transform.
    pub(crate) fn change_transform(&mut self, rng: &mut fastrand::Rng) {
        let before = self.transform;
        while self.transform == before {
            self.transform = TransformKind::random(rng);
        }
    }

    /// Other selectors.
    pub(crate) fn change_selection(&mut self, rng: &mut fastrand::Rng) {
        let before = self.selection;
        while self.selection == before {
            self.selection = Selection::random(rng);
        }
    }

    /// What the informer makes of the collection.
    pub(crate) fn view(&self) -> View {
        View { selection: self.selection, transform: self.transform }
    }

    /// The same as options of a factory.
    pub(crate) fn options(&self, options: InformerOptions, transform: Transform) -> InformerOptions {
        options
            .scope(self.scope())
            .label_selector(self.selection.labels())
            .field_selector(self.selection.fields())
            .transform(transform)
    }
}

impl Settings {
    pub(crate) fn random(rng: &mut fastrand::Rng) -> Self {
        Self {
            coverage: Coverage::random(rng),
            durations: Durations::random(rng),
            streaming: rng.bool(),
            page_size: rng.choice([None, Some(2), Some(3), Some(5), Some(7), Some(50)]).flatten(),
            queue_bound: rng.choice([1, 2, 4, 4096]).unwrap_or(1),
            handler_bound: rng.choice([1, 2, 4, 1024]).unwrap_or(1),
            linger: rng.u8(0..3) == 0,
            packing: rng.choice(PACKING).unwrap_or_default(),
            by_factory: rng.u8(0..3) == 0,
            panics: TaskPanics::new(rng.choice([0, 0, 0, 3, 12]).unwrap_or(0), rng.u64(..)),
            seed: rng.u64(..),
            persistence: None,
        }
    }

    /// Settings for a controller: all namespaces, and with resync. A restored store may undo a write of the controller and
    /// show its cache the same state again, which is no event; only a resync is.
    pub(crate) fn for_controller(mut self, rng: &mut fastrand::Rng) -> Self {
        self.coverage.namespaces = None;
        self.coverage.selection = if rng.bool() { Selection::Everything } else { Selection::Color(WRONG) };
        if rng.u8(0..4) == 0 {
            self.coverage.transform = TransformKind::DropData;
        }
        self.durations.resync = Duration::from_secs(60);
        self.by_factory = false;
        self
    }

    /// The same settings for another informer.
    pub(crate) fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self.panics = TaskPanics::new(self.panics.left(), seed);
        self
    }

    /// The same settings for other objects.
    pub(crate) fn with_coverage(self, coverage: Coverage) -> Self {
        Self { coverage, ..self }
    }

    /// Applies everything but the coverage.
    pub(crate) fn apply(&self, mut builder: InformerBuilder, log: &Arc<Log>) -> InformerBuilder {
        builder = self.durations.apply(builder);
        builder = builder
            .streaming_list(self.streaming)
            .queue_bound(self.queue_bound)
            .handler_bound(self.handler_bound)
            .linger(self.linger)
            .packing(self.packing)
            .seed(self.seed);
        if let Some(size) = self.page_size {
            builder = builder.page_size(size);
        }
        if let Some(persistence) = &self.persistence {
            builder = persistence.apply(builder);
        }
        if self.panics.is_on() || self.persistence.is_some() {
            let (panics, log) = (self.panics.clone(), Arc::clone(log));
            let persistence = self.persistence.clone();
            builder = builder.fail_points(move |point| match &persistence {
                Some(persistence) => persistence.at(point, || panics.at(point, &log)),
                None => panics.at(point, &log),
            });
        }
        let (panics, persistence, log) = (self.panics.clone(), self.persistence.clone(), Arc::clone(log));
        builder.on_error(move |error| {
            panics.report(error);
            if let Some(persistence) = &persistence {
                persistence.report(error, &log);
            }
        })
    }

    /// Applies everything.
    pub(crate) fn apply_all(&self, builder: InformerBuilder, log: &Arc<Log>) -> InformerBuilder {
        let coverage = &self.coverage;
        self.apply(builder, log)
            .scope(coverage.scope())
            .label_selector(coverage.selection.labels())
            .field_selector(coverage.selection.fields())
            .transform(coverage.transform.make(log))
    }
}
