//! A TCP proxy that injects faults into connections.

mod connection;

pub(crate) use connection::ConnectionFault;

use crate::{
    ports,
    report::{Fault, Report, lock},
};
use connection::Connection;
use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinHandle,
};

/// A proxy to one server.
///
/// 1. Without a storm it forwards all bytes.
/// 2. In a storm, new connections get faults, and open ones can. A connection keeps its fault when the storm ends.
/// 3. It never times out: a black hole lasts until the client closes the connection.
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// The task that accepts connections, unless connections are refused.
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    server: SocketAddr,
    report: Arc<Report>,
    /// Whether faults include silent connections: not every client notices those soon.
    allow_silence: bool,
    storm: Mutex<Option<fastrand::Rng>>,
    /// The open connections, with a channel for faults of each.
    open: Mutex<HashMap<u64, mpsc::UnboundedSender<ConnectionFault>>>,
    next_id: AtomicU64,
}

impl Proxy {
    pub(crate) async fn start(
        server: SocketAddr,
        allow_silence: bool,
        report: Arc<Report>,
    ) -> io::Result<Self> {
        let listener = ports::listen().await?;
        let address = listener.local_addr()?;
        let (storm, open, next_id) = (Mutex::default(), Mutex::default(), AtomicU64::new(0));
        let shared = Arc::new(Shared { server, report, allow_silence, storm, open, next_id });
        let accepting = Some(tokio::spawn(accept(listener, Arc::clone(&shared))));
        Ok(Self { shared, address, accepting })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Injects faults into new connections from now on.
    pub(crate) fn start_storm(&self, rng: fastrand::Rng) {
        *lock(&self.shared.storm) = Some(rng);
    }

    pub(crate) fn end_storm(&self) {
        *lock(&self.shared.storm) = None;
    }

    /// Injects a fault into a random open connection, if there is one.
    pub(crate) fn break_one_connection(&self, rng: &mut fastrand::Rng) {
        let open = lock(&self.shared.open);
        let mut ids: Vec<_> = open.keys().copied().collect();
        ids.sort_unstable();
        if let Some(id) = rng.choice(ids) {
            let _ = open[&id].send(ConnectionFault::random(rng, self.shared.allow_silence));
        }
    }

    /// Refuses new connections. Open ones stay open.
    pub(crate) async fn refuse(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            let _ = accepting.await;
            self.shared.report.record_fault(Fault::Refused);
        }
    }

    /// Accepts connections again.
    pub(crate) async fn listen(&mut self) -> io::Result<()> {
        if self.accepting.is_none() {
            let listener = TcpListener::bind(self.address).await?;
            self.accepting = Some(tokio::spawn(accept(listener, Arc::clone(&self.shared))));
        }
        Ok(())
    }

    pub(crate) fn open_connections(&self) -> usize {
        lock(&self.shared.open).len()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        // An error concerns one connection only.
        let Ok((client, _)) = listener.accept().await else { continue };
        let id = shared.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, faults) = mpsc::unbounded_channel();
        lock(&shared.open).insert(id, sender);
        tokio::spawn(forward(id, client, faults, Arc::clone(&shared)));
    }
}

async fn forward(
    id: u64,
    client: TcpStream,
    faults: mpsc::UnboundedReceiver<ConnectionFault>,
    shared: Arc<Shared>,
) {
    let fault = lock(&shared.storm).as_mut().and_then(|rng| {
        let faulty = rng.u8(0..100) < 40;
        faulty.then(|| ConnectionFault::random(rng, shared.allow_silence))
    });
    // If the server cannot be reached, the connection of the client is closed.
    if let Ok(server) = TcpStream::connect(shared.server).await {
        Connection::new(client, server, faults, &shared.report).forward(fault).await;
    }
    lock(&shared.open).remove(&id);
}

#[cfg(test)]
mod tests;
