//! What an informer is doing, now and as it changes.

use super::SharedInformer;
use crate::status::InformerStatus;
use futures_core::Stream;
use futures_util::{FutureExt, StreamExt, future::select_all, stream};
use tokio::sync::watch;

impl<T: 'static> SharedInformer<T> {
    /// What it is doing; of several namespaces, what most needs attention.
    pub fn status(&self) -> InformerStatus {
        self.core.status()
    }

    /// What each namespace is doing; `None` stands for all of them.
    pub fn namespace_statuses(&self) -> Vec<(Option<String>, InformerStatus)> {
        let namespace = |partition| self.core.partitions.namespace(partition).map(str::to_owned);
        let status = |partition: usize| self.core.partition_status(partition);
        self.core.partitions.all().map(|partition| (namespace(partition), status(partition))).collect()
    }

    /// What it is doing now, then whenever that changes: what a progress bar or a health endpoint follows.
    ///
    /// A reader that is slow skips what is no longer true. That the server was heard of while the informer is live
    /// is no change. The stream ends after [`InformerStatus::Stopped`]; it does not keep the informer alive.
    ///
    /// ```
    /// # use futures_util::StreamExt;
    /// # use kube_informer::{InformerStatus, Stop, testing::FakeSource};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let informer = FakeSource::new(kube_informer::kind_of::<k8s_openapi::api::core::v1::Pod>()).informer::<serde_json::Value>(|builder| builder);
    /// let mut changes = informer.status_changes();
    /// assert_eq!(changes.next().await, Some(InformerStatus::Starting));
    /// informer.start();
    /// while let Some(status) = changes.next().await {
    ///     println!("{status}");
    ///     if status.is_live() {
    ///         break;
    ///     }
    /// }
    /// # }
    /// ```
    pub fn status_changes(&self) -> impl Stream<Item = InformerStatus> + Send + Unpin + use<T> {
        let changes = Changes { partitions: self.core.statuses.clone(), told: None };
        let changes =
            stream::unfold(changes, async |mut changes| changes.next().await.map(|status| (status, changes)));
        Box::pin(changes.fuse())
    }
}

struct Changes {
    /// Those of the partitions that still run.
    partitions: Vec<watch::Receiver<InformerStatus>>,
    told: Option<InformerStatus>,
}

impl Changes {
    async fn next(&mut self) -> Option<InformerStatus> {
        loop {
            if self.told == Some(InformerStatus::Stopped) {
                return None;
            }
            // Seen before it is read, so that no change falls between the two.
            let status =
                InformerStatus::of_all(self.partitions.iter_mut().map(|one| one.borrow_and_update().clone()));
            let status = status.unwrap_or(InformerStatus::Stopped);
            if !self.told.as_ref().is_some_and(|told| told.is_like(&status)) {
                self.told = Some(status.clone());
                return Some(status);
            }
            let (changed, at, _) =
                select_all(self.partitions.iter_mut().map(|one| one.changed().boxed())).await;
            if changed.is_err() {
                self.partitions.remove(at);
            }
        }
    }
}
