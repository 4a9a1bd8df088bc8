//! Being asked to end.

/// Resolves at Ctrl-C, or when the process is asked to terminate.
pub(crate) async fn ended() {
    let terminated = async {
        #[cfg(unix)]
        if let Ok(mut signal) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            signal.recv().await;
            return;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        // Without a handler for Ctrl-C the system ends the process by itself.
        Ok(()) = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}
