//! Responses to LIST requests, page by page.

use super::{ModelServer, ModelState, URL, broken, error_response, requested_version};
use crate::{
    faults::{Condition, PROBE, RequestFault, RequestInfo},
    history::Write,
    retry_after::RetryAfter,
    selection::Part,
    totals::Fault,
    truth::{ClientId, KeyRange},
};
use futures_util::{StreamExt, stream};
use kube_informer::{ListMeta, ListOptions, ListPart, ListStream, ListWatchError, Malformed, ObjectKey};
use std::{collections::VecDeque, sync::Arc};

/// A page in flight. It shows one state, even if the collection changes meanwhile.
struct Page {
    server: Arc<ModelServer>,
    client: ClientId,
    epoch: u32,
    version: u64,
    parts: VecDeque<ListPart>,
    break_after: Option<usize>,
    /// It fails because it is not JSON, and not because the connection is reset.
    malformed: bool,
    /// The last page.
    last: bool,
    compact_after: bool,
    failed: bool,
}

pub(super) async fn respond(
    server: Arc<ModelServer>,
    client: ClientId,
    part: Part,
    options: ListOptions,
) -> Result<ListStream, ListWatchError> {
    let fault = server.intercept(client, request_info(&options)).await?;
    // A page that expires may delete an object, which watches have to send.
    let page = server.change(|state| state.page(Arc::clone(&server), client, &part, &options, fault))?;
    Ok(stream::unfold(page, |mut page| async { Some((page.next().await?, page)) }).boxed())
}

fn request_info(options: &ListOptions) -> RequestInfo {
    let version = requested_version(options.resource_version.as_deref());
    RequestInfo {
        write: false,
        watch: false,
        streaming: false,
        version,
        continued: options.continue_token.is_some(),
        probe: options.limit == Some(PROBE),
    }
}

impl ModelState {
    fn page(
        &mut self,
        server: Arc<ModelServer>,
        client: ClientId,
        part: &Part,
        options: &ListOptions,
        fault: Option<RequestFault>,
    ) -> Result<Page, ListWatchError> {
        let (version, after) = match &options.continue_token {
            Some(token) => self.resume(token, part)?,
            None => {
                let requested = requested_version(options.resource_version.as_deref());
                (self.choose_version(requested, fault)?, None)
            }
        };
        let mut objects = self.objects(version, part);
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
        if options.continue_token.is_none() && options.limit != Some(PROBE) {
            self.truth.lock().starts_list(client);
        }
        let mut parts = self.items(client, &objects, fault);
        let meta_at = self.rng.usize(0..=parts.len());
        parts.insert(meta_at, ListPart::Meta(meta));
        let break_after = match fault {
            Some(RequestFault::BreakAfter(after) | RequestFault::MalformedList(after)) => {
                Some(after % (parts.len() + 1))
            }
            _ => None,
        };
        Ok(Page {
            server,
            client,
            epoch,
            version,
            parts,
            break_after,
            malformed: matches!(fault, Some(RequestFault::MalformedList(_))),
            last,
            compact_after: fault == Some(RequestFault::CompactAfterList),
            failed: false,
        })
    }

    /// The items of a page. The fault may make one of them malformed.
    fn items(
        &self,
        client: ClientId,
        objects: &[Arc<Write>],
        fault: Option<RequestFault>,
    ) -> VecDeque<ListPart> {
        let origin = self.truth.origin();
        let item =
            |write: &Arc<Write>| write.as_listed(origin).map_or_else(ListPart::Malformed, ListPart::Item);
        let mut items: VecDeque<ListPart> = objects.iter().map(item).collect();
        if let Some(RequestFault::MalformedItem { at, with_key }) = fault
            && !objects.is_empty()
        {
            let at = at % objects.len();
            items[at] = ListPart::Malformed(self.malformed_item(client, objects, at, with_key));
        }
        items
    }

    /// Makes an item of a page malformed, with or without its key.
    fn malformed_item(&self, client: ClientId, page: &[Arc<Write>], at: usize, with_key: bool) -> Malformed {
        self.log.record_fault(Fault::MalformedItem);
        let key = |at: usize| page.get(at).map(|write| write.key.clone());
        let mut item = Malformed::new("malformed");
        let range = if with_key {
            item.key = key(at);
            KeyRange::One(page[at].key.clone())
        } else {
            // At the end of a page, the next valid item may have any key.
            KeyRange::Between(at.checked_sub(1).and_then(key), key(at + 1))
        };
        self.truth.lock().add_malformed_item(client, range);
        item
    }

    /// The version of a continued list, and the key after which its next page starts.
    fn resume(&mut self, token: &str, part: &Part) -> Result<(u64, Option<ObjectKey>), ListWatchError> {
        let mut fields = token.splitn(3, ':');
        let mut number = || fields.next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        let (epoch, version) = (number(), number());
        let (current_epoch, compacted) = {
            let truth = self.truth.lock();
            (truth.history.epoch(), truth.history.compacted)
        };
        let after = fields.next().and_then(|key| key.parse().ok());
        if self.has(Condition::PagesExpire) || version < compacted || epoch != u64::from(current_epoch) {
            self.log.record_fault(Fault::PageExpired);
            if let Some(after) = after.filter(|_| self.rng.bool()) {
                self.delete_up_to(&after, part);
            }
            return Err(error_response(410, "Expired", RetryAfter::None));
        }
        Ok((version, after))
    }

    /// Deletes an object of the pages up to this key: a client that kept these pages would keep the object, too.
    fn delete_up_to(&mut self, last: &ObjectKey, part: &Part) {
        let version = self.truth.lock().history.version;
        let mut listed = self.objects(version, part);
        listed.retain(|write| write.key <= *last);
        if !listed.is_empty() {
            let pick = self.rng.usize(0..listed.len());
            self.delete(&listed[pick].key);
        }
    }
}

impl Page {
    async fn next(&mut self) -> Option<Result<ListPart, ListWatchError>> {
        if self.failed {
            return None;
        }
        if self.server.lock().rng.u8(0..4) == 0 {
            tokio::task::yield_now().await;
        }
        let mut state = self.server.lock();
        let restored = self.epoch != state.truth.lock().history.epoch();
        if restored || self.break_after == Some(0) {
            self.failed = true;
            if self.malformed {
                state.log.record_fault(Fault::MalformedList);
                let message = "simulated".into();
                return Some(Err(ListWatchError::Malformed { message, url: URL.into() }));
            }
            state.log.record_fault(Fault::Broken);
            return Some(Err(broken()));
        }
        self.break_after = self.break_after.map(|left| left - 1);
        let part = self.parts.pop_front();
        if part.is_none() && self.last {
            state.truth.lock().received_list(self.client, (self.epoch, self.version));
            if self.compact_after && !state.truth.lock().would_hide_restore(1) {
                state.log.record_fault(Fault::CompactedBeforeWatch);
                state.advance(1);
                state.compact();
            }
        }
        part.map(Ok)
    }
}
