//! The first sync, with a progress bar.

use super::Watched;
use crate::exit::{Failure, told};
use anyhow::bail;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use kube_informer::InformerStatus;
use std::time::Duration;

/// How often the bars move.
const TICK: Duration = Duration::from_millis(50);

/// Resolves when everything is synced. The error says which kind is not, and what to do.
pub(crate) async fn synced(watched: &[Watched], within: Duration) -> anyhow::Result<()> {
    let bars = MultiProgress::new();
    let all: Vec<ProgressBar> = watched.iter().map(|one| bars.add(bar(one))).collect();
    let all_synced = async {
        for one in watched {
            one.informer.synced(Duration::MAX).await?;
        }
        Ok(())
    };
    let moving = async {
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
        result = moving => result,
        () = tokio::time::sleep(within) => Err(late(watched, within)),
    };
    all.iter().for_each(ProgressBar::finish_and_clear);
    result
}

fn bar(one: &Watched) -> ProgressBar {
    ProgressBar::new_spinner().with_style(style("{msg} {pos} {per_sec}")).with_message(one.kind.to_string())
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Moves a bar; an error if there is no use in waiting.
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
    let refused = statuses.iter().filter(|(_, status)| matches!(status, InformerStatus::Denied { .. }));
    let places: Vec<String> = refused
        .map(|(namespace, _)| {
            namespace.as_ref().map_or("all namespaces".to_owned(), |name| format!("namespace {name}"))
        })
        .collect();
    let (kind, places) = (&one.kind, places.join(", "));
    let advice =
        if kind.namespaced && places == "all namespaces" { ", or choose a namespace with -n" } else { "" };
    told(
        Failure::Denied,
        format!(
            "the verbs list and watch on {kind} in {places} are needed: {why}\nAsk for them (kubectl auth can-i list {kind}){advice}"
        ),
    )
}

fn late(watched: &[Watched], within: Duration) -> anyhow::Error {
    let laggards: Vec<String> = watched
        .iter()
        .filter(|one| !one.informer.is_synced())
        .map(|one| format!("{} ({})", one.kind, one.informer.status()))
        .collect();
    anyhow::anyhow!("not synced within {within:?}: {}; a longer --sync-timeout may help", laggards.join(", "))
}
