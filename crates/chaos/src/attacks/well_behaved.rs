//! The well-behaved client: it writes and reads a small object, and measures how long that takes.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use std::{fmt, future::Future, time::Duration};
use tokio::time::{Instant, timeout};

/// Pause between two requests.
const PAUSE: Duration = Duration::from_millis(10);
/// Longer than any request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Latencies of the requests that succeeded, sorted, and the number that failed.
#[derive(Debug)]
pub(super) struct Latencies {
    sorted: Vec<Duration>,
    failed: usize,
}

impl Latencies {
    /// Requests that succeeded.
    pub(super) fn served(&self) -> usize {
        self.sorted.len()
    }

    pub(super) fn p99(&self) -> Duration {
        let last = self.sorted.len().saturating_sub(1);
        self.sorted.get(self.sorted.len() * 99 / 100).or(self.sorted.get(last)).copied().unwrap_or_default()
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ms ({} requests", self.p99().as_secs_f64() * 1000.0, self.sorted.len())?;
        match self.failed {
            0 => f.write_str(")"),
            failed => write!(f, ", {failed} failed)"),
        }
    }
}

/// Measures requests until `attack` has ended.
pub(super) async fn measure<T>(
    client: kube::Client,
    attack: impl Future<Output = T>,
) -> anyhow::Result<(Latencies, T)> {
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    let map = serde_json::from_value(json!({"metadata": {"name": "well-behaved"}}))?;
    match maps.create(&PostParams::default(), &map).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => return Err(error.into()),
    }
    let mut attack = std::pin::pin!(attack);
    let mut latencies = Latencies { sorted: Vec::new(), failed: 0 };
    let mut count = 0_u64;
    let result = loop {
        let began = Instant::now();
        // A request that the attack holds up is not dropped when the attack ends.
        let request = std::pin::pin!(timeout(REQUEST_TIMEOUT, exchange(&maps, count)));
        let (served, ended) = both(request, attack.as_mut()).await;
        match served {
            true => latencies.sorted.push(began.elapsed()),
            false => latencies.failed += 1,
        }
        count += 1;
        if let Some(result) = ended {
            break result;
        }
        if let Ok(result) = timeout(PAUSE, attack.as_mut()).await {
            break result;
        }
    };
    latencies.sorted.sort_unstable();
    Ok((latencies, result))
}

/// Completes the request, and returns whether it succeeded and the result of the attack if that has ended.
async fn both<R, T>(
    mut request: std::pin::Pin<&mut impl Future<Output = Result<bool, R>>>,
    beside: std::pin::Pin<&mut impl Future<Output = T>>,
) -> (bool, Option<T>) {
    tokio::select! {
        served = request.as_mut() => (served.unwrap_or(false), None),
        result = beside => (request.await.unwrap_or(false), Some(result)),
    }
}

async fn exchange(maps: &Api<ConfigMap>, count: u64) -> bool {
    let patch = Patch::Merge(json!({"data": {"count": count.to_string()}}));
    let written = maps.patch("well-behaved", &PatchParams::default(), &patch).await;
    written.is_ok() && maps.get("well-behaved").await.is_ok()
}
