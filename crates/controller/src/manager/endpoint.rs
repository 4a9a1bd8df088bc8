//! The HTTP endpoint of a manager.

use super::{
    ManagerError,
    health::{Health, Report},
    metrics_text::Render,
};
use crate::time;
use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use std::{
    future::{Future, IntoFuture},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long open connections may delay the end.
const CLOSE: Duration = Duration::from_secs(1);
/// Period of upkeep of histograms.
const UPKEEP: Duration = Duration::from_secs(5);
/// The text format of Prometheus.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// An endpoint that listens.
pub(super) struct Endpoint(TcpListener);

/// The state that requests are served from.
struct Parts {
    health: Health,
    render: Option<Render>,
}

impl Endpoint {
    pub(super) async fn open(address: SocketAddr) -> Result<Self, ManagerError> {
        let listener = TcpListener::bind(address).await;
        listener.map(Self).map_err(|source| ManagerError::Listen { address, source })
    }

    pub(super) fn on(listener: TcpListener) -> Self {
        Self(listener)
    }

    /// Serves requests until `close` resolves. A failure of the endpoint does not stop the controllers.
    pub(super) async fn serve(self, health: Health, render: Option<Render>, close: impl Future<Output = ()>) {
        let upkeep = upkeep(render.clone());
        let router = Router::new()
            .route("/healthz", get(healthz))
            .route("/livez", get(healthz))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .with_state(Arc::new(Parts { health, render }));
        let closing = CancellationToken::new();
        let serve = axum::serve(self.0, router).with_graceful_shutdown(closing.clone().cancelled_owned());
        let serve = async {
            if let Err(error) = serve.into_future().await {
                tracing::error!(%error, "the endpoint for health and metrics failed");
            }
        };
        let close = async {
            close.await;
            closing.cancel();
            time::sleep(CLOSE).await;
        };
        tokio::select! {
            biased;
            () = serve => {}
            () = close => {}
            () = upkeep => {}
        }
    }
}

/// Never resolves.
async fn upkeep(render: Option<Render>) {
    loop {
        time::sleep(UPKEEP).await;
        if let Some(render) = &render {
            render.run_upkeep();
        }
    }
}

async fn healthz(State(parts): State<Arc<Parts>>) -> Response {
    respond(parts.health.live())
}

async fn readyz(State(parts): State<Arc<Parts>>) -> Response {
    respond(parts.health.ready())
}

async fn metrics(State(parts): State<Arc<Parts>>) -> Response {
    match &parts.render {
        Some(render) => (StatusCode::OK, [(CONTENT_TYPE, PROMETHEUS)], render.text()).into_response(),
        None => (StatusCode::NOT_FOUND, "no recorder; see Manager::metrics\n").into_response(),
    }
}

fn respond(report: Report) -> Response {
    let status = if report.ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, report.text).into_response()
}
