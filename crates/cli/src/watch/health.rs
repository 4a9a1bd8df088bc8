//! Reports a lost connection and its recovery, once each.

use super::{Watched, skipped::Skipped};
use crate::terminal::note;
use kube_informer::InformerStatus;
use std::time::Duration;
use tokio::time::Instant;

/// Interval at which the status of the informers is read.
const EVERY: Duration = Duration::from_millis(100);

/// The last report about one informer.
#[derive(Debug, Clone, PartialEq)]
enum Reported {
    Healthy,
    Lost { since: Instant },
}

/// Reports on stderr for as long as it is polled.
pub(crate) async fn report(watched: &[Watched], skipped: &Skipped) {
    let mut reported = vec![Reported::Healthy; watched.len()];
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        ticks.tick().await;
        skipped.report().iter().for_each(|line| note(line));
        for (one, reported) in watched.iter().zip(&mut reported) {
            if let Some(line) = next_report(reported, &one.informer.status()) {
                note(&format!("! {}: {line}", one.kind));
            }
        }
    }
}

/// The line to print, if the status differs from the last report.
fn next_report(reported: &mut Reported, status: &InformerStatus) -> Option<String> {
    match (&reported, status) {
        (Reported::Healthy, InformerStatus::Failed { since, why, .. }) => {
            *reported = Reported::Lost { since: *since };
            Some(format!("the informer failed ({why}); the cached objects stay"))
        }
        (
            Reported::Healthy,
            InformerStatus::Retrying { since, why, .. }
            | InformerStatus::Denied { since, why, .. }
            | InformerStatus::Absent { since, why, .. },
        ) => {
            *reported = Reported::Lost { since: *since };
            Some(format!("lost the server ({why}); retrying, the cache is kept"))
        }
        (Reported::Lost { since }, InformerStatus::Live { .. }) => {
            let line = format!("back after {:.1?}; no change was missed", since.elapsed());
            *reported = Reported::Healthy;
            Some(line)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_and_its_recovery_are_reported_once() {
        let now = Instant::now();
        let retrying =
            |why: &str| InformerStatus::Retrying { since: now, why: why.to_owned(), next: Some(now) };
        let live = InformerStatus::Live { version: None, last_contact: now };
        let mut reported = Reported::Healthy;
        assert_eq!(next_report(&mut reported, &live), None);
        assert!(next_report(&mut reported, &retrying("refused")).unwrap().contains("refused"));
        assert_eq!(next_report(&mut reported, &retrying("reset")), None);
        assert_eq!(next_report(&mut reported, &InformerStatus::Syncing { so_far: 1, of: None }), None);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(next_report(&mut reported, &live).unwrap().contains("back after 3.0s"));
        assert_eq!(next_report(&mut reported, &live), None);
    }
}
