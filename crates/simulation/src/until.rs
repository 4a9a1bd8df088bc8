//! Waiting for a condition.

use tokio::sync::Notify;

/// Resolves when a condition holds. It is checked at once, and after each notification of `changed`.
pub(crate) async fn until(changed: &Notify, condition: impl Fn() -> bool) {
    loop {
        let mut notified = std::pin::pin!(changed.notified());
        // Registered before the condition is checked, so that no change is missed.
        notified.as_mut().enable();
        if condition() {
            return;
        }
        notified.await;
    }
}
