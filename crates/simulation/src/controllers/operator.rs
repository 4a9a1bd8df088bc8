//! The operator under test: an account outside the cluster, children, and a status for each site.

use super::{
    process::Process,
    settings::{Naming, Settings},
    site::{SLOT, Site, SiteStatus, child},
    totals::Fault,
    truth::Truth,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{Index, Lister, Object, ObjectKey, SharedInformer, Uid};
use kube_informer_controller::{Action, BoxError, Context, WriteError, child_name};
use kube_informer_wire::sync::lock;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

/// The operator in one process. Cloning is a reference count.
#[derive(Clone)]
pub(super) struct Operator(Arc<Inner>);

struct Inner {
    process: Arc<Process>,
    truth: Arc<Truth>,
    settings: Settings,
    children: Lister<ConfigMap>,
    by_site: Index<Uid>,
    state: Mutex<State>,
}

struct State {
    rng: fastrand::Rng,
    /// Number of children that got a unique name.
    created: u64,
    /// Whether reconciles fail and hang at times.
    faulty: bool,
}

impl Operator {
    pub(super) fn new(
        process: &Arc<Process>,
        truth: &Arc<Truth>,
        children: &SharedInformer<ConfigMap>,
        rng: fastrand::Rng,
        faulty: bool,
    ) -> Self {
        let by_site = children.index_controller().expect("an index of an informer that has not started");
        Self(Arc::new(Inner {
            process: Arc::clone(process),
            truth: Arc::clone(truth),
            settings: truth.settings,
            children: children.lister(),
            by_site,
            state: Mutex::new(State { rng, created: 0, faulty }),
        }))
    }

    /// Reconciles and cleanups do not fail by themselves any more.
    pub(super) fn heal(&self) {
        lock(&self.0.state).faulty = false;
    }

    pub(super) async fn reconcile(self, site: Object<Site>, context: Context) -> Result<Action, BoxError> {
        let process = Arc::clone(&self.0.process);
        process.run(self.reconcile_site(site, context)).await
    }

    pub(super) async fn clean_up(self, site: Object<Site>, _: Context) -> Result<Action, BoxError> {
        let process = Arc::clone(&self.0.process);
        process.run(self.clean_up_site(site)).await
    }

    /// Reconciles a key whose site does not exist.
    pub(super) async fn reconcile_absent(self, key: ObjectKey) -> Result<Action, BoxError> {
        let process = Arc::clone(&self.0.process);
        let absent = async {
            let running = self.0.truth.begin(&self.0.process, key.name(), "", "reconciles the deleted")?;
            self.pause().await?;
            running.end();
            Ok(Action::done())
        };
        process.run(absent).await
    }

    async fn reconcile_site(&self, site: Object<Site>, context: Context) -> Result<Action, BoxError> {
        let Inner { process, truth, settings, .. } = &*self.0;
        let (name, uid) = (site.name(), uid(&site));
        let running = truth.begin(process, name, &uid, "reconciles")?;
        let reconciled = async {
            let spec = site.decode()?.spec.clone();
            self.pause().await?;
            if settings.finalizer {
                truth.set_account(process, name, &uid, &spec.value)?;
                self.pause().await?;
            }
            self.reconcile_children(&site, &context, spec.children, &spec.value).await?;
            self.pause().await?;
            let status = SiteStatus { observed_generation: site.generation(), children: spec.children };
            context.update_status(&site, &status).await?;
            Ok::<_, BoxError>(Action::done())
        };
        let outcome = reconciled.await;
        running.end();
        self.report(name, &outcome);
        outcome
    }

    async fn reconcile_children(
        &self,
        site: &Object<Site>,
        context: &Context,
        wanted: u32,
        value: &str,
    ) -> Result<(), BoxError> {
        let Inner { children, by_site, .. } = &*self.0;
        let mut found = BTreeMap::new();
        for child in children.by(by_site, &site.uid())? {
            let slot: u32 = child.labels().get(SLOT).and_then(|slot| slot.parse().ok()).unwrap_or(u32::MAX);
            if slot >= wanted {
                context.delete(&child).await?;
                self.pause().await?;
            } else {
                found.insert(slot, child);
            }
        }
        for slot in 0..wanted {
            match found.get(&slot) {
                None => self.create(site, context, slot, value).await?,
                Some(known) if value_of(known)? != value => {
                    self.change(site, context, known, slot, value).await?
                }
                Some(_) => continue,
            }
            self.pause().await?;
        }
        Ok(())
    }

    async fn create(
        &self,
        site: &Object<Site>,
        context: &Context,
        slot: u32,
        value: &str,
    ) -> Result<(), BoxError> {
        match self.0.settings.naming {
            Naming::Derived => {
                let name = child_name(site, &slot.to_string());
                context.apply(&child(site, name, slot, value)?).await?;
            }
            Naming::Unique => {
                let nth = {
                    let mut state = lock(&self.0.state);
                    state.created += 1;
                    state.created
                };
                let name = format!("{}-{slot}-{}-{nth}", site.name(), self.0.process.name);
                context.create(&child(site, name, slot, value)?).await?;
            }
        }
        Ok(())
    }

    async fn change(
        &self,
        site: &Object<Site>,
        context: &Context,
        known: &Object<ConfigMap>,
        slot: u32,
        value: &str,
    ) -> Result<(), BoxError> {
        match self.0.settings.naming {
            Naming::Derived => {
                context.apply(&child(site, known.name().to_owned(), slot, value)?).await?;
            }
            Naming::Unique => {
                context.patch(known, |child| child["data"]["value"] = value.into()).await?;
            }
        }
        Ok(())
    }

    async fn clean_up_site(&self, site: Object<Site>) -> Result<Action, BoxError> {
        let Inner { process, truth, .. } = &*self.0;
        let (name, uid) = (site.name(), uid(&site));
        let running = truth.begin(process, name, &uid, "cleans up")?;
        truth.begin_cleanup(process, name, &uid);
        let cleaned_up = async {
            self.pause().await?;
            let is_ready = lock(&self.0.state).rng.u8(0..8) > 0;
            if !is_ready {
                return Ok::<_, BoxError>(Action::requeue_after(Duration::from_millis(100)));
            }
            truth.remove_account(process, &uid)?;
            self.pause().await?;
            Ok(Action::done())
        };
        let outcome = cleaned_up.await;
        running.end();
        self.report(name, &outcome);
        outcome
    }

    fn report(&self, site: &str, outcome: &Result<Action, BoxError>) {
        let Inner { process, truth, .. } = &*self.0;
        match outcome {
            Ok(_) => truth.log.note(format_args!("{} is done with {site}", process.name)),
            Err(error) => {
                let kind = error
                    .downcast_ref::<WriteError>()
                    .map_or("", |error| if error.is_conflict() { "conflict: " } else { "" });
                truth.log.note(format_args!("{} fails on {site}: {kind}{error}", process.name));
                truth.record_fault(Fault::ReconcileFailed);
            }
        }
    }

    /// Something that takes time, and may fail.
    async fn pause(&self) -> Result<(), BoxError> {
        let (time, fails) = {
            let State { rng, faulty, .. } = &mut *lock(&self.0.state);
            let time = match rng.u8(0..32) {
                0..16 => None,
                roll if *faulty && roll >= 32 - self.0.settings.slowness => Some(rng.u64(1_000..12_000)),
                _ => Some(rng.u64(0..40)),
            };
            (time, *faulty && rng.u8(0..64) == 0)
        };
        match time {
            Some(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
            None => tokio::task::yield_now().await,
        }
        if fails { Err("the operator fails".into()) } else { Ok(()) }
    }
}

fn uid(site: &Object<Site>) -> String {
    site.uid().text().unwrap_or_default()
}

fn value_of(child: &Object<ConfigMap>) -> Result<String, BoxError> {
    let child = child.decode()?;
    Ok(child.data.as_ref().and_then(|data| data.get("value")).cloned().unwrap_or_default())
}
