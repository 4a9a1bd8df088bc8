//! Being asked to end.

/// Resolves at Ctrl-C, or when the process is asked to terminate.
pub(crate) async fn ended() {
    listen().await;
}

/// The same, but what is asked between this call and the first look at the future is not missed, and does not end the process by itself.
pub(crate) fn listen() -> impl Future<Output = ()> {
    #[cfg(unix)]
    let (mut interrupt, mut terminate) = {
        use tokio::signal::unix::{SignalKind, signal};
        (signal(SignalKind::interrupt()).ok(), signal(SignalKind::terminate()).ok())
    };
    async move {
        #[cfg(unix)]
        tokio::select! {
            // Without a handler the system ends the process by itself.
            () = heard(&mut interrupt) => {}
            () = heard(&mut terminate) => {}
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
async fn heard(signal: &mut Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
