use super::*;
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const SAID: &[u8] = b"what the server says, all of it";

/// A server that answers each connection's first byte, and then says whether it was left alone.
async fn server() -> (SocketAddr, mpsc::UnboundedReceiver<&'static str>) {
    let listener = ports::listen().await.unwrap();
    let address = listener.local_addr().unwrap();
    let (send, ends) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let send = send.clone();
            tokio::spawn(async move {
                let mut byte = [0];
                if stream.read_exact(&mut byte).await.is_ok() {
                    stream.write_all(SAID).await.unwrap();
                }
                let end = stream.read(&mut byte).await;
                let _ = send.send(if matches!(end, Ok(0)) { "closed" } else { "broken" });
            });
        }
    });
    (address, ends)
}

/// What a client gets that meets a fate, and how that ends; `None` if it has got all that there is to come and the
/// connection is still open.
async fn met(fate: Option<Fate>, all: usize) -> (Vec<u8>, Option<Result<(), ErrorKind>>) {
    let (address, _ends) = server().await;
    let ledger = Arc::new(Ledger::new());
    let proxy = Proxy::start(address, true, Arc::clone(&ledger)).await.unwrap();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    while proxy.open() == 0 {
        tokio::task::yield_now().await;
    }
    if let Some(fate) = fate {
        lock(&proxy.shared.open).values().for_each(|open| open.send(fate).unwrap());
    }
    let _ = client.write_all(b"?").await;
    let mut got = Vec::new();
    let mut end = None;
    while got.len() < all && end.is_none() {
        match client.read_buf(&mut got).await {
            Ok(0) => end = Some(Ok(())),
            Ok(_) => {}
            Err(error) => end = Some(Err(error.kind())),
        }
    }
    let struck = || -> u64 { Fault::ALL.iter().map(|fault| ledger.struck(*fault)).sum() };
    while struck() != u64::from(fate.is_some()) {
        tokio::task::yield_now().await;
    }
    if end.is_none() {
        assert_eq!(client.try_read(&mut [0]).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    }
    drop(client);
    while proxy.open() > 0 {
        tokio::task::yield_now().await;
    }
    (got, end)
}

#[tokio::test]
async fn without_a_storm_everything_goes_through() {
    assert_eq!(met(None, SAID.len()).await, (SAID.to_vec(), None));
}

#[tokio::test]
async fn each_fate_is_what_it_says() {
    let (got, end) = met(Some(Fate::Reset { after: 5 }), 6).await;
    assert!(got.len() <= 5 && end == Some(Err(ErrorKind::ConnectionReset)), "{got:?} {end:?}");
    assert_eq!(met(Some(Fate::Cut { after: 5 }), 6).await, (SAID[..5].to_vec(), Some(Ok(()))));
    assert_eq!(met(Some(Fate::HalfClose { after: 3 }), 4).await, (SAID[..3].to_vec(), Some(Ok(()))));
    assert_eq!(met(Some(Fate::Mute), 0).await, (Vec::new(), None));
    assert_eq!(met(Some(Fate::BlackHole { after: 7 }), 7).await, (SAID[..7].to_vec(), None));
    assert_eq!(met(Some(Fate::Trickle { bytes: 9 }), SAID.len()).await, (SAID.to_vec(), None));
}

#[tokio::test]
async fn refused_is_refused_and_then_no_longer() {
    let (address, _ends) = server().await;
    let mut proxy = Proxy::start(address, true, Arc::new(Ledger::new())).await.unwrap();
    proxy.refuse().await;
    let refused = TcpStream::connect(proxy.address()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    proxy.listen().await.unwrap();
    TcpStream::connect(proxy.address()).await.unwrap();
}
