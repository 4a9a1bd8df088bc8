//! Where the objects of a world live: with a model, or with the real server behind a network of bytes.

use crate::{
    cluster::Cluster,
    history::Written,
    source::Source,
    trouble::{Blow, Condition, Trap},
    truth::{ClientId, Truth},
};
use kube_informer::{ListWatch, ObjectKey, Origin};
use std::sync::Arc;

/// Whoever answers the informers of a world. Cloning gives another handle.
#[derive(Clone)]
pub(crate) enum Place {
    /// A model in memory, which answers without any encoding in between.
    Model(Arc<Source>),
    /// The embedded API server, through the real client.
    Cluster(Arc<Cluster>),
}

impl Place {
    pub(crate) fn truth(&self) -> &Arc<Truth> {
        match self {
            Self::Model(source) => &source.truth,
            Self::Cluster(cluster) => cluster.truth(),
        }
    }

    /// A new client, for one namespace or for all.
    pub(crate) fn client(
        &self,
        origin: &Arc<Origin>,
        namespace: Option<&str>,
    ) -> (ClientId, Arc<dyn ListWatch>) {
        match self {
            Self::Model(source) => source.client(namespace),
            Self::Cluster(cluster) => cluster.client(origin, namespace),
        }
    }

    /// Whether a client has a watch that shows it changes, as far as anybody can tell.
    pub(crate) fn is_watched(&self, client: ClientId) -> bool {
        match self {
            Self::Model(source) => source.lock().is_watched(client),
            Self::Cluster(cluster) => cluster.network().is_watched(client),
        }
    }

    pub(crate) async fn put(&self, key: &ObjectKey, color: u64, odd: bool) -> Option<Arc<Written>> {
        match self {
            Self::Model(source) => source.change(|server| server.put(key, color, odd)),
            Self::Cluster(cluster) => cluster.put(key, color, odd).await,
        }
    }

    pub(crate) async fn delete(&self, key: &ObjectKey) -> Option<Arc<Written>> {
        match self {
            Self::Model(source) => source.change(|server| server.delete(key)),
            Self::Cluster(cluster) => cluster.delete(key).await,
        }
    }

    /// Something else is written.
    pub(crate) async fn advance(&self, by: u64) {
        match self {
            Self::Model(source) => source.change(|server| server.advance(by)),
            Self::Cluster(cluster) => cluster.advance(by).await,
        }
    }

    /// The server forgets its past, or a part of it.
    pub(crate) async fn compact(&self, pick: u64) {
        match self {
            Self::Model(source) => source.change(|server| server.compact()),
            Self::Cluster(cluster) => cluster.compact(pick).await,
        }
    }

    /// The collection goes back by some versions.
    pub(crate) async fn restore(&self, back: u64) {
        match self {
            Self::Model(source) => source.change(|server| server.restore(back)),
            Self::Cluster(cluster) => cluster.restore(back).await,
        }
    }

    /// The server goes down and comes back. A model breaks its connections.
    pub(crate) async fn restart(&self, pick: u64) {
        match self {
            Self::Model(source) => source.change(|server| server.strike(Blow::Break, 0)),
            Self::Cluster(cluster) => cluster.restart(pick).await,
        }
    }

    /// Something befalls one connection, or all of them.
    pub(crate) fn strike(&self, blow: Blow, pick: u64) {
        match self {
            Self::Model(source) => source.change(|server| server.strike(blow, pick)),
            Self::Cluster(cluster) => cluster.network().strike(blow, pick),
        }
    }

    pub(crate) fn lay(&self, trap: Trap) {
        match self {
            Self::Model(source) => source.change(|server| server.trouble().lay(trap)),
            // What a server makes of its objects can be read.
            Self::Cluster(_) if matches!(trap, Trap::UnreadableItem { .. }) => {}
            Self::Cluster(cluster) => cluster.network().trouble(|trouble| trouble.lay(trap)),
        }
    }

    /// A condition begins or ends.
    pub(crate) async fn set(&self, condition: Condition, on: bool) {
        match self {
            Self::Model(source) => source.change(|server| server.trouble().set(condition, on)),
            Self::Cluster(cluster) => cluster.set(condition, on).await,
        }
    }

    /// Everything that is in the way ends. Connections that are dead stay dead.
    pub(crate) async fn heal(&self) {
        match self {
            Self::Model(source) => source.change(|server| {
                server.trouble().heal();
                server.trouble().set(Condition::EagerBookmarks, true);
            }),
            Self::Cluster(cluster) => cluster.heal().await,
        }
    }

    /// Everything rests: what the server itself says is what is known of it.
    pub(crate) async fn check(&self) {
        if let Self::Cluster(cluster) = self {
            cluster.check().await;
        }
    }

    /// The rest is over.
    pub(crate) fn go_on(&self) {
        if let Self::Model(source) = self {
            source.change(|server| {
                server.trouble().set(Condition::EagerBookmarks, false);
                server.strike(Blow::Bookmark, 0);
            });
        }
    }

    /// Nobody needs it any more.
    pub(crate) fn end(&self) {
        if let Self::Cluster(cluster) = self {
            cluster.end();
        }
    }
}
