//! Signals that end the program.

/// Resolves at SIGINT (Ctrl-C) or SIGTERM.
pub(crate) async fn received() {
    listen().await;
}

/// Like [`received`], but listens from the call on: a signal before the first poll is not missed and does not kill the
/// process.
pub(crate) fn listen() -> impl Future<Output = ()> {
    #[cfg(unix)]
    let (mut interrupt, mut terminate) = {
        use tokio::signal::unix::{SignalKind, signal};
        (signal(SignalKind::interrupt()).ok(), signal(SignalKind::terminate()).ok())
    };
    async move {
        #[cfg(unix)]
        tokio::select! {
            // Without a handler the signal kills the process.
            () = next(&mut interrupt) => {}
            () = next(&mut terminate) => {}
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
async fn next(signal: &mut Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
