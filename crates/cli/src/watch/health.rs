//! Telling when the connection is lost, and when it is back. Once each.

use super::Watched;
use kube_informer::InformerStatus;
use std::time::Duration;
use tokio::time::Instant;

/// How often the informers are asked.
const EVERY: Duration = Duration::from_millis(100);

/// What was told last of one informer.
#[derive(Debug, Clone, PartialEq)]
enum Told {
    Well,
    Lost { since: Instant },
}

/// Tells on stderr for as long as it is polled.
pub(crate) async fn tell(watched: &[Watched]) {
    let mut told = vec![Told::Well; watched.len()];
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        ticks.tick().await;
        for (one, told) in watched.iter().zip(&mut told) {
            if let Some(line) = news(told, &one.informer.status()) {
                eprintln!("! {}: {line}", one.kind);
            }
        }
    }
}

/// What is worth a line, given what was told before.
fn news(told: &mut Told, status: &InformerStatus) -> Option<String> {
    match (&told, status) {
        (Told::Well, InformerStatus::Failed { since, why, .. }) => {
            *told = Told::Lost { since: *since };
            Some(format!("the informer failed ({why}); what is known stays"))
        }
        (
            Told::Well,
            InformerStatus::Retrying { since, why, .. }
            | InformerStatus::Denied { since, why, .. }
            | InformerStatus::Absent { since, why, .. },
        ) => {
            *told = Told::Lost { since: *since };
            Some(format!("lost the server ({why}); trying again, what is known stays"))
        }
        (Told::Lost { since }, InformerStatus::Live { .. }) => {
            let line = format!("back after {:.1?}; nothing was missed", since.elapsed());
            *told = Told::Well;
            Some(line)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_told_once_and_so_is_its_end() {
        let now = Instant::now();
        let retrying =
            |why: &str| InformerStatus::Retrying { since: now, why: why.to_owned(), next: Some(now) };
        let live = InformerStatus::Live { version: None, heard: now };
        let mut told = Told::Well;
        assert_eq!(news(&mut told, &live), None);
        assert!(news(&mut told, &retrying("refused")).unwrap().contains("refused"));
        assert_eq!(news(&mut told, &retrying("reset")), None);
        assert_eq!(news(&mut told, &InformerStatus::Syncing { so_far: 1, of: None }), None);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(news(&mut told, &live).unwrap().contains("back after 3.0s"));
        assert_eq!(news(&mut told, &live), None);
    }
}
