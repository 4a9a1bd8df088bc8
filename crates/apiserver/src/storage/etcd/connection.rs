//! Requests to etcd, with timeouts and with errors converted to [`StorageError`].

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use etcd_client::{
    Client, Compare, CompareOp, Error, GetOptions, GetResponse, KeyValue, KvClient, MaintenanceClient, Txn,
    TxnOp, TxnOpResponse, TxnResponse, WatchClient, WatchOptions, WatchStream,
};

use super::keys::Keys;
use crate::storage::document::Document;
use crate::storage::stored::Stored;
use crate::storage::{Page, Range, StorageError};

/// The most objects per request, to keep responses small.
const PAGE: usize = 500;

/// A client of one store in etcd. Cloning is cheap.
#[derive(Clone)]
pub(super) struct Connection {
    kv: KvClient,
    watch: WatchClient,
    maintenance: MaintenanceClient,
    pub(super) keys: Keys,
    timeout: Duration,
}

/// The identity of a store and its newest revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) epoch: Vec<u8>,
    /// The revision of the newest write.
    pub(super) revision: u64,
}

impl Connection {
    pub(super) fn new(client: &Client, keys: Keys, timeout: Duration) -> Self {
        Self {
            kv: client
                .kv_client()
                .max_decoding_message_size(usize::MAX)
                .max_encoding_message_size(usize::MAX),
            watch: client.watch_client().max_decoding_message_size(usize::MAX),
            maintenance: client.maintenance_client(),
            keys,
            timeout,
        }
    }

    /// Awaits a request, up to the timeout.
    async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, StorageError> {
        match tokio::time::timeout(self.timeout, request).await {
            Ok(response) => response.map_err(storage_error),
            Err(_) => Err(StorageError::internal(format!(
                "etcd did not respond within {:?}: check that it runs and has a leader",
                self.timeout
            ))),
        }
    }

    pub(super) async fn txn(&self, txn: Txn) -> Result<TxnResponse, StorageError> {
        let mut kv = self.kv.clone();
        self.within(kv.txn(txn)).await
    }

    async fn read(&self, key: Vec<u8>, options: Option<GetOptions>) -> Result<GetResponse, StorageError> {
        let mut kv = self.kv.clone();
        self.within(kv.get(key, options)).await
    }

    /// Returns the revision of the newest write of this store.
    pub(super) async fn current_revision(&self) -> Result<u64, StorageError> {
        let response = self.read(self.keys.sequence().into(), None).await?;
        Ok(response.kvs().first().map_or(0, revision_of))
    }

    pub(super) async fn get(&self, key: &str) -> Result<Option<Arc<Stored>>, StorageError> {
        let response = self.read(self.keys.full(key).into(), None).await?;
        Ok(response.kvs().first().and_then(|pair| self.stored(pair)))
    }

    /// Returns whether any key has this prefix.
    pub(super) async fn holds(&self, prefix: &str) -> Result<bool, StorageError> {
        let options = GetOptions::new().with_prefix().with_count_only();
        Ok(self.read(prefix.into(), Some(options)).await?.count() > 0)
    }

    /// Returns the identity of the store, and creates the store if it does not exist.
    pub(super) async fn identify(&self) -> Result<Identity, StorageError> {
        let (epoch, sequence) = (self.keys.epoch(), self.keys.sequence());
        let new = uuid::Uuid::new_v4().to_string();
        let make = [TxnOp::put(epoch.clone(), new.clone(), None), TxnOp::put(sequence.clone(), "", None)];
        let look = [TxnOp::get(epoch.clone(), None), TxnOp::get(sequence, None)];
        let absent = Compare::version(epoch, CompareOp::Equal, 0);
        let response = self.txn(Txn::new().when([absent]).and_then(make).or_else(look)).await?;
        if response.succeeded() {
            let revision = written_at(&response)?;
            if revision == 2 {
                // A new etcd: compacting its first revision makes requests at a made-up small resource version fail.
                self.compact(revision).await?;
            }
            return Ok(Identity { epoch: new.into_bytes(), revision });
        }
        let found = pairs(&response);
        let [Some(epoch), Some(sequence)] =
            [found.first(), found.get(1)].map(|pair| pair.and_then(Option::as_ref))
        else {
            return Err(StorageError::internal("the keys of this store in etcd are damaged"));
        };
        Ok(Identity { epoch: epoch.value().to_vec(), revision: revision_of(sequence) })
    }

    /// Reads a range in pages, all at the revision of the first page.
    pub(super) async fn list(&self, range: &Range) -> Result<Page, StorageError> {
        let mut start = self.keys.full(range.start.as_deref().unwrap_or_default().max(&range.prefix));
        let end = self.keys.end(&range.prefix);
        if start >= end {
            start.clone_from(&end); // an empty range, read only for its revision
        }
        let limit = if range.limit == 0 { usize::MAX } else { range.limit };
        let options = |items: usize| {
            let options = GetOptions::new().with_range(end.clone());
            options.with_limit((limit - items).min(PAGE) as i64)
        };
        let first = options(0).with_revision(range.at.unwrap_or_default() as i64);
        let ops = [TxnOp::get(self.keys.sequence(), None), TxnOp::get(start.clone(), Some(first))];
        let response = self.read_at(range.at, self.txn(Txn::new().and_then(ops)).await).await?;
        let responses = response.op_responses();
        let [TxnOpResponse::Get(sequence), TxnOpResponse::Get(page)] = responses.as_slice() else {
            return Err(StorageError::internal("etcd sent an unexpected response"));
        };
        let current = sequence.kvs().first().map_or(0, revision_of);
        if range.at.is_some_and(|at| at > current) {
            return Err(StorageError::Future { current });
        }
        // The revision of the read may be newer than the newest write of this store, but the content is the same.
        let read_at = range.at.unwrap_or_else(|| header(response.header()));
        let (mut items, mut seen) = (Vec::new(), page.kvs().len());
        items.extend(page.kvs().iter().filter_map(|pair| self.stored(pair)));
        let (total, mut more) = (page.count() as usize, page.more());
        let mut last = page.kvs().last().map(|pair| pair.key().to_vec());
        while let (true, Some(key)) = (more && seen < limit, last.take()) {
            let next = [key, vec![0]].concat();
            let page = self.read(next, Some(options(seen).with_revision(read_at as i64))).await;
            let page = self.read_at(Some(read_at), page).await?;
            items.extend(page.kvs().iter().filter_map(|pair| self.stored(pair)));
            seen += page.kvs().len();
            more = page.more();
            last = page.kvs().last().map(|pair| pair.key().to_vec());
        }
        Ok(Page { items, remaining: total.saturating_sub(seen), revision: range.at.unwrap_or(current) })
    }

    /// Fills in the revisions in the errors of a read at an older revision.
    async fn read_at<T>(
        &self,
        at: Option<u64>,
        response: Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        match response {
            Err(StorageError::Compacted { .. }) => {
                Err(StorageError::Compacted { oldest: self.oldest().await?.max(at.unwrap_or_default() + 1) })
            }
            Err(StorageError::Future { .. }) => {
                Err(StorageError::Future { current: self.current_revision().await? })
            }
            other => other,
        }
    }

    /// Fails if a revision is compacted.
    pub(super) async fn check_kept(&self, revision: u64) -> Result<(), StorageError> {
        let options = GetOptions::new().with_revision(revision.max(1) as i64).with_count_only();
        let response = self.read(self.keys.sequence().into(), Some(options)).await;
        match self.read_at(Some(revision), response).await {
            Ok(_) | Err(StorageError::Future { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the smallest readable revision. etcd reports it only to a watch that starts before it.
    async fn oldest(&self) -> Result<u64, StorageError> {
        let mut stream =
            self.open_watch(self.keys.epoch().into(), WatchOptions::new().with_start_revision(1)).await?;
        loop {
            match self.within(stream.message()).await? {
                Some(response) if response.compact_revision() > 0 => {
                    return Ok(response.compact_revision() as u64);
                }
                Some(response) if response.created() => {}
                _ => return Ok(0),
            }
        }
    }

    pub(super) async fn open_watch(
        &self,
        key: Vec<u8>,
        options: WatchOptions,
    ) -> Result<WatchStream, StorageError> {
        let mut watch = self.watch.clone();
        self.within(watch.watch(key, Some(options))).await
    }

    /// Compacts the store; succeeds if the revision is already compacted.
    pub(super) async fn compact(&self, revision: u64) -> Result<(), StorageError> {
        let mut kv = self.kv.clone();
        match self.within(kv.compact(revision as i64, None)).await {
            Ok(_) | Err(StorageError::Compacted { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn size(&self) -> Result<u64, StorageError> {
        let mut maintenance = self.maintenance.clone();
        Ok(self.within(maintenance.status()).await?.db_size().unsigned_abs())
    }

    /// Decodes an object; `None` if the key or the value was not written by this server.
    pub(super) fn stored(&self, pair: &KeyValue) -> Option<Arc<Stored>> {
        let key = self.keys.short(pair.key())?;
        let Some(document) = Document::unpack(pair.value()) else {
            tracing::error!(key, "ignoring a key under our etcd prefix whose value is not an object");
            return None;
        };
        Some(Arc::new(Stored { key: key.into(), revision: revision_of(pair), document }))
    }
}

pub(super) fn revision_of(pair: &KeyValue) -> u64 {
    pair.mod_revision().unsigned_abs()
}

fn header(header: Option<&etcd_client::ResponseHeader>) -> u64 {
    header.map_or(0, |header| header.revision().unsigned_abs())
}

/// Returns the revision of a transaction that wrote.
pub(super) fn written_at(response: &TxnResponse) -> Result<u64, StorageError> {
    match header(response.header()) {
        0 => Err(StorageError::internal("the response of etcd has no revision")),
        revision => Ok(revision),
    }
}

/// Returns the first pair of each read in a transaction.
pub(super) fn pairs(response: &TxnResponse) -> Vec<Option<KeyValue>> {
    let first = |response: TxnOpResponse| match response {
        TxnOpResponse::Get(mut read) => read.take_kvs().into_iter().next(),
        _ => None,
    };
    response.op_responses().into_iter().map(first).collect()
}

/// Converts an error of etcd. The caller fills in the revisions of [`StorageError::Compacted`] and [`StorageError::Future`].
fn storage_error(error: Error) -> StorageError {
    let message = if let Error::GRpcStatus(status) = &error {
        let text = status.message();
        if text.contains("required revision has been compacted") {
            return StorageError::Compacted { oldest: 0 };
        }
        if text.contains("required revision is a future revision") {
            return StorageError::Future { current: 0 };
        }
        format!("etcd: {text}")
    } else {
        format!("etcd: {error}")
    };
    StorageError::Internal { message, source: Some(Arc::new(error)) }
}

/// Serializes a document to the value of a key.
pub(super) fn value(document: &Document) -> Vec<u8> {
    Bytes::from(document.pack()).into()
}
