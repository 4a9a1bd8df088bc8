//! Requests to fetch objects again whose content cannot be read from its file.

use crate::scope::{Partition, Partitions};
use tokio::sync::Notify;

/// Tells the reflectors of an informer to list again. A request is kept until the reflector of the partition takes it.
pub(crate) struct Refetch {
    partitions: Partitions,
    requests: Vec<Notify>,
}

impl Refetch {
    pub(crate) fn new(partitions: Partitions) -> Self {
        let requests = partitions.all().map(|_| Notify::new()).collect();
        Self { partitions, requests }
    }

    /// Requests the objects of a namespace.
    pub(crate) fn request(&self, namespace: Option<&str>) {
        let request =
            self.partitions.of_namespace(namespace).and_then(|partition| self.requests.get(partition));
        if let Some(request) = request {
            request.notify_one();
        }
    }

    /// Resolves when objects of a partition are requested.
    pub(crate) async fn requested(&self, partition: Partition) {
        match self.requests.get(partition) {
            Some(request) => request.notified().await,
            None => std::future::pending().await,
        }
    }
}
