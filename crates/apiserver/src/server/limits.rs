//! What clients may hold on to.

use std::time::Duration;

/// What one client, or all together, may take. Every limit has a default that no ordinary client meets.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Open connections; further ones wait in the listener's backlog. 1,000.
    pub connections: usize,
    /// Time for the head of a request, and for a TLS handshake; then the connection is closed. 10 seconds.
    pub header_timeout: Duration,
    /// Bytes of one request head; beyond it 431. 64 KiB.
    pub head_bytes: usize,
    /// Requests at once on one HTTP/2 connection. 250.
    pub streams: u32,
    /// Bytes of one request body; beyond it 413. 3 MiB, as in kube-apiserver.
    pub body_bytes: usize,
    /// Open watches of all clients; beyond it 429. 10,000.
    pub watches: usize,
    /// Open watches of one connection; beyond it 429. 250.
    pub watches_per_connection: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 1000,
            header_timeout: Duration::from_secs(10),
            head_bytes: 64 * 1024,
            streams: 250,
            body_bytes: 3 * 1024 * 1024,
            watches: 10_000,
            watches_per_connection: 250,
        }
    }
}
