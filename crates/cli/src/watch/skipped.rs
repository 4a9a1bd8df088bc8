//! Items that the server sent and that cannot be decoded.

use kube_informer::{InformerError, ObjectKey};
use kube_informer_wire::sync::lock;
use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::time::Instant;

/// Items that are described; further ones are counted.
const EXAMPLES: usize = 5;
/// Time between two reports.
const EVERY: Duration = Duration::from_secs(10);

/// Counts items that are left out, and reports them a few at a time. Cloning gives another handle on the same count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Skipped(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    count: usize,
    reported: usize,
    reported_at: Option<Instant>,
    /// The first items since the last report.
    examples: Vec<String>,
}

impl Skipped {
    /// Counts an item that an informer left out; ignores other errors.
    pub(crate) fn record_error(&self, error: &InformerError) {
        if let InformerError::Malformed(item) = error {
            self.record(item.key.as_ref(), &item.reason);
        }
    }

    /// Counts an item.
    pub(crate) fn record(&self, key: Option<&ObjectKey>, reason: &str) {
        let mut state = self.lock();
        state.count += 1;
        if state.examples.len() < EXAMPLES {
            let key = key.map_or("an item without a readable name".to_owned(), ToString::to_string);
            state.examples.push(format!("{key} ({reason})"));
        }
    }

    /// A line about items since the last report, not more often than every few seconds.
    pub(crate) fn report(&self) -> Option<String> {
        let is_due = self.lock().reported_at.is_none_or(|at| at.elapsed() >= EVERY);
        if is_due { self.report_now() } else { None }
    }

    /// A line about items since the last report.
    pub(crate) fn report_now(&self) -> Option<String> {
        let mut state = self.lock();
        let new = state.count - state.reported;
        if new == 0 {
            return None;
        }
        state.reported = state.count;
        state.reported_at = Some(Instant::now());
        let examples = std::mem::take(&mut state.examples);
        let more = new - examples.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!("! left out {new} items that cannot be decoded: {}{more}", examples.join(", ")))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reports_are_bounded_in_size_and_number() {
        let skipped = Skipped::default();
        assert_eq!(skipped.report(), None);
        let key = ObjectKey::namespaced("shop", "cart");
        (0..7).for_each(|_| skipped.record(Some(&key), "too large"));
        let line = skipped.report().unwrap();
        assert!(line.contains("left out 7 items"), "{line}");
        assert_eq!(line.matches("shop/cart (too large)").count(), EXAMPLES);
        assert!(line.ends_with("and 2 more"), "{line}");
        skipped.record(None, "too deep");
        assert_eq!(skipped.report(), None, "too soon");
        tokio::time::advance(EVERY).await;
        assert!(skipped.report().unwrap().contains("left out 1 items that cannot be decoded: an item"));
        assert_eq!(skipped.report_now(), None);
    }
}
