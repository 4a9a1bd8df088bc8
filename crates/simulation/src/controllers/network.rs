//! The network between the replicas of a world and its server.

mod call;
mod stream;

use super::{
    process::Process,
    settings::Settings,
    totals::Fault,
    truth::{Truth, WriteRequest},
};
use crate::until::until;
use bytes::Bytes;
use call::Call;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use kube_informer_wire::sync::lock;
use serde_json::json;
use std::{
    collections::BTreeMap,
    future::pending,
    io,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use stream::ResponseStream;
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

/// An error of the client's HTTP stack.
type BoxError = Box<dyn std::error::Error + Send + Sync>;
type ClientBody = UnsyncBoxBody<Bytes, BoxError>;
type Received = Result<Response<ClientBody>, BoxError>;

/// The network. Each process has a link of its own to the server.
///
/// 1. A request that arrives does so within [`Settings::longest_delay`].
/// 2. A write that its process gives up is processed at once or never. One of a process that is killed may also arrive later, within
///    that delay.
pub(super) struct Network {
    state: Mutex<State>,
    /// Notified when anything changes that a response may wait for.
    changed: Notify,
    truth: Arc<Truth>,
}

struct State {
    upstream: Option<kube::Client>,
    /// Number of starts of the server. Connections of an older one are reset.
    generation: u64,
    /// Of 256 requests, the number with a fault.
    fault_rate: u8,
    links: BTreeMap<String, Link>,
    rng: fastrand::Rng,
    longest_delay: Duration,
    longest_renewal: Duration,
    /// The longest time that each request and each response takes without a fault.
    latency: Duration,
}

/// The longest time of a request and of a response of a fast network.
const LATENCY: Duration = Duration::from_millis(8);
/// The longest time of a response that takes long.
const LONGEST_RESPONSE: Duration = Duration::from_secs(8);

/// The link of a process.
#[derive(Debug, Clone, Default)]
struct Link {
    /// Nothing arrives, in either direction.
    partitioned: bool,
    /// Watches deliver nothing.
    stalled: bool,
    /// Writes of Leases are rejected, and everything else works.
    rejects_leases: bool,
    /// The responses to writes of Leases take long.
    slow_renewals: bool,
    /// All writes but those of Leases take long to arrive.
    slow_writes: bool,
    /// Number of times at which all connections were reset.
    resets: u64,
}

/// The fate of a request between process and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Arrives,
    Refused,
    NoResponse,
    ResponseLost,
    SlowResponse,
    Rejected { code: u16, reason: &'static str, fault: Fault },
}

impl Network {
    pub(super) fn new(settings: &Settings, rng: fastrand::Rng, truth: &Arc<Truth>) -> Arc<Self> {
        let state = State {
            upstream: None,
            generation: 0,
            fault_rate: settings.fault_rate,
            links: BTreeMap::new(),
            rng,
            longest_delay: settings.longest_delay(),
            longest_renewal: settings.longest_renewal(),
            latency: LATENCY,
        };
        Arc::new(Self { state: Mutex::new(state), changed: Notify::new(), truth: Arc::clone(truth) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Forwards requests to this server from now on.
    pub(super) fn set_upstream(&self, client: Option<kube::Client>) {
        let mut state = self.lock();
        state.generation += 1;
        state.upstream = client;
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn set_partitioned(&self, process: &str, partitioned: bool) {
        self.change_link(process, |link| {
            link.partitioned = partitioned;
            // Connections do not survive.
            link.resets += 1;
        });
    }

    pub(super) fn set_stalled(&self, process: &str, stalled: bool) {
        self.change_link(process, |link| link.stalled = stalled);
    }

    pub(super) fn set_rejects_leases(&self, process: &str, rejects: bool) {
        self.change_link(process, |link| link.rejects_leases = rejects);
    }

    pub(super) fn set_slow_renewals(&self, process: &str, slow: bool) {
        self.change_link(process, |link| link.slow_renewals = slow);
    }

    pub(super) fn set_slow_writes(&self, process: &str, slow: bool) {
        self.change_link(process, |link| link.slow_writes = slow);
    }

    /// Sets the longest time that each request and each response takes without a fault.
    pub(super) fn set_latency(&self, latency: Duration) {
        self.lock().latency = latency;
    }

    /// Resets all connections of a process. Those that replace them are not stalled.
    pub(super) fn reset(&self, process: &str) {
        self.change_link(process, |link| {
            link.stalled = false;
            link.resets += 1;
        });
    }

    /// A process was suspended, resumed or killed.
    pub(super) fn process_changed(&self) {
        self.changed.notify_waiters();
    }

    fn change_link(&self, process: &str, change: impl FnOnce(&mut Link)) {
        change(self.lock().links.entry(process.to_owned()).or_default());
        self.changed.notify_waiters();
    }

    /// Ends all faults, and resets all connections.
    pub(super) fn heal(&self) {
        let mut state = self.lock();
        state.fault_rate = 0;
        for link in state.links.values_mut() {
            *link = Link { resets: link.resets + 1, ..Link::default() };
        }
        drop(state);
        self.changed.notify_waiters();
    }

    fn link(&self, process: &Process) -> Link {
        self.lock().links.entry(process.name.clone()).or_default().clone()
    }

    /// A client of a process.
    pub(super) fn client(self: &Arc<Self>, process: &Arc<Process>) -> kube::Client {
        let (network, process) = (Arc::clone(self), Arc::clone(process));
        let service = tower::service_fn(move |request: Request<Body>| {
            // The request leaves the process now.
            let given_up = CancellationToken::new();
            let (respond, response) = oneshot::channel();
            if !process.is_dead() {
                let delivery = network.clone().deliver(process.clone(), request, given_up.clone());
                tokio::spawn(async move {
                    if let Some(received) = delivery.await {
                        let _ = respond.send(received);
                    }
                });
            }
            process.run(receive(response, given_up.drop_guard()))
        });
        kube::Client::new(service, "default")
    }

    /// Brings a request to the server, and its response back. `None` if there is no response, ever.
    async fn deliver(
        self: Arc<Self>,
        process: Arc<Process>,
        request: Request<Body>,
        given_up: CancellationToken,
    ) -> Option<Received> {
        let call = Call::read(request).await;
        let (fate, delay) = self.draw(&process, &call);
        if !self.travel(&process, &call, delay, &given_up).await {
            return None;
        }
        match fate {
            _ if self.link(&process).partitioned => return self.unreachable(&process, &given_up).await,
            _ if call.is_lease_write() && self.link(&process).rejects_leases => {
                return Some(Ok(rejection(500, "InternalError")));
            }
            Fate::Refused => {
                self.truth.record_fault(Fault::Refused);
                return Some(Err(io::Error::from(io::ErrorKind::ConnectionRefused).into()));
            }
            Fate::Rejected { code, reason, fault } => {
                self.truth.record_fault(fault);
                return Some(Ok(rejection(code, reason)));
            }
            Fate::NoResponse if call.watch || !call.is_write() => {
                self.truth.record_fault(Fault::NoResponse);
                return self.unreachable(&process, &given_up).await;
            }
            _ => {}
        }
        let response = self.process(&process, &call).await;
        if fate == Fate::ResponseLost && call.is_write() {
            self.truth.record_fault(Fault::ResponseLost);
            return Some(Err(reset()));
        }
        if fate == Fate::NoResponse {
            self.truth.record_fault(Fault::NoResponse);
            return self.unreachable(&process, &given_up).await;
        }
        let delay = self.response_delay(&process, &call, fate);
        tokio::time::sleep(delay).await;
        Some(response)
    }

    /// How long a response takes.
    fn response_delay(&self, process: &Process, call: &Call, fate: Fate) -> Duration {
        let slow_renewal = call.is_lease_write() && self.link(process).slow_renewals;
        let mut state = self.lock();
        let (shortest, longest) = match fate {
            _ if slow_renewal => (state.longest_renewal / 2, state.longest_renewal),
            Fate::SlowResponse => (Duration::from_millis(500), LONGEST_RESPONSE),
            _ => (Duration::ZERO, state.latency),
        };
        let delay = state.rng.u64(millis(shortest)..millis(longest).max(1));
        drop(state);
        if fate == Fate::SlowResponse {
            self.truth.record_fault(Fault::SlowResponse);
        }
        Duration::from_millis(delay)
    }

    /// Waits for the time that a request needs. Returns whether it arrives.
    async fn travel(
        &self,
        process: &Process,
        call: &Call,
        delay: Duration,
        given_up: &CancellationToken,
    ) -> bool {
        let arrival = tokio::time::sleep(delay);
        tokio::pin!(arrival);
        tokio::select! {
            biased;
            () = given_up.cancelled() => {}
            () = &mut arrival => return true,
        }
        if !call.is_write() {
            return false;
        }
        let roll = self.lock().rng.u8(0..4);
        match roll {
            0 if process.is_dead() => {
                arrival.await;
                self.truth.record_fault(Fault::Late);
                true
            }
            0 | 1 => {
                self.truth.record_fault(Fault::Dropped);
                true
            }
            _ => false,
        }
    }

    /// The server processes a request.
    async fn process(self: &Arc<Self>, process: &Arc<Process>, call: &Call) -> Received {
        if call.is_controller_write() {
            self.truth.check_write(WriteRequest {
                process: &process.name,
                method: call.method.as_str(),
                resource: &call.resource,
                name: &call.name,
                apply: call.apply,
                body: &call.body,
            });
        }
        let (generation, upstream) = {
            let state = self.lock();
            (state.generation, state.upstream.clone())
        };
        let Some(upstream) = upstream else {
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
        };
        let resets = self.link(process).resets;
        let response = tokio::select! {
            biased;
            response = upstream.send(call.request()) => response?,
            // The server has ended, and with it the connection.
            () = self.until(|state| state.generation != generation) => return Err(reset()),
        };
        if call.is_controller_write() && response.status().as_u16() == 409 {
            self.truth.record_fault(Fault::RealConflict);
        }
        let (head, body) = response.into_parts();
        let stream = ResponseStream::new(self, process, generation, resets, call.watch, body);
        Ok(Response::from_parts(head, StreamBody::new(stream.frames()).boxed_unsync()))
    }

    /// A request that gets no response: the connection is reset when the link is, if the process waits that long.
    async fn unreachable(&self, process: &Process, given_up: &CancellationToken) -> Option<Received> {
        let before = self.link(process).resets;
        let until_reset =
            self.until(|state| state.links.get(&process.name).is_some_and(|link| link.resets > before));
        tokio::select! {
            biased;
            () = given_up.cancelled() => None,
            () = until_reset => Some(Err(reset())),
        }
    }

    /// Resolves when the state of the network meets a condition.
    async fn until(&self, condition: impl Fn(&State) -> bool) {
        until(&self.changed, || condition(&self.lock())).await;
    }

    /// The fate of a request, and how long it takes.
    fn draw(&self, process: &Process, call: &Call) -> (Fate, Duration) {
        let slow = call.is_controller_write() && self.link(process).slow_writes;
        let mut state = self.lock();
        // A third of all requests take no time.
        let (none, longest) = (millis(state.latency) / 2, millis(state.latency) * 3 / 2);
        let quick = Duration::from_millis(state.rng.u64(0..longest).saturating_sub(none));
        let roll = state.rng.u8(..);
        if roll >= state.fault_rate && !slow {
            return (Fate::Arrives, quick);
        }
        let fate = match state.rng.u8(0..8) {
            _ if slow => Fate::Arrives,
            0 => Fate::Refused,
            1 => Fate::NoResponse,
            2 => Fate::ResponseLost,
            3 => Fate::SlowResponse,
            4 => Fate::Rejected { code: 429, reason: "TooManyRequests", fault: Fault::Busy },
            5 => Fate::Rejected { code: 500, reason: "InternalError", fault: Fault::Internal },
            6 if call.is_write() => Fate::Rejected { code: 409, reason: "Conflict", fault: Fault::Conflict },
            _ => Fate::Arrives,
        };
        if fate != Fate::Arrives || !call.is_write() {
            return (fate, quick);
        }
        let longest = millis(state.longest_delay);
        let delay = state.rng.u64(500..longest);
        drop(state);
        self.truth.record_fault(Fault::Delayed);
        (fate, Duration::from_millis(delay))
    }
}

/// Receives a response. If this is dropped, the request is given up.
async fn receive(response: oneshot::Receiver<Received>, _give_up: DropGuard) -> Received {
    match response.await {
        Ok(received) => received,
        Err(_) => pending().await,
    }
}

fn rejection(code: u16, reason: &str) -> Response<ClientBody> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("the network made up this {code}"), "reason": reason, "code": code,
    });
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(code).expect("a valid status");
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    if code == 429 {
        response.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("1"));
    }
    response
}

fn millis(time: Duration) -> u64 {
    time.as_millis() as u64
}

/// The error of a connection that was reset.
fn reset() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}
