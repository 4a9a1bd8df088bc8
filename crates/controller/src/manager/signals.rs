//! Signals that stop a program.

use std::{future::Future, io};

/// Handles SIGINT and SIGTERM from now on; the future resolves with the first of them.
#[cfg(unix)]
pub(crate) fn stop() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// Resolves when the program is interrupted.
#[cfg(not(unix))]
pub(crate) fn stop() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        // Without a handler the program is never stopped this way.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    })
}
