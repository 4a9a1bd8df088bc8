//! LIST and GET: from the cache, or from the store where the delegation rule requires it or the cache is not initialized.

use std::sync::Arc;

use super::WatchCache;
use super::error::ReadError;
use super::filter::Filter;
use super::pages::PageStart;
use super::request::{ListRequest, ListResponse, RevisionOption, Scope};
use super::shared::Snapshot;
use crate::continue_token::{ContinueToken, TokenFormat};
use crate::delegate::{Consistency, ListOptions, ListSource};
use crate::storage::{Range, StorageError, Stored, Tree, scan};

/// The largest page read from the store while a selector leaves pages short.
const MAX_STORAGE_PAGE: usize = 10_000;

/// A list request with parsed options.
struct Query {
    filter: Filter,
    options: ListOptions,
    limit: usize,
    token: Option<ContinueToken>,
}

/// The objects of one page, before the response is built.
struct Scanned {
    items: Vec<Arc<Stored>>,
    /// Whether another object in scope, selected or not, follows the page.
    more: bool,
    /// The number of objects that follow, if known.
    remaining: Option<usize>,
}

impl WatchCache {
    /// Returns one object, or `None` if it does not exist.
    ///
    /// Reads from the store if no resource version is given, otherwise from the cache once it has reached that version.
    pub async fn get(
        &self,
        scope: &Scope,
        revision: RevisionOption,
    ) -> Result<Option<Arc<Stored>>, ReadError> {
        let filter = self.filter(scope, &Default::default(), &Default::default());
        let Some(key) = filter.single() else { return Ok(None) };
        if !self.cached() || revision == RevisionOption::Unset || !self.is_ready() {
            if let RevisionOption::At(requested) = revision {
                self.check_storage_revision(requested).await?;
            }
            return Ok(self.storage.get(key).await?);
        }
        if let RevisionOption::At(requested) = revision {
            self.shared.wait_for_revision(requested).await?;
        }
        Ok(self.shared.lock().tree.get(key).cloned())
    }

    /// Returns a list.
    pub async fn list(&self, request: &ListRequest) -> Result<ListResponse, ReadError> {
        let query = self.query(request)?;
        let consistency = query.options.consistency();
        if !self.cached() || query.options.source(self.shared.options.gates) == ListSource::Storage {
            return self.list_from_storage(&query, consistency).await;
        }
        if let Err(not_ready) = self.check_ready() {
            let small = query.limit > 0 && !query.filter.has_selectors();
            return if small { self.list_from_storage(&query, consistency).await } else { Err(not_ready) };
        }
        match self.snapshot(consistency).await? {
            Some(snapshot) => Ok(self.list_from_snapshot(&query, &snapshot, consistency)),
            None => self.list_from_storage(&query, consistency).await,
        }
    }

    fn list_from_snapshot(
        &self,
        query: &Query,
        snapshot: &Snapshot,
        consistency: Consistency,
    ) -> ListResponse {
        if let Some(key) = query.filter.single() {
            return query.finish(query.look_up(&snapshot.tree, key), snapshot.revision, TokenFormat::Cache);
        }
        // kube-apiserver has always ignored the limit of a list with `resourceVersion=0`, and clients rely on it.
        let limit = if consistency == Consistency::Any { 0 } else { query.limit };
        let page_start = query.page_start(query.start().unwrap_or_default());
        let counted = match (&query.token, query.filter.scope()) {
            (Some(_), _) => self.shared.lock().pages.count(snapshot.revision, &page_start),
            (None, Scope::All) => Some(snapshot.tree.len()),
            (None, _) => None,
        };
        let scanned = query.scan(&snapshot.tree, &page_start, limit, counted);
        if let (true, Some(last)) = (scanned.more, scanned.items.last()) {
            let next = PageStart { start: format!("{}\0", last.key), ..page_start };
            self.shared.lock().pages.remember(snapshot.revision, &snapshot.tree, next, scanned.remaining);
        }
        query.finish(scanned, snapshot.revision, TokenFormat::Cache)
    }

    fn query(&self, request: &ListRequest) -> Result<Query, ReadError> {
        let filter =
            self.filter(&request.scope, &request.labels, &request.fields).with_shards(&request.shards);
        let token = request.continue_token.as_deref().filter(|token| !token.is_empty());
        let token = token.map(ContinueToken::decode).transpose().map_err(ReadError::InvalidContinue)?;
        if token.is_some() && matches!(request.revision, RevisionOption::At(_)) {
            return Err(ReadError::ContinueWithVersion);
        }
        let options = ListOptions {
            revision: request.revision,
            revision_match: request.revision_match,
            limited: request.limit > 0,
            continue_at: token.as_ref().map(|token| token.revision),
            single: filter.single().is_some(),
        };
        Ok(Query { filter, options, limit: request.limit, token })
    }

    /// Returns the state to list, or `None` if the list must be read from the store.
    async fn snapshot(&self, consistency: Consistency) -> Result<Option<Snapshot>, ReadError> {
        match consistency {
            Consistency::Any => {}
            Consistency::NotOlderThan(revision) => self.shared.wait_for_revision(revision).await?,
            Consistency::Latest => {
                let current = self.storage.current_revision().await?;
                if self.shared.wait_for_revision(current).await.is_err() {
                    return Ok(None);
                }
            }
            Consistency::Exact(revision) => {
                self.shared.wait_for_revision(revision).await?;
                return Ok(self.snapshot_at(revision));
            }
        }
        self.shared.snapshot().map(Some)
    }

    /// Returns the state at a revision, if the cache still has it.
    fn snapshot_at(&self, revision: u64) -> Option<Snapshot> {
        let state_at = {
            let state = self.shared.lock();
            if let Some(tree) = state.pages.tree(revision) {
                return Some(Snapshot { tree, revision });
            }
            state.window.state_at(revision)?
        };
        Some(Snapshot { tree: state_at.tree(), revision })
    }

    /// Reads pages from the store until the limit is reached: a selector may leave a page short.
    async fn list_from_storage(
        &self,
        query: &Query,
        consistency: Consistency,
    ) -> Result<ListResponse, ReadError> {
        if let Consistency::NotOlderThan(requested) = consistency {
            self.check_storage_revision(requested).await?;
        }
        let at = if let Consistency::Exact(revision) = consistency { Some(revision) } else { None };
        let start = query.start().map(|start| format!("{}{start}", query.filter.prefix()));
        let mut range = Range { prefix: query.filter.prefix().to_owned(), start, at, limit: query.limit };
        if let Some(key) = query.filter.single() {
            range.start = Some(key.to_owned());
            return self.look_up_in_storage(query, range).await;
        }
        let mut items = Vec::new();
        loop {
            let page = self.storage.list(&range).await.map_err(|error| query.storage_error(error))?;
            let mut last = None;
            let mut unread = page.items.len() + page.remaining;
            for stored in page.items {
                unread -= 1;
                last = Some(Arc::clone(&stored.key));
                if query.filter.selects_in_scope(&stored) {
                    items.push(stored);
                }
                if query.is_full(&items) {
                    break;
                }
            }
            if unread == 0 || query.is_full(&items) {
                let scanned = Scanned { items, more: unread > 0, remaining: Some(unread) };
                return Ok(query.finish(scanned, page.revision, TokenFormat::Storage));
            }
            range.start = last.map(|key| format!("{key}\0"));
            range.at = Some(page.revision);
            range.limit = (range.limit * 2).min(MAX_STORAGE_PAGE);
        }
    }

    /// Reads one object, as the first of a range that starts at its key.
    async fn look_up_in_storage(&self, query: &Query, range: Range) -> Result<ListResponse, ReadError> {
        let first = Range { limit: 1, ..range };
        let page = self.storage.list(&first).await.map_err(|error| query.storage_error(error))?;
        let items = page.items.into_iter().filter(|stored| query.filter.selects(stored)).collect();
        Ok(query.finish(Scanned { items, more: false, remaining: None }, page.revision, TokenFormat::Storage))
    }

    pub(super) async fn check_storage_revision(&self, requested: u64) -> Result<(), ReadError> {
        let current = self.storage.current_revision().await?;
        if current >= requested {
            return Ok(());
        }
        Err(ReadError::TooLarge { requested, current, retry_after: None })
    }
}

impl Query {
    fn start(&self) -> Option<&str> {
        self.token.as_ref().map(|token| &*token.start)
    }

    fn is_full(&self, items: &[Arc<Stored>]) -> bool {
        self.limit > 0 && items.len() >= self.limit
    }

    /// Returns the start of the page whose first key, relative to the prefix, is `start`.
    fn page_start(&self, start: &str) -> PageStart {
        let prefix = self.filter.prefix().to_owned();
        PageStart { start: format!("{prefix}{start}"), prefix }
    }

    fn look_up(&self, tree: &Tree, key: &str) -> Scanned {
        let items = tree.get(key).filter(|stored| self.filter.selects(stored)).cloned().into_iter().collect();
        Scanned { items, more: false, remaining: None }
    }

    /// Collects a page. `counted` is the number of objects from its start on, if known.
    fn scan(&self, tree: &Tree, from: &PageStart, limit: usize, counted: Option<usize>) -> Scanned {
        let mut found = scan(tree, &from.prefix, &from.start);
        let selected = found.by_ref().filter(|stored| self.filter.selects_in_scope(stored));
        let most = if limit == 0 { usize::MAX } else { limit };
        let items: Vec<_> = selected.take(most).cloned().collect();
        let more = found.next().is_some();
        let remaining = (more && !self.filter.has_selectors())
            .then(|| counted.map_or_else(|| found.count() + 1, |counted| counted - items.len()));
        Scanned { items, more, remaining }
    }

    fn finish(&self, scanned: Scanned, revision: u64, format: TokenFormat) -> ListResponse {
        let Scanned { items, more, remaining } = scanned;
        let token = items.last().filter(|_| more).map(|last| {
            let last = last.key.strip_prefix(self.filter.prefix()).unwrap_or_default();
            ContinueToken::after(last, revision as i64).encode(format)
        });
        let known = token.is_some() && !self.filter.has_selectors();
        let remaining = remaining.filter(|_| known).map(|count| count as u64);
        let shards = Some(self.filter.shards()).filter(|shards| !shards.is_everything()).cloned();
        ListResponse { items, revision, continue_token: token, remaining, shards }
    }

    /// Converts an error of the store to the error of a list.
    fn storage_error(&self, error: StorageError) -> ReadError {
        match (error, &self.token) {
            (StorageError::Compacted { .. }, None) => ReadError::ListExpired,
            (StorageError::Compacted { .. }, Some(token)) => {
                ReadError::ContinueExpired { replacement: token.inconsistent().encode(TokenFormat::Storage) }
            }
            (StorageError::Future { current }, _) => {
                let requested = match self.options.consistency() {
                    Consistency::Exact(revision) => revision,
                    _ => current,
                };
                ReadError::TooLarge { requested, current, retry_after: None }
            }
            (other, _) => other.into(),
        }
    }
}
