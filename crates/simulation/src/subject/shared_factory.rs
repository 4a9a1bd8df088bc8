//! A factory that several informers of a world share.

use super::{
    settings::{Coverage, Settings},
    transform::TransformKind,
};
use crate::{
    backend::Backend,
    log::Log,
    selection::{Part, Selection},
    totals::Fault,
    truth::ClientId,
};
use kube_informer::{InformerFactory, SharedInformer, Stop, Transform};
use kube_informer_wire::sync::lock;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard};

/// A factory, and the informers that it has created. It checks that the factory creates one informer for each coverage,
/// with one client for each of its partitions, and passes it the selectors that were requested.
pub(crate) struct SharedFactory {
    factory: InformerFactory,
    /// The settings of all its informers, apart from their coverage.
    settings: Settings,
    /// The clients that the factory has created and no informer has yet.
    created: Arc<Mutex<Vec<(ClientId, Part)>>>,
    members: Mutex<Vec<Member>>,
    /// One transform of each kind: informers with different functions are not shared.
    transforms: Mutex<Vec<(TransformKind, Transform)>>,
    backend: Backend,
    log: Arc<Log>,
}

/// An informer of the factory.
struct Member {
    coverage: Coverage,
    clients: Vec<ClientId>,
    users: usize,
}

impl SharedFactory {
    pub(crate) fn new(settings: Settings, backend: &Backend, log: &Arc<Log>) -> Arc<Self> {
        log.note(format_args!("a factory is created with {settings:?}"));
        let created: Arc<Mutex<Vec<(ClientId, Part)>>> = Arc::default();
        let (clients, source) = (Arc::clone(&created), backend.clone());
        let factory = InformerFactory::from_sources(move |origin, options, namespace| {
            source.truth().track_origin(origin);
            let selection = Selection::of(&options.label_selector, &options.field_selector);
            let part = Part::new(namespace, selection);
            let (id, client) = source.client(origin, part.clone());
            lock(&clients).push((id, part));
            client
        });
        let (configured, same_log) = (settings.clone(), Arc::clone(log));
        let factory = factory.configure(move |builder| configured.apply(builder, &same_log)).build();
        Arc::new(Self {
            factory,
            settings,
            created,
            members: Mutex::default(),
            transforms: Mutex::default(),
            backend: backend.clone(),
            log: Arc::clone(log),
        })
    }

    /// Settings of a new informer: sometimes those of one that the factory has.
    pub(crate) fn settings(&self, settings: Settings, pick: u64) -> Settings {
        let members = self.members();
        let same = members.get((pick / 8) as usize % members.len().max(1)).filter(|_| pick.is_multiple_of(2));
        let coverage = same.map_or(settings.coverage, |member| member.coverage.clone());
        self.settings.clone().with_coverage(coverage)
    }

    /// The informer for a coverage, and its clients.
    pub(super) fn informer(&self, coverage: &Coverage) -> (SharedInformer<Value>, Vec<ClientId>) {
        let transform = self.transform(coverage.transform);
        let kind = self.backend.truth().origin().kind().clone();
        let informer = self.factory.of_kind(kind, |options| coverage.options(options, transform));
        let created = std::mem::take(&mut *lock(&self.created));
        let mut members = self.members();
        if let Some(member) = members.iter_mut().find(|member| member.coverage == *coverage) {
            if !created.is_empty() {
                self.log.fail(format_args!("a factory does not share its informer of {coverage:?}"));
            }
            member.users += 1;
            self.log.record_fault(Fault::Shared);
            return (informer, member.clients.clone());
        }
        let parts =
            coverage.partitions().into_iter().map(|namespace| Part::new(namespace, coverage.selection));
        if !created.iter().map(|(_, part)| part.clone()).eq(parts) {
            self.log.fail(format_args!("a factory creates {created:?} for an informer of {coverage:?}"));
        }
        let clients: Vec<ClientId> = created.into_iter().map(|(client, _)| client).collect();
        members.push(Member { coverage: coverage.clone(), clients: clients.clone(), users: 1 });
        (informer, clients)
    }

    fn transform(&self, kind: TransformKind) -> Transform {
        let mut transforms = lock(&self.transforms);
        if let Some((_, transform)) = transforms.iter().find(|(made, _)| *made == kind) {
            return transform.clone();
        }
        let transform = kind.make(&self.log);
        transforms.push((kind, transform.clone()));
        transform
    }

    /// Starts all its informers.
    pub(super) fn start(&self) {
        self.factory.start();
    }

    /// A user of an informer leaves. Returns whether it was the last one, which then has to stop the informer.
    pub(super) fn release(&self, coverage: &Coverage) -> bool {
        let mut members = self.members();
        let Some(at) = members.iter().position(|member| member.coverage == *coverage) else { return true };
        members[at].users -= 1;
        let last = members[at].users == 0;
        if last {
            members.swap_remove(at);
        }
        last
    }

    /// Stops the factory with all its informers.
    pub(crate) async fn shut_down(&self, stop: Stop) {
        self.factory.shutdown_with(stop).await;
    }

    /// Checks that no informer runs. Call it when all were stopped.
    pub(crate) fn check_stopped(&self) {
        let running = self.factory.informers().iter().filter(|informer| !informer.is_stopped()).count();
        if running > 0 {
            self.log.fail(format_args!("{running} informers of a factory run after all were stopped"));
        }
    }

    fn members(&self) -> MutexGuard<'_, Vec<Member>> {
        lock(&self.members)
    }
}
