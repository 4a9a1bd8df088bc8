//! Health of a manager's parts.

use crate::{leader::Candidacy, phase::Phase, run::Shared, shards::Table};
use k8s_openapi::api::coordination::v1::Lease;
use kube::core::DynamicObject;
use kube_informer::{InformerFactory, SharedInformer};
use std::{
    fmt::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

/// How long an informer may fail before it counts as not ready: a restart of the server is no reason to take traffic away.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time beyond its deadline after which a reconcile counts as blocking its thread.
const OVERDUE: Duration = Duration::from_secs(60);

/// Says why something is not ready.
pub(super) type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The parts of a manager.
pub(super) struct Health {
    factory: InformerFactory,
    controllers: Vec<Arc<Shared>>,
    checks: Vec<(String, Check)>,
    shards: Option<(Arc<Table>, SharedInformer<Lease>)>,
    election: Option<Arc<Candidacy>>,
}

/// The results of checks, one a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) ok: bool,
    pub(super) text: String,
}

impl Report {
    fn new() -> Self {
        Self { ok: true, text: String::new() }
    }

    fn line(&mut self, name: &str, result: Result<String, String>) {
        self.ok &= result.is_ok();
        let (mark, state) = match result {
            Ok(state) => ('+', state),
            Err(why) => ('-', why),
        };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "[{mark}] {name}: {state}");
    }
}

impl Health {
    pub(super) fn new(factory: InformerFactory) -> Self {
        Self { factory, controllers: Vec::new(), checks: Vec::new(), shards: None, election: None }
    }

    pub(super) fn add_controller(&mut self, controller: Arc<Shared>) {
        self.controllers.push(controller);
    }

    pub(super) fn add_check(&mut self, name: String, check: Check) {
        self.checks.push((name, check));
    }

    pub(super) fn add_shards(&mut self, shards: Arc<Table>, leases: SharedInformer<Lease>) {
        self.shards = Some((shards, leases));
    }

    pub(super) fn add_election(&mut self, candidacy: Arc<Candidacy>) {
        self.election = Some(candidacy);
    }

    /// The informers of the factory, and those of controllers that are not from it.
    fn caches(&self) -> Vec<SharedInformer<DynamicObject>> {
        let mut caches = self.factory.informers();
        for cache in self.controllers.iter().flat_map(|controller| &controller.caches) {
            if !caches.iter().any(|known| known.is_same(cache)) {
                caches.push(cache.cast());
            }
        }
        caches
    }

    /// Whether the program can go on without a restart.
    pub(super) fn live(&self) -> Report {
        let mut report = Report::new();
        for controller in &self.controllers {
            let limit = controller.settings.deadline.saturating_add(OVERDUE);
            let stuck = controller.in_flight.longest().filter(|(_, since)| *since > limit);
            let result = match stuck {
                Some((key, since)) => Err(format!("the reconcile of {key} blocks its thread for {since:?}")),
                None if controller.phase.get() == Phase::Blocked => Err(Phase::Blocked.to_string()),
                None => Ok("ok".to_owned()),
            };
            report.line(&format!("controller {}", controller.settings.name), result);
        }
        report
    }

    /// Whether the program can do its work, or is ready to take over.
    pub(super) fn ready(&self) -> Report {
        let mut report = Report::new();
        for informer in self.caches() {
            let ready = informer.ready(PATIENCE).map(|()| informer.status().to_string());
            report.line(&format!("cache {}", informer.kind()), ready.map_err(|why| why.status.to_string()));
        }
        for controller in &self.controllers {
            let phase = controller.phase.get();
            let result = match phase {
                Phase::Waiting => match &self.election {
                    Some(candidacy) => candidacy.report(),
                    None => Ok(phase.to_string()),
                },
                Phase::Running => Ok(phase.to_string()),
                Phase::Syncing
                | Phase::CheckingCaches
                | Phase::Draining
                | Phase::Blocked
                | Phase::Stopped => Err(phase.to_string()),
            };
            report.line(&format!("controller {}", controller.settings.name), result);
        }
        if let Some((shards, leases)) = &self.shards {
            let ready =
                leases.ready(PATIENCE).map_err(|why| format!("the cache of Leases is {}", why.status));
            report.line(&format!("shards {}", shards.name()), ready.map(|()| shards.report()));
        }
        for (name, check) in &self.checks {
            let result = catch_unwind(AssertUnwindSafe(|| check()));
            let result = result.unwrap_or_else(|_| Err("the check panicked".to_owned()));
            report.line(name, result.map(|()| "ok".to_owned()));
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{leader::LeaderElection, run::Settings};
    use kube_embedded_apiserver::{ApiServer, Fault, FaultRule};
    use kube_informer::{ObjectKey, WorkQueue};

    #[tokio::test(start_paused = true)]
    async fn a_reconcile_far_beyond_its_deadline_is_not_healthy() {
        let client = ApiServer::builder().in_process().await.unwrap().client();
        let settings = Settings { deadline: Duration::from_secs(10), ..Settings::named("c".to_owned()) };
        let shared = Shared::new(settings, WorkQueue::named("c"), Vec::new(), client.clone());
        let mut health = Health::new(InformerFactory::new(client));
        health.add_controller(Arc::clone(&shared));
        let flight = shared.in_flight.enter(&ObjectKey::namespaced("ns", "stuck"));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(health.live(), Report { ok: true, text: "[+] controller c: ok\n".to_owned() });
        tokio::time::advance(Duration::from_secs(11)).await;
        let report = health.live();
        assert!(!report.ok && report.text.contains("ns/stuck"), "{}", report.text);
        drop(flight);
        assert!(health.live().ok);
        shared.phase.set(Phase::Blocked);
        let report = health.live();
        assert!(!report.ok && report.text.contains("block their threads"), "{}", report.text);
    }

    #[tokio::test(start_paused = true)]
    async fn a_standby_that_cannot_acquire_its_lease_says_so_and_is_not_ready_after_a_lease_duration() {
        let server = ApiServer::builder().in_process().await.unwrap();
        let forbidden = FaultRule::new(Fault::Forbidden).resource("leases").times(1_000_000);
        server.faults().add(forbidden);
        let client = server.client();
        let shared =
            Shared::new(Settings::named("c".to_owned()), WorkQueue::named("c"), Vec::new(), client.clone());
        let elector = LeaderElection::new("default", "lease").elector(client.clone()).unwrap();
        let mut health = Health::new(InformerFactory::new(client));
        health.add_controller(shared);
        health.add_election(Arc::clone(elector.candidacy()));
        assert_eq!(health.ready().text, "[+] controller c: waiting to lead\n");
        let task = tokio::spawn(elector.run(std::future::pending::<()>(), |_| std::future::pending::<()>()));
        tokio::time::sleep(Duration::from_secs(10)).await;
        let report = health.ready();
        let expected = "[+] controller c: waiting to lead; cannot acquire default/lease: ";
        assert!(report.ok && report.text.starts_with(expected), "{}", report.text);
        assert!(report.text.ends_with("(403)\n"), "{}", report.text);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert!(!health.ready().ok, "a leader that ends would not be replaced");
        server.faults().clear();
        task.abort();
    }

    #[tokio::test]
    async fn a_check_that_panics_is_not_ready() {
        let client = ApiServer::builder().in_process().await.unwrap().client();
        let mut health = Health::new(InformerFactory::new(client));
        health.add_check("fine".to_owned(), Arc::new(|| Ok(())));
        assert!(health.ready().ok);
        health.add_check("broken".to_owned(), Arc::new(|| panic!("oh")));
        let report = health.ready();
        assert_eq!(
            (report.ok, report.text.as_str()),
            (false, "[+] fine: ok\n[-] broken: the check panicked\n")
        );
    }
}
