//! Waiting for what must happen.

use std::time::Duration;
use tokio::time::Instant;

/// Waits until something holds, looking again and again.
pub(crate) async fn until(
    within: Duration,
    what: &str,
    mut holds: impl AsyncFnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let end = Instant::now() + within;
    while !holds().await? {
        anyhow::ensure!(Instant::now() < end, "it never happened within {}s that {what}", within.as_secs());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}
