//! The status of an informer and its changes.

use super::SharedInformer;
use crate::{persist::PersistStatus, status::InformerStatus, supervision::Board};
use futures_core::Stream;
use futures_util::{FutureExt, StreamExt, future::select_all, stream};
use tokio::sync::watch;

impl<T: 'static> SharedInformer<T> {
    /// The current status; of several namespaces, the one that most needs attention.
    pub fn status(&self) -> InformerStatus {
        self.core.status()
    }

    /// The status of each namespace; `None` stands for all of them.
    pub fn namespace_statuses(&self) -> Vec<(Option<String>, InformerStatus)> {
        let namespace = |partition| self.core.partitions.namespace(partition).map(str::to_owned);
        let status = |partition: usize| self.core.partition_status(partition);
        self.core.partitions.all().map(|partition| (namespace(partition), status(partition))).collect()
    }

    /// Whether the cache is being saved for the next process.
    pub fn persist_status(&self) -> PersistStatus {
        self.core.persisted.borrow().clone()
    }

    /// The current status, then every change of it: for a progress bar or a health endpoint.
    ///
    /// A slow reader skips statuses that are outdated. A sign of life of the server while the informer is live is no change.
    /// The stream ends after [`InformerStatus::Stopped`]; it does not keep the informer alive.
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
    #[must_use = "streams do nothing unless polled"]
    pub fn status_changes(&self) -> impl Stream<Item = InformerStatus> + Send + Unpin + use<T> {
        let (board, partitions) = (self.core.tasks.supervision().board(), self.core.statuses.clone());
        let open = vec![true; partitions.len()];
        let changes = Changes { board, partitions, open, last: None };
        let changes =
            stream::unfold(changes, async |mut changes| changes.next().await.map(|status| (status, changes)));
        Box::pin(changes.fuse())
    }
}

struct Changes {
    board: watch::Receiver<Board>,
    partitions: Vec<watch::Receiver<InformerStatus>>,
    /// Which partitions can still change.
    open: Vec<bool>,
    last: Option<InformerStatus>,
}

impl Changes {
    async fn next(&mut self) -> Option<InformerStatus> {
        loop {
            if self.last == Some(InformerStatus::Stopped) {
                return None;
            }
            let status = self.current();
            if !self.last.as_ref().is_some_and(|last| last.is_like(&status)) {
                self.last = Some(status.clone());
                return Some(status);
            }
            self.changed().await;
        }
    }

    /// The current status. It counts as seen before it is read, so that no change falls between the two.
    fn current(&mut self) -> InformerStatus {
        let board = self.board.borrow_and_update().status();
        let own =
            InformerStatus::of_all(self.partitions.iter_mut().map(|one| one.borrow_and_update().clone()));
        board.or(own).unwrap_or(InformerStatus::Stopped)
    }

    /// Resolves when something may have changed.
    async fn changed(&mut self) {
        let open = self.partitions.iter_mut().zip(&mut self.open).filter(|(_, open)| **open);
        let partitions = open.map(|(one, open)| async { *open = one.changed().await.is_ok() }.boxed());
        // The board says that the informer has stopped before it goes.
        let board = async {
            while self.board.changed().await.is_err() {
                std::future::pending().await
            }
        };
        select_all(partitions.chain([board.boxed()])).await;
    }
}
