//! A network of bytes between the clients of a world and its server.

mod respond;
mod line;
mod request;

use crate::{
    log::Log,
    totals::Fault,
    trouble::{Blow, Condition, ENDLESS, Refusal, Trap, Trouble},
    truth::{ClientId, Truth},
};
use answer::Answer;
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use kube_embedded_apiserver::{Faults, LocalServer};
use line::Line;
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// Whatever went wrong, as the client's HTTP stack would say it.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer as it arrives.
type Arriving = UnsyncBoxBody<Bytes, BoxError>;

/// The network. Every answer passes it byte by byte, and any byte may be the last.
pub(crate) struct Network {
    state: Mutex<State>,
    /// Told at each change of anything that an answer may wait for.
    changed: Notify,
    truth: Arc<Truth>,
    log: Arc<Log>,
}

struct State {
    upstream: Option<Upstream>,
    /// How often the server has come or gone: whatever is older is broken.
    generation: u64,
    lines: BTreeMap<u64, Line>,
    opened: u64,
    trouble: Trouble,
    rng: fastrand::Rng,
}

/// The server at the other end.
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

/// Who asks.
#[derive(Debug, Clone)]
struct Caller {
    id: Option<ClientId>,
    namespace: Option<String>,
}

impl Network {
    pub(crate) fn new(rng: fastrand::Rng, truth: &Arc<Truth>) -> Arc<Self> {
        let state = State {
            upstream: None,
            generation: 0,
            lines: BTreeMap::new(),
            opened: 0,
            trouble: Trouble::default(),
            rng,
        };
        let (truth, log) = (Arc::clone(truth), Arc::clone(&truth.log));
        Arc::new(Self { state: Mutex::new(state), changed: Notify::new(), truth, log })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client whose requests pass this network, for one namespace or for all.
    pub(crate) fn client(self: &Arc<Self>, id: ClientId, namespace: Option<&str>) -> kube::Client {
        self.connect(Caller { id: Some(id), namespace: namespace.map(str::to_owned) })
    }

    /// A client for somebody who writes.
    pub(crate) fn writer(self: &Arc<Self>) -> kube::Client {
        self.connect(Caller { id: None, namespace: None })
    }

    fn connect(self: &Arc<Self>, caller: Caller) -> kube::Client {
        let network = Arc::clone(self);
        let service = tower::service_fn(move |request: Request<Body>| {
            let (network, caller) = (Arc::clone(&network), caller.clone());
            async move { network.carry(caller, request).await }
        });
        kube::Client::new(service, "default")
    }

    /// Where requests go from now on. Whatever is under way breaks.
    pub(crate) fn lead_to(&self, upstream: Option<Upstream>) {
        let mut state = self.lock();
        state.generation += 1;
        state.upstream = upstream;
        drop(state);
        self.changed.notify_waiters();
    }

    /// Changes or asks what is in the way of requests.
    pub(crate) fn trouble<R>(&self, change: impl FnOnce(&mut Trouble) -> R) -> R {
        change(&mut self.lock().trouble)
    }

    /// Whether a client has a watch that shows it changes, as far as anybody can tell.
    pub(crate) fn is_watched(&self, client: ClientId) -> bool {
        self.lock().lines.values().any(|line| line.is_live(client))
    }

    /// Something befalls one answer that is under way, or all of them.
    pub(crate) fn strike(&self, blow: Blow, pick: u64) {
        let mut state = self.lock();
        let fitting = state.lines.values().filter(|line| line.fits(blow)).count();
        let (all, chosen) = (pick.is_multiple_of(4), (pick / 4) as usize % fitting.max(1));
        let lines = state.lines.values_mut().filter(|line| line.fits(blow)).enumerate();
        for (_, line) in lines.filter(|(i, _)| all || *i == chosen) {
            line.strike(blow, &self.log);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Takes a request to the server, and its answer back; or something else happens.
    async fn carry(
        self: Arc<Self>,
        caller: Caller,
        request: Request<Body>,
    ) -> Result<Response<Arriving>, BoxError> {
        let asked = request::asked(&request);
        let arrived = self.arrive(asked).await;
        let lost = asked.write && arrived == Err(Refusal::Lost);
        let trap = match arrived {
            Ok(trap) => trap,
            Err(_) if lost => None,
            Err(refusal) => return refuse(refusal),
        };
        // Held until the server has responded.
        let permit = if asked.write { self.truth.permit(1) } else { None };
        if asked.write && permit.is_none() {
            return refuse(Refusal::Status { code: 503, reason: "ServiceUnavailable", retry_after: 1 });
        }
        if lost {
            let _ = self.forward(request).await;
            return Err(reset());
        }
        if asked.continued && self.trouble(|trouble| trouble.has(Condition::PagesExpire)) {
            let upstream = self.lock().upstream.clone();
            if let Some(upstream) = upstream {
                let _ = upstream.faults.compact().await;
            }
        }
        let request = self.rewrite(request, asked, trap, caller.namespace.as_deref());
        let (generation, response) = self.forward(request).await?;
        let (head, body) = response.into_parts();
        let Some(client) = caller.id else {
            return Ok(Response::from_parts(head, body.map_err(Into::into).boxed_unsync()));
        };
        self.observe(head.status, asked.continued);
        if head.status != StatusCode::OK {
            return Ok(Response::from_parts(head, body.map_err(Into::into).boxed_unsync()));
        }
        let id = self.open(client, generation, asked.watch, asked.streaming, trap);
        let mut answer = Answer::new(&self, id, client, asked, trap, body);
        if asked.watch
            && self.trouble(|trouble| trouble.has(Condition::ExpiredOverHttp))
            && answer.is_expired()
        {
            self.log.strike(Fault::ExpiredAtOpen);
            return refuse(Refusal::Status { code: 410, reason: "Expired", retry_after: 0 });
        }
        let frames = stream::unfold(answer, |mut answer| async { Some((answer.next().await?, answer)) });
        Ok(Response::from_parts(head, StreamBody::new(frames).boxed_unsync()))
    }

    /// A request is on its way: it may take its time, and it may not get any further.
    async fn arrive(&self, asked: crate::trouble::Asked) -> Result<Option<Trap>, Refusal> {
        let delay = self.lock().rng.u64(0..6).saturating_sub(3);
        if delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        let trap = self.lock().trouble.receive(asked, &self.log)?;
        match trap {
            Some(Trap::Unanswered) => std::future::pending().await,
            Some(Trap::Late(millis)) => {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                Ok(None)
            }
            trap => Ok(trap),
        }
    }

    /// The server's answer, if the server is still the same when it comes.
    async fn forward(&self, request: Request<Body>) -> Result<(u64, Response<Body>), BoxError> {
        let (generation, upstream) = {
            let state = self.lock();
            (state.generation, state.upstream.clone())
        };
        let Some(upstream) = upstream else {
            self.log.strike(Fault::Refused);
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
        };
        let response = upstream.client.send(request).await?;
        if self.lock().generation != generation {
            self.log.strike(Fault::Broken);
            return Err(reset());
        }
        Ok((generation, response))
    }

    fn observe(&self, status: StatusCode, continued: bool) {
        let fault = match status.as_u16() {
            410 if continued => Fault::PageExpired,
            410 => Fault::ExpiredAtOpen,
            404 => Fault::Absent,
            504 => Fault::TooLarge,
            _ => return,
        };
        self.log.strike(fault);
    }

    fn open(
        &self,
        client: ClientId,
        generation: u64,
        watch: bool,
        streaming: bool,
        trap: Option<Trap>,
    ) -> u64 {
        let epoch = self.truth.lock().history.epoch();
        let mut state = self.lock();
        state.opened += 1;
        let id = state.opened;
        state.lines.insert(id, Line::new(client, generation, epoch, watch, streaming, trap));
        id
    }
}

/// An answer that is none of the server's.
fn refuse(refusal: Refusal) -> Result<Response<Arriving>, BoxError> {
    let (code, media_type, text, retry_after) = match refusal {
        Refusal::Connection => return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into()),
        Refusal::Lost => return Err(reset()),
        Refusal::NotJson => (200, "text/html", "<html>Please log in</html>".to_owned(), 0),
        Refusal::Status { code, reason, retry_after } => {
            (code, "application/json", request::status(code, reason), retry_after)
        }
    };
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::builder().status(code).header("content-type", media_type);
    if retry_after > 0 {
        let seconds = if retry_after == ENDLESS { u64::MAX } else { retry_after.into() };
        response = response.header("retry-after", seconds);
    }
    Ok(response.body(body)?)
}

/// The connection broke.
fn reset() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}
