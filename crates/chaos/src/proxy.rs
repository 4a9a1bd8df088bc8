//! A TCP proxy that mistreats what goes through it.

mod connection;

pub(crate) use connection::Fate;

use crate::{
    ledger::{Fault, Ledger, lock},
    ports,
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
/// 1. Without a storm everything goes through as it is.
/// 2. In a storm, new connections meet fates, and open ones can be struck; what a connection has met stays with it.
/// 3. It never gives up on a connection by itself: a black hole lasts until the client notices.
pub(crate) struct Proxy {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    server: SocketAddr,
    ledger: Arc<Ledger>,
    /// Whether silence may be a fate: not every client notices it soon.
    silent: bool,
    storm: Mutex<Option<fastrand::Rng>>,
    /// Where each open connection hears of its fate.
    open: Mutex<HashMap<u64, mpsc::UnboundedSender<Fate>>>,
    next: AtomicU64,
}

impl Proxy {
    pub(crate) async fn start(server: SocketAddr, silent: bool, ledger: Arc<Ledger>) -> io::Result<Self> {
        let listener = ports::listen().await?;
        let address = listener.local_addr()?;
        let (storm, open, next) = (Mutex::default(), Mutex::default(), AtomicU64::new(0));
        let shared = Arc::new(Shared { server, ledger, silent, storm, open, next });
        let accepting = Some(tokio::spawn(accept(listener, Arc::clone(&shared))));
        Ok(Self { shared, address, accepting })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on connections fare badly.
    pub(crate) fn storm(&self, rng: fastrand::Rng) {
        *lock(&self.shared.storm) = Some(rng);
    }

    pub(crate) fn calm(&self) {
        *lock(&self.shared.storm) = None;
    }

    /// A connection that is open, if there is one, meets a fate now.
    pub(crate) fn strike(&self, rng: &mut fastrand::Rng) {
        let open = lock(&self.shared.open);
        let mut numbers: Vec<_> = open.keys().copied().collect();
        numbers.sort_unstable();
        if let Some(number) = rng.choice(numbers) {
            let _ = open[&number].send(Fate::draw(rng, self.shared.silent));
        }
    }

    /// Nobody listens any more. What is open stays open.
    pub(crate) async fn refuse(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            let _ = accepting.await;
            self.shared.ledger.strike(Fault::Refused);
        }
    }

    /// Somebody listens again.
    pub(crate) async fn listen(&mut self) -> io::Result<()> {
        if self.accepting.is_none() {
            let listener = TcpListener::bind(self.address).await?;
            self.accepting = Some(tokio::spawn(accept(listener, Arc::clone(&self.shared))));
        }
        Ok(())
    }

    /// How many connections are open.
    pub(crate) fn open(&self) -> usize {
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
    // An error here is one connection that did not come about.
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let (send, fates) = mpsc::unbounded_channel();
        lock(&shared.open).insert(number, send);
        tokio::spawn(carry(number, client, fates, Arc::clone(&shared)));
    }
}

async fn carry(number: u64, client: TcpStream, fates: mpsc::UnboundedReceiver<Fate>, shared: Arc<Shared>) {
    let fate = lock(&shared.storm).as_mut().and_then(|rng| {
        let unlucky = rng.u8(0..100) < 40;
        unlucky.then(|| Fate::draw(rng, shared.silent))
    });
    // Where the server cannot be reached the client finds its connection closed.
    if let Ok(server) = TcpStream::connect(shared.server).await {
        Connection::new(client, server, fates, &shared.ledger).carry(fate).await;
    }
    lock(&shared.open).remove(&number);
}

#[cfg(test)]
mod tests;
