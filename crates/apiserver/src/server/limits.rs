//! Limits of clients.

use std::time::Duration;

/// The default limit of one stored object, which is etcd's.
pub(crate) const OBJECT_BYTES: usize = 3 * 1024 * 1024 / 2;

/// The resources that one client, or all together, may use. No ordinary client reaches the defaults.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerLimits {
    /// Open connections; further ones wait in the listener's backlog. 1,000.
    pub connections: usize,
    /// Open connections that have not presented a valid credential, at most half of all; a further one replaces one
    /// of them. Without tokens there is no such limit, but a connection that has sent no
    /// request within the header timeout is closed if another needs its slot. 250.
    pub unauthenticated_connections: usize,
    /// Time for the head of a request from its first byte on, and for a TLS handshake; then the connection is closed. 10 seconds.
    pub header_timeout: Duration,
    /// The lifetime of a connection without a valid credential. 30 seconds.
    pub unauthenticated_lifetime: Duration,
    /// The lifetime of a connection without a request or an open response, such as a watch, also before its first request. 90 seconds, as
    /// in kube-apiserver.
    pub idle_timeout: Duration,
    /// The longest time in which a client reads nothing of a response; then its connection is closed. Clients of an HTTP/2 watch may
    /// take any time as long as they acknowledge PINGs. 5 minutes.
    pub write_timeout: Duration,
    /// Bytes of one request head; beyond it 431. 64 KiB.
    pub head_bytes: usize,
    /// Requests at once on one HTTP/2 connection. 250.
    pub streams: u32,
    /// Bytes of one request body; beyond it 413. 3 MiB, as in kube-apiserver.
    pub body_bytes: usize,
    /// Bytes of one stored object; beyond it, and without its managed fields, a write fails with 500 and `etcdserver: request is too
    /// large`, as with kube-apiserver and etcd. The size is that of the form which kube-apiserver stores: protobuf for built-in kinds, JSON
    /// for custom ones. Defaults stop at this limit. 1.5 MiB.
    pub object_bytes: usize,
    /// Open watches of all clients; beyond it 429. 10,000.
    pub watches: usize,
    /// Open watches of one connection; beyond it 429. 250.
    pub watches_per_connection: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 1000,
            unauthenticated_connections: 250,
            header_timeout: Duration::from_secs(10),
            unauthenticated_lifetime: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(90),
            write_timeout: Duration::from_secs(300),
            head_bytes: 64 * 1024,
            streams: 250,
            body_bytes: 3 * 1024 * 1024,
            object_bytes: OBJECT_BYTES,
            watches: 10_000,
            watches_per_connection: 250,
        }
    }
}
