//! Ports to listen on.

use std::{io, net::SocketAddr};
use tokio::net::TcpListener;

/// Where outgoing connections get no ports from: one that is opened while nobody listens must be refused, not find
/// itself (on loopback a client can be given the very port it asks for).
const RANGE: std::ops::Range<u16> = 12_000..32_000;

/// Ports that are tried before giving up.
const TRIES: u32 = 200;

/// Listens on a free loopback port. Which one is no part of what a seed decides.
pub(crate) async fn listen() -> io::Result<TcpListener> {
    let mut rng = fastrand::Rng::new();
    for _ in 0..TRIES {
        let address = SocketAddr::from(([127, 0, 0, 1], rng.u16(RANGE)));
        if let Ok(listener) = TcpListener::bind(address).await {
            return Ok(listener);
        }
    }
    Err(io::Error::other("no loopback port between 12000 and 32000 is free; end whatever holds them"))
}

/// A port that is free now.
pub(crate) async fn free() -> io::Result<SocketAddr> {
    listen().await?.local_addr()
}
