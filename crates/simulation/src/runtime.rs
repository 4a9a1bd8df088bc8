//! The runtime of a world: one thread under paused time, without I/O.

/// Runs a future in a runtime of its own.
pub(crate) fn run_paused<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without I/O").block_on(future)
}

/// Runs a future in a thread and a runtime of its own, beside a world, which it does not change.
pub(crate) fn run_apart<T, F>(future: impl FnOnce() -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let thread = std::thread::spawn(|| run_paused(future()));
    thread.join().expect("the future does not panic")
}
