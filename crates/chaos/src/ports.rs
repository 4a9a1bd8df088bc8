//! Ports to listen on.

use std::{io, net::SocketAddr};
use tokio::net::TcpListener;

/// Ports outside the ephemeral range. Within it, a connection to a port without a listener can get that same port as
/// its source port on loopback, and connect to itself instead of being refused.
const RANGE: std::ops::Range<u16> = 12_000..32_000;

/// Ports that are tried before it gives up.
const TRIES: u32 = 200;

/// Listens on a free loopback port. It does not depend on the seed of the run.
pub(crate) async fn listen() -> io::Result<TcpListener> {
    let mut rng = fastrand::Rng::new();
    for _ in 0..TRIES {
        let address = SocketAddr::from(([127, 0, 0, 1], rng.u16(RANGE)));
        if let Ok(listener) = TcpListener::bind(address).await {
            return Ok(listener);
        }
    }
    Err(io::Error::other("no loopback port between 12000 and 32000 is free; stop the programs that use them"))
}

/// Returns a loopback address whose port is free now.
pub(crate) async fn free() -> io::Result<SocketAddr> {
    listen().await?.local_addr()
}
