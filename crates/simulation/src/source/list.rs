//! Answering a LIST, page by page.

use super::{Server, Source, URL, broken, refusal, version_asked};
use crate::{
    history::Written,
    totals::Fault,
    trouble::{Asked, Condition, PROBE, Trap},
    truth::{ClientId, Gap},
};
use futures_util::{StreamExt, stream};
use kube_informer::{ListMeta, ListOptions, ListPart, ListStream, ListWatchError, ObjectKey, Unreadable};
use std::{collections::VecDeque, sync::Arc};

/// A page on its way: it shows one state, even if the server has moved on.
struct Page {
    source: Arc<Source>,
    client: ClientId,
    epoch: u32,
    version: u64,
    parts: VecDeque<ListPart>,
    break_after: Option<usize>,
    /// It breaks because it is no JSON.
    malformed: bool,
    last: bool,
    compact_after: bool,
    failed: bool,
}

pub(super) async fn answer(
    source: Arc<Source>,
    client: ClientId,
    namespace: Option<String>,
    options: ListOptions,
) -> Result<ListStream, ListWatchError> {
    let trap = source.arrive(asked(&options)).await?;
    let page = source.lock().page(Arc::clone(&source), client, namespace.as_deref(), &options, trap)?;
    Ok(stream::unfold(page, |mut page| async { Some((page.next().await?, page)) }).boxed())
}

fn asked(options: &ListOptions) -> Asked {
    let version = version_asked(options.resource_version.as_deref());
    Asked {
        write: false,
        watch: false,
        streaming: false,
        version,
        continued: options.continue_token.is_some(),
        probe: options.limit == Some(PROBE),
    }
}

impl Server {
    fn page(
        &mut self,
        source: Arc<Source>,
        client: ClientId,
        namespace: Option<&str>,
        options: &ListOptions,
        trap: Option<Trap>,
    ) -> Result<Page, ListWatchError> {
        let (version, after) = match &options.continue_token {
            Some(token) => self.resume(token)?,
            None => (self.choose(version_asked(options.resource_version.as_deref()), trap)?, None),
        };
        let mut objects = self.objects(version, namespace);
        objects.retain(|write| after.as_ref().is_none_or(|after| write.key > *after));
        let limit = options.limit.map_or(usize::MAX, |limit| limit as usize);
        let rest = objects.len().saturating_sub(limit);
        objects.truncate(limit);
        let epoch = self.truth.lock().history.epoch();
        let token = objects.last().filter(|_| rest > 0).map(|last| format!("{epoch}:{version}:{}", last.key));
        let last = token.is_none() && options.limit != Some(PROBE);
        self.log
            .note(format_args!("client {client} lists @{version}, {} objects, {rest} left", objects.len()));
        let meta = ListMeta {
            resource_version: Some(version.into()),
            continue_token: token,
            remaining: (rest > 0).then_some(rest as u64),
        };
        let origin = self.truth.origin();
        let items = objects
            .iter()
            .map(|write| write.as_listed(origin).map_or_else(ListPart::Unreadable, ListPart::Item));
        let mut parts: VecDeque<ListPart> = items.collect();
        if options.continue_token.is_none() && options.limit != Some(PROBE) {
            self.truth.lock().begins_to_list(client);
        }
        if let Some(Trap::UnreadableItem { at, named }) = trap
            && !objects.is_empty()
        {
            let at = at % objects.len();
            parts[at] = ListPart::Unreadable(self.unreadable(client, &objects, at, named));
        }
        let place = self.rng.usize(0..=parts.len());
        parts.insert(place, ListPart::Meta(meta));
        let break_after = match trap {
            Some(Trap::BreakAfter(after) | Trap::Malformed(after)) => Some(after % (parts.len() + 1)),
            _ => None,
        };
        let compact_after = trap == Some(Trap::CompactAfterList);
        let malformed = matches!(trap, Some(Trap::Malformed(_)));
        let failed = false;
        Ok(Page {
            source,
            client,
            epoch,
            version,
            parts,
            break_after,
            malformed,
            last,
            compact_after,
            failed,
        })
    }

    /// An item that nobody can read, but for its name at best.
    fn unreadable(&self, client: ClientId, page: &[Arc<Written>], at: usize, named: bool) -> Unreadable {
        self.log.strike(Fault::UnreadableItem);
        let key = |at: usize| page.get(at).map(|write| write.key.clone());
        let mut item = Unreadable::new("garbled");
        let gap = if named {
            item.key = key(at);
            Gap::One(page[at].key.clone())
        } else {
            // Where a page ends, the next item to be read may be anywhere.
            Gap::Between(at.checked_sub(1).and_then(key), key(at + 1))
        };
        self.truth.lock().cannot_read(client, gap);
        item
    }

    /// Where a page starts: the state its list shows, and the key before it.
    fn resume(&mut self, token: &str) -> Result<(u64, Option<ObjectKey>), ListWatchError> {
        let mut fields = token.splitn(3, ':');
        let mut number = || fields.next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        let (epoch, version) = (number(), number());
        let (now, floor) = {
            let known = self.truth.lock();
            (known.history.epoch(), known.history.floor)
        };
        if self.has(Condition::PagesExpire) || version < floor || epoch != u64::from(now) {
            self.log.strike(Fault::PageExpired);
            return Err(refusal(410, "Expired", 0));
        }
        Ok((version, fields.next().and_then(|key| key.parse().ok())))
    }
}

impl Page {
    async fn next(&mut self) -> Option<Result<ListPart, ListWatchError>> {
        if self.failed {
            return None;
        }
        if self.source.lock().rng.u8(0..4) == 0 {
            tokio::task::yield_now().await;
        }
        let mut server = self.source.lock();
        let restored = self.epoch != server.truth.lock().history.epoch();
        if restored || self.break_after == Some(0) {
            self.failed = true;
            if self.malformed {
                server.log.strike(Fault::Malformed);
                let message = "simulated".into();
                return Some(Err(ListWatchError::Malformed { message, url: URL.into() }));
            }
            server.log.strike(Fault::Broken);
            return Some(Err(broken()));
        }
        self.break_after = self.break_after.map(|left| left - 1);
        let part = self.parts.pop_front();
        if part.is_none() && self.last {
            server.truth.lock().listed(self.client, self.epoch, self.version);
            if self.compact_after && !server.truth.lock().must_wait(1) {
                server.log.strike(Fault::CompactedBeforeWatch);
                server.advance(1);
                server.compact();
            }
        }
        part.map(Ok)
    }
}
