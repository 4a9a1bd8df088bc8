//! One connection through the proxy and its faults.

use crate::report::{Fault, Report};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
};

/// A fault of a connection. `after` is the number of bytes from the server to the client that precede it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionFault {
    /// RST; bytes in flight are lost.
    Reset { after: usize },
    /// FIN in both directions.
    Cut { after: usize },
    /// No bytes from now on, in either direction.
    Mute,
    /// No bytes after the first ones.
    BlackHole { after: usize },
    /// This many bytes arrive one at a time.
    Trickle { bytes: usize },
    /// FIN to the client, which may continue to send.
    HalfClose { after: usize },
    /// FIN to the server, whose response is still forwarded.
    HalfCloseServer,
}

/// The longest trickle: long enough to split every line of a few events, short enough not to take minutes.
const MAX_TRICKLE: usize = 1500;

impl ConnectionFault {
    /// Returns a random fault; a silent connection only if that is allowed.
    pub(crate) fn random(rng: &mut fastrand::Rng, allow_silence: bool) -> Self {
        // Every magnitude is equally likely: headers, a few events, a list.
        let magnitude = rng.u32(4..16);
        let after = rng.usize(0..1 << magnitude);
        match rng.u8(0..if allow_silence { 9 } else { 7 }) {
            0 | 1 => Self::Reset { after },
            2 | 3 => Self::Cut { after },
            4 => Self::Trickle { bytes: rng.usize(100..MAX_TRICKLE) },
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

    /// The number of bytes to the client that precede it.
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
    faults: mpsc::UnboundedReceiver<ConnectionFault>,
    report: &'a Report,
}

/// Whether the connection continues after a fault.
#[derive(PartialEq, Eq)]
enum Next {
    Continue,
    Close,
}

impl<'a> Connection<'a> {
    pub(crate) fn new(
        client: TcpStream,
        server: TcpStream,
        faults: mpsc::UnboundedReceiver<ConnectionFault>,
        report: &'a Report,
    ) -> Self {
        // A trickle must arrive as packets of one byte.
        let _ = client.set_nodelay(true);
        Self { client, server, faults, report }
    }

    /// Forwards bytes until either side or a fault closes the connection.
    pub(crate) async fn forward(mut self, first: Option<ConnectionFault>) {
        // The next fault, and the bytes to the client that precede it.
        let mut next = first.map(|fault| (fault, fault.after()));
        let (mut up, mut down) = (vec![0; 16 << 10], vec![0; 16 << 10]);
        loop {
            if let Some((due, 0)) = next {
                next = None;
                self.report.record_fault(due.fault());
                if self.inject(due).await != Ok(Next::Continue) {
                    return;
                }
            }
            let room = next.map_or(down.len(), |(_, after)| after.min(down.len()));
            tokio::select! {
                biased;
                Some(fault) = self.faults.recv(), if next.is_none() => next = Some((fault, fault.after())),
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
                    next = next.map(|(due, after)| (due, after - count));
                }
            }
        }
    }

    async fn inject(&mut self, fault: ConnectionFault) -> Result<Next, ()> {
        match fault {
            ConnectionFault::Reset { .. } => {
                // Makes the drop send RST instead of FIN.
                let _ = self.client.set_zero_linger();
                Ok(Next::Close)
            }
            ConnectionFault::Cut { .. } => Ok(Next::Close),
            ConnectionFault::Mute | ConnectionFault::BlackHole { .. } => {
                self.wait_for_client_close().await;
                Ok(Next::Close)
            }
            ConnectionFault::Trickle { bytes } => self.trickle(bytes).await.map_err(drop),
            ConnectionFault::HalfClose { .. } => {
                self.client.shutdown().await.map_err(drop)?;
                self.wait_for_client_close().await;
                Ok(Next::Close)
            }
            ConnectionFault::HalfCloseServer => {
                self.server.shutdown().await.map_err(drop)?;
                let _ = tokio::io::copy(&mut self.server, &mut self.client).await;
                Ok(Next::Close)
            }
        }
    }

    async fn wait_for_client_close(&mut self) {
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
                        return Ok(Next::Close);
                    }
                    self.server.write_all(&up[..count]).await?;
                }
                read = self.server.read(&mut byte) => {
                    if read? == 0 {
                        return Ok(Next::Close);
                    }
                    self.client.write_all(&byte).await?;
                    left -= 1;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
        Ok(Next::Continue)
    }
}
