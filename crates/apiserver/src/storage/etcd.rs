//! The backend on a real etcd v3: objects that outlive the server, and several servers over one store.
//!
//! Every write is one transaction that compares the revision of its key, stores the object, and touches one key of our own
//! (`keys.rs`): the revision of that key is the newest of this store, so that nobody has to ask etcd how far its watch has come.

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

/// How long a write waits for its own server to hear of it. Beyond that it is answered all the same: reads then wait for its version.
const HEARD: Duration = Duration::from_secs(2);

/// Requests to the feed that may wait.
const COMMANDS: usize = 64;

/// A store in etcd, under a prefix of its own.
///
/// 1. The revision of a write is etcd's. Other users of the same etcd take revisions as well, so that ours have gaps.
/// 2. Followers are told by one watch of etcd: writes of other servers come in the same order as our own. A write is answered after our
///    followers know of it, or after two seconds.
/// 3. A broken connection is opened again where it broke, and nobody notices. If history was compacted meanwhile, or etcd came back
///    without its data, followers are told that the past is lost, and then the whole state.
pub struct EtcdStorage {
    connection: Connection,
    /// Which store this is, and up to where our followers were told.
    delivered: watch::Receiver<Identity>,
    commands: mpsc::Sender<Command>,
    feed: AbortHandle,
}

impl EtcdStorage {
    /// Connects, and finds the store or makes one. Must be called inside a tokio runtime, in which a task goes on until the store is
    /// dropped.
    pub async fn connect(options: EtcdOptions) -> Result<Self, EtcdError> {
        options.check()?;
        let client = options.client().await?;
        let connection = Connection::new(&client, Keys::new(options.prefix.clone()), options.timeout);
        let unusable = |source| EtcdError::Storage { endpoints: options.endpoints.join(","), source };
        if !options.beside_kubernetes && connection.holds("/registry/").await.map_err(unusable)? {
            return Err(EtcdError::Occupied);
        }
        let identity = connection.identify().await.map_err(unusable)?;
        let (told, delivered) = watch::channel(identity.clone());
        let (commands, asked) = mpsc::channel(COMMANDS);
        let feed = Feed::new(connection.clone(), &identity, told, asked, options.compaction);
        let feed = tokio::spawn(feed.run()).abort_handle();
        Ok(Self { connection, delivered, commands, feed })
    }

    /// Stores or removes: the operation, if the comparison holds; otherwise what is there instead.
    async fn write(&self, key: &str, compare: Compare, op: TxnOp) -> Result<u64, Refusal> {
        let touch = TxnOp::put(self.connection.keys.sequence(), "", None);
        let look = TxnOp::get(self.connection.keys.full(key), None);
        let txn = Txn::new().when([compare]).and_then([op, touch]).or_else([look]);
        let answer = self.connection.txn(txn).await.map_err(Refusal::Failed)?;
        if !answer.succeeded() {
            let found = pairs(&answer).into_iter().flatten().next();
            return Err(found.map_or(Refusal::Absent, Refusal::Holds));
        }
        let revision = written_at(&answer).map_err(Refusal::Failed)?;
        self.heard(revision).await;
        Ok(revision)
    }

    /// Waits until our followers know of a revision.
    async fn heard(&self, revision: u64) {
        let mut delivered = self.delivered.clone();
        let reached = delivered.wait_for(|delivered| delivered.revision >= revision);
        // An error means that the feed has ended with the store; nobody is left to wait for.
        let _ = tokio::time::timeout(HEARD, reached).await;
    }

    /// What a refused write means for who expected a version.
    fn refused(&self, refusal: Refusal) -> StorageError {
        match refusal {
            Refusal::Absent => StorageError::NotFound,
            Refusal::Failed(error) => error,
            Refusal::Holds(pair) => match self.connection.stored(&pair) {
                Some(stored) => StorageError::Conflict(stored),
                None => StorageError::Internal("etcd holds something else under this key".to_owned()),
            },
        }
    }

    fn at(&self, key: &str, expected: u64) -> Compare {
        Compare::mod_revision(self.connection.keys.full(key), CompareOp::Equal, expected as i64)
    }

    fn put(&self, key: &str, document: &Document) -> TxnOp {
        TxnOp::put(self.connection.keys.full(key), value(document), None)
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, StorageError> {
        let (done, answer) = oneshot::channel();
        let gone = || StorageError::Internal("the connection to etcd is closed".to_owned());
        self.commands.send(command(done)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }
}

/// Why a transaction did not write.
enum Refusal {
    /// Nothing is there.
    Absent,
    /// This is there.
    Holds(KeyValue),
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
                Err(refusal) => Err(match self.refused(refusal) {
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
                Err(refusal) => Err(self.refused(refusal)),
            }
        })
    }

    fn delete<'a>(&'a self, key: &'a str, expected: u64) -> BoxFuture<'a, Result<Arc<Stored>, StorageError>> {
        Box::pin(async move {
            // Its last content is read first: it is at the expected version, or the transaction fails.
            let last = self.connection.get(key).await?.ok_or(StorageError::NotFound)?;
            let remove = TxnOp::delete(self.connection.keys.full(key), Some(DeleteOptions::new()));
            match self.write(key, self.at(key, expected), remove).await {
                Ok(revision) => Ok(Arc::new(last.at(revision))),
                Err(refusal) => Err(self.refused(refusal)),
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
        Box::pin(async move { self.ask(|done| Command::Follow { prefix, follower, done }).await? })
    }

    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async move {
            let current = self.connection.current_revision().await?;
            if revision > current {
                return Err(StorageError::Future { current });
            }
            self.connection.compact(revision).await?;
            self.ask(|done| Command::Compacted { revision, done }).await
        })
    }

    fn size(&self) -> BoxFuture<'_, Result<u64, StorageError>> {
        Box::pin(self.connection.size())
    }
}

type Reading = (Changes, std::vec::IntoIter<Arc<Change>>);

/// One change after the other; an error is the last item.
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
