//! A simulated network between the clients of a world and its server.

mod in_flight;
mod request;
mod response;
mod transcoding;

use crate::{
    faults::{Condition, FaultInjector, Rejection, RequestFault, RequestInfo, StreamFault},
    log::Log,
    retry_after::RetryAfter,
    selection::Part,
    totals::Fault,
    truth::{ClientId, Truth},
    until::until,
};
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use in_flight::InFlight;
use kube::client::Body;
use kube_embedded_apiserver::{Faults, LocalServer};
use kube_informer_wire::sync::lock;
use response::ResponseBody;
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::sync::Notify;

/// An error of the client's HTTP stack.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a response that the client receives.
type ClientBody = UnsyncBoxBody<Bytes, BoxError>;

/// The network. It can cut every response after any byte.
pub(crate) struct Network {
    state: Mutex<State>,
    /// Notified when anything changes that a response may wait for.
    changed: Notify,
    truth: Arc<Truth>,
    log: Arc<Log>,
}

struct State {
    upstream: Option<Upstream>,
    /// The number of starts and stops of the server. Connections of an older generation are reset.
    generation: u64,
    in_flight: BTreeMap<u64, InFlight>,
    opened: u64,
    /// How often all connections were reset.
    resets: u64,
    faults: FaultInjector,
    rng: fastrand::Rng,
}

/// The server that requests are forwarded to.
#[derive(Clone)]
pub(crate) struct Upstream {
    client: kube::Client,
    faults: Faults,
}

impl Upstream {
    pub(crate) fn new(server: &LocalServer) -> Self {
        Self { client: server.client(), faults: server.faults() }
    }
}

/// The client of a request: of an informer, or of a writer.
#[derive(Debug, Clone)]
struct Caller {
    id: Option<ClientId>,
    part: Part,
}

impl Network {
    pub(crate) fn new(rng: fastrand::Rng, truth: &Arc<Truth>) -> Arc<Self> {
        let state = State {
            upstream: None,
            generation: 0,
            in_flight: BTreeMap::new(),
            opened: 0,
            resets: 0,
            faults: FaultInjector::default(),
            rng,
        };
        let (truth, log) = (Arc::clone(truth), Arc::clone(&truth.log));
        Arc::new(Self { state: Mutex::new(state), changed: Notify::new(), truth, log })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A client of an informer, for a part of the collection.
    pub(crate) fn client(self: &Arc<Self>, id: ClientId, part: Part) -> kube::Client {
        self.connect(Caller { id: Some(id), part })
    }

    /// A client of a program that only writes.
    pub(crate) fn writer(self: &Arc<Self>) -> kube::Client {
        self.connect(Caller { id: None, part: Part::default() })
    }

    fn connect(self: &Arc<Self>, caller: Caller) -> kube::Client {
        let network = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<Body>| {
            let (network, caller) = (Arc::clone(&network), caller.clone());
            async move { network.handle(caller, request).await }
        });
        kube::Client::new(service, "default")
    }

    /// Forwards requests to another server from now on. Connections to the old one are reset.
    pub(crate) fn set_upstream(&self, upstream: Option<Upstream>) {
        let mut state = self.lock();
        state.generation += 1;
        state.upstream = upstream;
        drop(state);
        self.changed.notify_waiters();
    }

    /// Reads or changes the injected faults.
    pub(crate) fn faults<R>(&self, change: impl FnOnce(&mut FaultInjector) -> R) -> R {
        change(&mut self.lock().faults)
    }

    /// Whether a client has a watch that delivers changes, as far as the server knows.
    pub(crate) fn is_watched(&self, client: ClientId) -> bool {
        self.lock().in_flight.values().any(|response| response.is_live(client))
    }

    /// Injects a fault into one response in flight, or into all of them.
    pub(crate) fn inject(&self, fault: StreamFault, pick: u64) {
        let mut state = self.lock();
        let affected = state.in_flight.values().filter(|response| response.is_affected_by(fault)).count();
        let (all, chosen) = (pick.is_multiple_of(4), (pick / 4) as usize % affected.max(1));
        let affected = state.in_flight.values_mut().filter(|response| response.is_affected_by(fault));
        for (_, response) in affected.enumerate().filter(|(i, _)| all || *i == chosen) {
            response.faults.inject(fault, &self.log);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Forwards a request to the server and returns the response, both subject to faults.
    async fn handle(
        self: Arc<Self>,
        caller: Caller,
        request: Request<Body>,
    ) -> Result<Response<ClientBody>, BoxError> {
        let info = request::info(&request);
        if let (Some(client), Some(from)) = (caller.id, info.watches_from()) {
            self.truth.lock().watches_from(client, from);
        }
        self.check_retry_after(&caller, info);
        let intercepted = self.intercept(info).await;
        if let (Some(client), Err(Rejection::Status { retry_after, .. })) = (caller.id, intercepted)
            && !info.probe
        {
            self.truth.lock().rejected(client, retry_after);
        }
        let lost = info.write && intercepted == Err(Rejection::ResponseLost);
        let fault = match intercepted {
            Ok(fault) => fault,
            Err(_) if lost => None,
            Err(rejection) => return reject(rejection),
        };
        // Held until the server has responded.
        let permit = if info.write { self.truth.permit(1) } else { None };
        if info.write && permit.is_none() {
            return reject(Rejection::Status {
                code: 503,
                reason: "ServiceUnavailable",
                retry_after: RetryAfter::Seconds(1),
            });
        }
        if lost {
            let _ = self.forward(request).await;
            return Err(reset());
        }
        if info.continued && self.faults(|faults| faults.has(Condition::PagesExpire)) {
            let upstream = self.lock().upstream.clone();
            if let Some(upstream) = upstream {
                let _ = upstream.faults.compact().await;
            }
        }
        let is_collection = !request::names_object(&request);
        let mut request = self.rewrite(request, info, fault, &caller.part);
        let protobuf = transcoding::replace_accept(&mut request);
        let (generation, response) = self.forward(request).await?;
        let (mut head, body) = response.into_parts();
        if fault == Some(RequestFault::StrangeHeaders) {
            self.log.record_fault(Fault::StrangeHeaders);
            request::add_strange_headers(&mut head.headers);
        }
        let Some(client) = caller.id.filter(|_| is_collection) else {
            return Ok(Response::from_parts(head, body.map_err(Into::into).boxed_unsync()));
        };
        self.count_status(head.status, info.continued);
        if head.status != StatusCode::OK {
            return Ok(Response::from_parts(head, body.map_err(Into::into).boxed_unsync()));
        }
        let id = self.open(client, generation, info, fault);
        let mut body = ResponseBody::new(&self, id, client, info, fault, body);
        if protobuf {
            transcoding::change_headers(&mut head.headers, info.watch);
            body.transcode();
        }
        if info.watch && self.faults(|faults| faults.has(Condition::ExpiredOverHttp)) && body.is_expired() {
            self.log.record_fault(Fault::ExpiredAtOpen);
            return reject(Rejection::Status { code: 410, reason: "Expired", retry_after: RetryAfter::None });
        }
        let frames = stream::unfold(body, |mut body| async { Some((body.next().await?, body)) });
        Ok(Response::from_parts(head, StreamBody::new(frames).boxed_unsync()))
    }

    /// Checks that a request is not earlier than the last `Retry-After` allows.
    fn check_retry_after(&self, caller: &Caller, request: RequestInfo) {
        let client = caller.id.filter(|_| !request.probe);
        if let Some(early) = client.and_then(|client| self.truth.lock().requests(client)) {
            self.log.fail(format_args!("client {client:?} sends a request {early:?} before Retry-After"));
        }
    }

    /// Resets all connections, also stalled ones and those of requests that got no response.
    pub(crate) fn reset_connections(&self) {
        let mut state = self.lock();
        state.resets += 1;
        state.in_flight.values_mut().for_each(|response| response.faults.reset());
        drop(state);
        self.changed.notify_waiters();
    }

    /// Resolves when connections are reset.
    async fn until_reset(&self) {
        let before = self.lock().resets;
        until(&self.changed, || self.lock().resets > before).await;
    }

    /// Delays or rejects a request, or returns the fault of its response.
    async fn intercept(&self, info: RequestInfo) -> Result<Option<RequestFault>, Rejection> {
        let delay = self.lock().rng.u64(0..6).saturating_sub(3);
        if delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        let fault = self.lock().faults.intercept(info, &self.log)?;
        match fault {
            Some(RequestFault::NoResponse) => {
                self.until_reset().await;
                Err(Rejection::ConnectionRefused)
            }
            Some(RequestFault::Delayed(millis)) => {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                Ok(None)
            }
            fault => Ok(fault),
        }
    }

    /// The response of the server, unless the server is replaced meanwhile.
    async fn forward(&self, request: Request<Body>) -> Result<(u64, Response<Body>), BoxError> {
        let (generation, upstream) = {
            let state = self.lock();
            (state.generation, state.upstream.clone())
        };
        let Some(upstream) = upstream else {
            self.log.record_fault(Fault::Refused);
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
        };
        let response = upstream.client.send(request).await?;
        if self.lock().generation != generation {
            self.log.record_fault(Fault::Broken);
            return Err(reset());
        }
        Ok((generation, response))
    }

    fn count_status(&self, status: StatusCode, continued: bool) {
        let fault = match status.as_u16() {
            410 if continued => Fault::PageExpired,
            410 => Fault::ExpiredAtOpen,
            404 => Fault::NotFound,
            504 => Fault::TooLarge,
            _ => return,
        };
        self.log.record_fault(fault);
    }

    fn open(&self, client: ClientId, generation: u64, info: RequestInfo, fault: Option<RequestFault>) -> u64 {
        let epoch = self.truth.lock().history.epoch();
        let mut state = self.lock();
        state.opened += 1;
        let id = state.opened;
        let response = InFlight::new(client, generation, epoch, info, fault);
        state.in_flight.insert(id, response);
        id
    }
}

/// A response or an error that does not come from the server.
fn reject(rejection: Rejection) -> Result<Response<ClientBody>, BoxError> {
    let (code, media_type, text, retry_after) = match rejection {
        Rejection::ConnectionRefused => return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into()),
        Rejection::ResponseLost => return Err(reset()),
        Rejection::NotJson => (200, "text/html", "<html>Please log in</html>".to_owned(), RetryAfter::None),
        Rejection::Status { code, reason, retry_after } => {
            (code, "application/json", request::status(code, reason, retry_after.body()), retry_after)
        }
    };
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::builder().status(code).header("content-type", media_type);
    if let Some(text) = retry_after.header() {
        response = response.header("retry-after", text);
    }
    Ok(response.body(body)?)
}

/// The error of a connection that was reset.
fn reset() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}
