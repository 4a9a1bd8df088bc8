//! The etcd v3 backend: objects outlive the server, and several servers may share one store.
//!
//! Every write is one transaction that compares the revision of its key, stores the object, and writes one key of our own
//! (`keys.rs`). The revision of that key is the newest of this store, so that reads need no progress notification from etcd.

mod changes;
mod connection;
mod feed;
mod keys;
mod options;

use std::sync::{Arc, Weak};
use std::time::Duration;

use etcd_client::{Compare, CompareOp, DeleteOptions, KeyValue, Txn, TxnOp};
use futures_core::future::BoxFuture;
use futures_util::stream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

pub use options::EtcdError;
pub use options::EtcdOptions;

use self::changes::{Batch, Changes};
use self::connection::{Connection, Identity, pairs, value, written_at};
use self::feed::{Command, Feed};
use self::keys::Keys;
use super::document::Document;
use super::stored::{Change, Stored};
use super::{ChangeStream, Follower, Page, Range, Storage, StorageError};

/// How long a write waits for our followers to receive it. The write then completes anyway: reads wait for its revision.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(2);

/// The most commands queued for the feed.
const COMMANDS: usize = 64;

/// A store in etcd, under its own prefix.
///
/// 1. The revision of a write is etcd's. Other users of the same etcd take revisions too, so the revisions of this store have gaps.
/// 2. One watch of etcd feeds all followers, so that they receive the writes of all servers in the same order. A write completes after
///    our followers have received it, or after two seconds.
/// 3. A broken watch is resumed where it broke, unnoticed by followers. If history was compacted meanwhile, or etcd lost its data,
///    followers receive `lost` and then `reset` with the whole state.
pub struct EtcdStorage {
    connection: Connection,
    /// The identity of the store, and the newest revision that our followers have received.
    delivered: watch::Receiver<Identity>,
    commands: mpsc::Sender<Command>,
    feed: AbortHandle,
}

impl EtcdStorage {
    /// Connects to etcd, and creates the store if it does not exist. Must be called in a tokio runtime, in which a task runs until the
    /// store is dropped.
    pub async fn connect(options: EtcdOptions) -> Result<Self, EtcdError> {
        options.check()?;
        let client = options.client().await?;
        let connection = Connection::new(&client, Keys::new(options.prefix.clone()), options.timeout);
        let unusable = |source| EtcdError::Storage { endpoints: options.endpoints.join(","), source };
        if !options.share_with_kubernetes && connection.holds("/registry/").await.map_err(unusable)? {
            return Err(EtcdError::Occupied);
        }
        let identity = connection.identify().await.map_err(unusable)?;
        let (sender, delivered) = watch::channel(identity.clone());
        let (commands, receiver) = mpsc::channel(COMMANDS);
        let feed = Feed::new(connection.clone(), &identity, sender, receiver, options.compaction);
        let feed = tokio::spawn(feed.run()).abort_handle();
        Ok(Self { connection, delivered, commands, feed })
    }

    /// Executes a put or delete if the comparison holds, and returns its revision.
    async fn write(&self, key: &str, compare: Compare, op: TxnOp) -> Result<u64, WriteError> {
        let touch = TxnOp::put(self.connection.keys.sequence(), "", None);
        let look = TxnOp::get(self.connection.keys.full(key), None);
        let txn = Txn::new().when([compare]).and_then([op, touch]).or_else([look]);
        let response = self.connection.txn(txn).await.map_err(WriteError::Failed)?;
        if !response.succeeded() {
            let found = pairs(&response).into_iter().flatten().next();
            return Err(found.map_or(WriteError::Absent, WriteError::Differs));
        }
        let revision = written_at(&response).map_err(WriteError::Failed)?;
        self.wait_for_delivery(revision).await;
        Ok(revision)
    }

    /// Waits until our followers have received a revision.
    async fn wait_for_delivery(&self, revision: u64) {
        let mut delivered = self.delivered.clone();
        let reached = delivered.wait_for(|delivered| delivered.revision >= revision);
        // An error means that the feed has ended, so that there are no followers to wait for.
        let _ = tokio::time::timeout(DELIVERY_TIMEOUT, reached).await;
    }

    /// Converts the error of an update or delete.
    fn storage_error(&self, error: WriteError) -> StorageError {
        match error {
            WriteError::Absent => StorageError::NotFound,
            WriteError::Failed(error) => error,
            WriteError::Differs(pair) => match self.connection.stored(&pair) {
                Some(stored) => StorageError::Conflict(stored),
                None => {
                    StorageError::internal("the value of this key in etcd is not an object of this server")
                }
            },
        }
    }

    /// The comparison that a key has the expected revision.
    fn at(&self, key: &str, expected: u64) -> Compare {
        Compare::mod_revision(self.connection.keys.full(key), CompareOp::Equal, expected as i64)
    }

    fn put(&self, key: &str, document: &Document) -> TxnOp {
        TxnOp::put(self.connection.keys.full(key), value(document), None)
    }

    /// Sends a command to the feed and waits until it is done.
    async fn command<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, StorageError> {
        let (done, response) = oneshot::channel();
        let closed = || StorageError::internal("the connection to etcd is closed");
        self.commands.send(command(done)).await.map_err(|_| closed())?;
        response.await.map_err(|_| closed())
    }
}

/// The error of a transaction that did not write.
enum WriteError {
    /// The key does not exist.
    Absent,
    /// The comparison failed; this is the current pair.
    Differs(KeyValue),
    Failed(StorageError),
}

impl Drop for EtcdStorage {
    fn drop(&mut self) {
        self.feed.abort();
    }
}

impl std::fmt::Debug for EtcdStorage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EtcdStorage(at {})", self.delivered.borrow().revision)
    }
}

impl Storage for EtcdStorage {
    fn current_revision(&self) -> BoxFuture<'_, Result<u64, StorageError>> {
        Box::pin(self.connection.current_revision())
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Stored>>, StorageError>> {
        Box::pin(self.connection.get(key))
    }

    fn list<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Result<Page, StorageError>> {
        Box::pin(self.connection.list(range))
    }

    fn create<'a>(
        &'a self,
        key: &'a str,
        document: Document,
    ) -> BoxFuture<'a, Result<Arc<Stored>, StorageError>> {
        Box::pin(async move {
            let absent = Compare::version(self.connection.keys.full(key), CompareOp::Equal, 0);
            match self.write(key, absent, self.put(key, &document)).await {
                Ok(revision) => Ok(Arc::new(Stored { key: key.into(), revision, document })),
                Err(error) => Err(match self.storage_error(error) {
                    StorageError::Conflict(stored) => StorageError::Exists(stored),
                    other => other,
                }),
            }
        })
    }

    fn update<'a>(
        &'a self,
        key: &'a str,
        expected: u64,
        document: Document,
    ) -> BoxFuture<'a, Result<Arc<Stored>, StorageError>> {
        Box::pin(async move {
            match self.write(key, self.at(key, expected), self.put(key, &document)).await {
                Ok(revision) => Ok(Arc::new(Stored { key: key.into(), revision, document })),
                Err(error) => Err(self.storage_error(error)),
            }
        })
    }

    fn delete<'a>(&'a self, key: &'a str, expected: u64) -> BoxFuture<'a, Result<Arc<Stored>, StorageError>> {
        Box::pin(async move {
            // Reads the last content first: if its revision is not the expected one, the transaction fails.
            let last = self.connection.get(key).await?.ok_or(StorageError::NotFound)?;
            let remove = TxnOp::delete(self.connection.keys.full(key), Some(DeleteOptions::new()));
            match self.write(key, self.at(key, expected), remove).await {
                Ok(revision) => Ok(Arc::new(last.at(revision))),
                Err(error) => Err(self.storage_error(error)),
            }
        })
    }

    fn watch<'a>(&'a self, prefix: &'a str, after: u64) -> BoxFuture<'a, Result<ChangeStream, StorageError>> {
        Box::pin(async move {
            self.connection.check_kept(after).await?;
            let epoch = self.delivered.borrow().epoch.clone();
            let changes = Changes::new(self.connection.clone(), epoch, prefix, after);
            let state = Some((changes, Vec::new().into_iter()));
            Ok(Box::pin(stream::unfold(state, next_change)) as ChangeStream)
        })
    }

    fn follow<'a>(
        &'a self,
        prefix: &'a str,
        follower: Weak<dyn Follower>,
    ) -> BoxFuture<'a, Result<(), StorageError>> {
        let prefix = prefix.to_owned();
        Box::pin(async move { self.command(|done| Command::Follow { prefix, follower, done }).await? })
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            let current = self.connection.current_revision().await?;
            if revision > current {
                return Err(StorageError::Future { current });
            }
            self.connection.compact(revision).await?;
            self.command(|done| Command::Compacted { revision, done }).await
        })
    }

    fn size(&self) -> BoxFuture<'_, Result<u64, StorageError>> {
        Box::pin(self.connection.size())
    }
}

type Reading = (Changes, std::vec::IntoIter<Arc<Change>>);

/// Returns the next change; an error is the last item.
async fn next_change(state: Option<Reading>) -> Option<(Result<Arc<Change>, StorageError>, Option<Reading>)> {
    let (mut changes, mut batch) = state?;
    loop {
        if let Some(change) = batch.next() {
            return Some((Ok(change), Some((changes, batch))));
        }
        match changes.next().await {
            Ok(Batch { changes, .. }) => batch = changes.into_iter(),
            Err(error) => return Some((Err(error), None)),
        }
    }
}
