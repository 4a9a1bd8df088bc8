//! The process that started the server.

use std::time::Duration;

/// How often it is checked whether the parent still exists.
#[cfg(unix)]
const CHECK: Duration = Duration::from_millis(250);

/// Completes when the parent process ends, or when it closes the pipe that is the standard input.
///
/// Other standard inputs say nothing about the parent: `/dev/null` is always at its end, and a terminal may outlive it.
pub(super) async fn gone() {
    tokio::select! {
        () = replaced() => {}
        () = pipe_closed(), if has_pipe() => {}
    }
}

/// Completes when this process gets another parent, because its own one ended.
#[cfg(unix)]
async fn replaced() {
    let parent = std::os::unix::process::parent_id();
    while std::os::unix::process::parent_id() == parent {
        tokio::time::sleep(CHECK).await;
    }
}

#[cfg(not(unix))]
async fn replaced() {
    std::future::pending().await
}

#[cfg(unix)]
fn has_pipe() -> bool {
    use std::os::unix::fs::FileTypeExt;
    let input = std::fs::metadata("/dev/stdin").map(|metadata| metadata.file_type());
    input.is_ok_and(|input| input.is_fifo() || input.is_socket())
}

#[cfg(not(unix))]
fn has_pipe() -> bool {
    true
}

/// Reads the standard input to its end, in a thread of its own: a read cannot be cancelled.
async fn pipe_closed() {
    let (closed, wait) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        // An error ends the input as well.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        let _ = closed.send(());
    });
    let _ = wait.await;
}
