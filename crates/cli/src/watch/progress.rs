//! The initial sync, with a progress bar.

use super::Watched;
use crate::exit::{self, Failure};
use crate::terminal::printable;
use anyhow::bail;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use kube_informer::InformerStatus;
use std::time::Duration;

/// Interval at which the bars are updated.
const TICK: Duration = Duration::from_millis(50);

/// Waits until all kinds are synced. The error names those that are not.
pub(crate) async fn synced(watched: &[Watched], within: Duration) -> anyhow::Result<()> {
    let bars = MultiProgress::new();
    let all: Vec<ProgressBar> = watched.iter().map(|one| bars.add(bar(one))).collect();
    let all_synced = async {
        for one in watched {
            one.informer.synced(Duration::MAX).await?;
        }
        Ok(())
    };
    let updates = async {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            ticks.tick().await;
            for (one, bar) in watched.iter().zip(&all) {
                step(bar, one)?;
            }
        }
    };
    let result = tokio::select! {
        biased;
        result = all_synced => result,
        result = updates => result,
        () = tokio::time::sleep(within) => Err(timed_out(watched, within)),
    };
    all.iter().for_each(ProgressBar::finish_and_clear);
    result
}

fn bar(one: &Watched) -> ProgressBar {
    let kind = one.kind.to_string();
    ProgressBar::new_spinner()
        .with_style(style("{msg} {pos} {per_sec}"))
        .with_message(printable(&kind).into_owned())
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Updates a bar. Returns an error if waiting is pointless.
fn step(bar: &ProgressBar, one: &Watched) -> anyhow::Result<()> {
    match one.informer.status() {
        InformerStatus::Syncing { so_far, of } => {
            if let Some(of) = of.filter(|&of| bar.length() != Some(of)) {
                bar.set_style(style("{msg} {bar:30} {pos}/{len} {per_sec} {eta} left"));
                bar.set_length(of);
            }
            bar.set_position(so_far);
        }
        InformerStatus::Denied { why, .. } => return Err(denied(one, &why)),
        InformerStatus::Absent { why, .. } => bail!("{} cannot be listed: {why}", one.kind),
        _ => bar.tick(),
    }
    Ok(())
}

fn denied(one: &Watched, why: &str) -> anyhow::Error {
    let statuses = one.informer.namespace_statuses();
    let denied = statuses.iter().filter(|(_, status)| matches!(status, InformerStatus::Denied { .. }));
    let places: Vec<String> = denied
        .map(|(namespace, _)| {
            namespace.as_ref().map_or("all namespaces".to_owned(), |name| format!("namespace {name}"))
        })
        .collect();
    let (kind, places) = (&one.kind, places.join(", "));
    let advice =
        if kind.namespaced && places == "all namespaces" { ", or choose a namespace with -n" } else { "" };
    exit::error(
        Failure::Denied,
        format!("permission to list and watch {kind} in {places} is required: {why}"),
        format!("check it with kubectl auth can-i list {kind}{advice}"),
    )
}

fn timed_out(watched: &[Watched], within: Duration) -> anyhow::Error {
    let laggards: Vec<String> = watched
        .iter()
        .filter(|one| !one.informer.is_synced())
        .map(|one| format!("{} ({})", one.kind, one.informer.status()))
        .collect();
    anyhow::anyhow!("not synced within {within:?}: {}; a longer --sync-timeout may help", laggards.join(", "))
}
