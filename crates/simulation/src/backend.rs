//! The server of a world: a model, or the embedded API server behind a simulated network.

use crate::{
    cluster::Cluster,
    faults::{Condition, RequestFault, StreamFault},
    history::Write,
    model::ModelServer,
    selection::Part,
    subject::Settings,
    truth::{ClientId, Truth},
};
use kube_informer::{ListWatch, ObjectKey, Origin};
use std::sync::Arc;

/// The server of a world. Cloning gives another handle.
#[derive(Clone)]
pub(crate) enum Backend {
    /// A model in memory, which responds without any encoding.
    Model(Arc<ModelServer>),
    /// The embedded API server, through the real client.
    Cluster(Arc<Cluster>),
}

impl Backend {
    pub(crate) fn truth(&self) -> &Arc<Truth> {
        match self {
            Self::Model(model) => &model.truth,
            Self::Cluster(cluster) => cluster.truth(),
        }
    }

    /// Settings without selectors that the server does not support.
    pub(crate) fn supported(&self, mut settings: Settings) -> Settings {
        if let Self::Cluster(cluster) = self
            && !cluster.has_selectable_field()
        {
            let coverage = &mut settings.coverage;
            coverage.selection = coverage.selection.without_shade();
        }
        settings
    }

    /// A new client, for a part of the collection.
    pub(crate) fn client(&self, origin: &Arc<Origin>, part: Part) -> (ClientId, Arc<dyn ListWatch>) {
        match self {
            Self::Model(model) => model.client(part),
            Self::Cluster(cluster) => cluster.client(origin, part),
        }
    }

    /// Whether a client has a watch that delivers changes, as far as the server knows.
    pub(crate) fn is_watched(&self, client: ClientId) -> bool {
        match self {
            Self::Model(model) => model.lock().is_watched(client),
            Self::Cluster(cluster) => cluster.network().is_watched(client),
        }
    }

    pub(crate) async fn put(&self, key: &ObjectKey, color: u64, invalid: bool) -> Option<Arc<Write>> {
        match self {
            Self::Model(model) => model.change(|state| state.put(key, color, invalid)),
            Self::Cluster(cluster) => cluster.put(key, color, invalid).await,
        }
    }

    pub(crate) async fn delete(&self, key: &ObjectKey) -> Option<Arc<Write>> {
        match self {
            Self::Model(model) => model.change(|state| state.delete(key)),
            Self::Cluster(cluster) => cluster.delete(key).await,
        }
    }

    /// Writes objects of another resource.
    pub(crate) async fn advance(&self, by: u64) {
        match self {
            Self::Model(model) => model.change(|state| state.advance(by)),
            Self::Cluster(cluster) => cluster.advance(by).await,
        }
    }

    /// Compacts the history of the server, or a part of it.
    pub(crate) async fn compact(&self, pick: u64) {
        match self {
            Self::Model(model) => model.change(|state| state.compact()),
            Self::Cluster(cluster) => cluster.compact(pick).await,
        }
    }

    /// Restores the collection as it was some versions ago.
    pub(crate) async fn restore(&self, back: u64) {
        match self {
            Self::Model(model) => model.change(|state| state.restore(back)),
            Self::Cluster(cluster) => cluster.restore(back).await,
        }
    }

    /// Restarts the server. A model resets its connections.
    pub(crate) async fn restart(&self, pick: u64) {
        match self {
            Self::Model(model) => model.change(|state| state.inject(StreamFault::Break, 0)),
            Self::Cluster(cluster) => cluster.restart(pick).await,
        }
    }

    /// Injects a fault into one open response, or into all of them.
    pub(crate) fn inject(&self, fault: StreamFault, pick: u64) {
        match self {
            Self::Model(model) => model.change(|state| state.inject(fault, pick)),
            Self::Cluster(cluster) => cluster.network().inject(fault, pick),
        }
    }

    /// Arms a fault for the next request that it applies to.
    pub(crate) fn arm(&self, fault: RequestFault) {
        match self {
            // The model has no headers, and the embedded server no malformed objects.
            Self::Model(_) if fault == RequestFault::StrangeHeaders => {}
            Self::Model(model) => model.change(|state| state.faults().arm(fault)),
            Self::Cluster(_) if matches!(fault, RequestFault::MalformedItem { .. }) => {}
            Self::Cluster(cluster) => cluster.network().faults(|faults| faults.arm(fault)),
        }
    }

    pub(crate) async fn set(&self, condition: Condition, on: bool) {
        match self {
            Self::Model(model) => model.change(|state| state.faults().set(condition, on)),
            Self::Cluster(cluster) => cluster.set(condition, on).await,
        }
    }

    /// Ends all faults. Streams that are broken or stalled stay so.
    pub(crate) async fn clear_faults(&self) {
        match self {
            Self::Model(model) => model.change(|state| {
                state.faults().clear();
                state.faults().set(Condition::EagerBookmarks, true);
            }),
            Self::Cluster(cluster) => cluster.clear_faults().await,
        }
    }

    /// Resets all connections, also stalled ones and those of requests that got no response.
    pub(crate) fn reset_connections(&self) {
        match self {
            Self::Model(model) => model.change(|state| state.reset_connections()),
            Self::Cluster(cluster) => cluster.network().reset_connections(),
        }
    }

    /// Checks that the server lists the newest state of the history. Call it after convergence.
    pub(crate) async fn check(&self) {
        if let Self::Cluster(cluster) = self {
            cluster.check().await;
        }
    }

    /// Ends the time without faults.
    pub(crate) fn resume(&self) {
        if let Self::Model(model) = self {
            model.change(|state| {
                state.faults().set(Condition::EagerBookmarks, false);
                state.inject(StreamFault::Bookmark, 0);
            });
        }
    }

    pub(crate) fn shut_down(&self) {
        if let Self::Cluster(cluster) = self {
            cluster.shut_down();
        }
    }
}
