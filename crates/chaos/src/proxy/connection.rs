//! One connection through the proxy, and what becomes of it.

use crate::ledger::{Fault, Ledger};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
};

/// What becomes of a connection. `after` counts the bytes that still go from the server to the client before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// RST, and nothing of what was under way.
    Reset { after: usize },
    /// FIN in both directions.
    Cut { after: usize },
    /// Nothing goes through from the start, in either direction.
    Mute,
    /// Nothing goes through any more.
    BlackHole { after: usize },
    /// So many bytes come one at a time.
    Trickle { bytes: usize },
    /// FIN to the client, who may go on sending.
    HalfClose { after: usize },
    /// FIN to the server, whose answer still goes through.
    HalfCloseServer,
}

/// The longest trickle: long enough to cut every line of a few events, short enough not to take minutes.
const TRICKLE: usize = 1500;

impl Fate {
    /// A fate from a random source; one in which nothing is said only where that is wanted.
    pub(crate) fn draw(rng: &mut fastrand::Rng, silent: bool) -> Self {
        // Each magnitude is as likely as the next: headers, a few events, a list.
        let magnitude = rng.u32(4..16);
        let after = rng.usize(0..1 << magnitude);
        match rng.u8(0..if silent { 9 } else { 7 }) {
            0 | 1 => Self::Reset { after },
            2 | 3 => Self::Cut { after },
            4 => Self::Trickle { bytes: rng.usize(100..TRICKLE) },
            5 => Self::HalfClose { after },
            6 => Self::HalfCloseServer,
            7 => Self::Mute,
            _ => Self::BlackHole { after },
        }
    }

    fn fault(self) -> Fault {
        match self {
            Self::Reset { .. } => Fault::Reset,
            Self::Cut { .. } => Fault::Cut,
            Self::Mute => Fault::Mute,
            Self::BlackHole { .. } => Fault::BlackHole,
            Self::Trickle { .. } => Fault::Trickle,
            Self::HalfClose { .. } | Self::HalfCloseServer => Fault::HalfClosed,
        }
    }

    /// How many more bytes go to the client before it happens.
    fn after(self) -> usize {
        match self {
            Self::Reset { after }
            | Self::Cut { after }
            | Self::BlackHole { after }
            | Self::HalfClose { after } => after,
            Self::Mute | Self::Trickle { .. } | Self::HalfCloseServer => 0,
        }
    }
}

pub(crate) struct Connection<'a> {
    client: TcpStream,
    server: TcpStream,
    fates: mpsc::UnboundedReceiver<Fate>,
    ledger: &'a Ledger,
}

/// Whether the connection goes on.
#[derive(PartialEq, Eq)]
enum Next {
    On,
    Over,
}

impl<'a> Connection<'a> {
    pub(crate) fn new(
        client: TcpStream,
        server: TcpStream,
        fates: mpsc::UnboundedReceiver<Fate>,
        ledger: &'a Ledger,
    ) -> Self {
        // One byte at a time should be packets of one byte.
        let _ = client.set_nodelay(true);
        Self { client, server, fates, ledger }
    }

    /// Carries bytes until either side, or fate, ends it.
    pub(crate) async fn carry(mut self, first: Option<Fate>) {
        let mut fate = first.map(|fate| (fate, fate.after()));
        let (mut up, mut down) = (vec![0; 16 << 10], vec![0; 16 << 10]);
        loop {
            if let Some((due, 0)) = fate {
                fate = None;
                self.ledger.strike(due.fault());
                if self.meet(due).await != Ok(Next::On) {
                    return;
                }
            }
            let room = fate.map_or(down.len(), |(_, after)| after.min(down.len()));
            tokio::select! {
                biased;
                Some(next) = self.fates.recv(), if fate.is_none() => fate = Some((next, next.after())),
                read = self.client.read(&mut up) => {
                    let Ok(1..) = read else { return };
                    if self.server.write_all(&up[..read.unwrap_or(0)]).await.is_err() {
                        return;
                    }
                }
                read = self.server.read(&mut down[..room]) => {
                    let Ok(count @ 1..) = read else { return };
                    if self.client.write_all(&down[..count]).await.is_err() {
                        return;
                    }
                    fate = fate.map(|(due, after)| (due, after - count));
                }
            }
        }
    }

    async fn meet(&mut self, fate: Fate) -> Result<Next, ()> {
        match fate {
            Fate::Reset { .. } => {
                // What is dropped now is reset, not closed.
                let _ = self.client.set_zero_linger();
                Ok(Next::Over)
            }
            Fate::Cut { .. } => Ok(Next::Over),
            Fate::Mute | Fate::BlackHole { .. } => {
                self.until_client_leaves().await;
                Ok(Next::Over)
            }
            Fate::Trickle { bytes } => self.trickle(bytes).await.map_err(drop),
            Fate::HalfClose { .. } => {
                self.client.shutdown().await.map_err(drop)?;
                self.until_client_leaves().await;
                Ok(Next::Over)
            }
            Fate::HalfCloseServer => {
                self.server.shutdown().await.map_err(drop)?;
                // Its answer still goes through, then it closes.
                let _ = tokio::io::copy(&mut self.server, &mut self.client).await;
                Ok(Next::Over)
            }
        }
    }

    async fn until_client_leaves(&mut self) {
        let _ = tokio::io::copy(&mut self.client, &mut tokio::io::sink()).await;
    }

    async fn trickle(&mut self, bytes: usize) -> io::Result<Next> {
        let (mut up, mut byte) = (vec![0; 4096], [0]);
        let mut left = bytes;
        while left > 0 {
            tokio::select! {
                read = self.client.read(&mut up) => {
                    let count = read?;
                    if count == 0 {
                        return Ok(Next::Over);
                    }
                    self.server.write_all(&up[..count]).await?;
                }
                read = self.server.read(&mut byte) => {
                    if read? == 0 {
                        return Ok(Next::Over);
                    }
                    self.client.write_all(&byte).await?;
                    left -= 1;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
        Ok(Next::On)
    }
}
