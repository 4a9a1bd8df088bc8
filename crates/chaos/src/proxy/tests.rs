use super::*;
use std::io::ErrorKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const RESPONSE: &[u8] = b"the whole response of the server";

/// Starts a server that responds to the first byte of each connection.
async fn server() -> SocketAddr {
    let listener = ports::listen().await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut byte = [0];
                if stream.read_exact(&mut byte).await.is_ok() {
                    stream.write_all(RESPONSE).await.unwrap();
                }
                // Keeps the connection open until the other side closes it.
                let _ = stream.read(&mut byte).await;
            });
        }
    });
    address
}

/// Returns the bytes that a client receives through a fault, up to `all`, and the end of the connection; `None` if it
/// is still open after that many bytes.
async fn receive(fault: Option<ConnectionFault>, all: usize) -> (Vec<u8>, Option<Result<(), ErrorKind>>) {
    let address = server().await;
    let report = Arc::new(Report::new());
    let proxy = Proxy::start(address, true, Arc::clone(&report)).await.unwrap();
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    while proxy.open_connections() == 0 {
        tokio::task::yield_now().await;
    }
    if let Some(fault) = fault {
        lock(&proxy.shared.open).values().for_each(|open| open.send(fault).unwrap());
    }
    let _ = client.write_all(b"?").await;
    let mut received = Vec::new();
    let mut end = None;
    while received.len() < all && end.is_none() {
        match client.read_buf(&mut received).await {
            Ok(0) => end = Some(Ok(())),
            Ok(_) => {}
            Err(error) => end = Some(Err(error.kind())),
        }
    }
    let injected = || -> u64 { Fault::ALL.iter().map(|fault| report.fault_count(*fault)).sum() };
    while injected() != u64::from(fault.is_some()) {
        tokio::task::yield_now().await;
    }
    if end.is_none() {
        assert_eq!(client.try_read(&mut [0]).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    }
    drop(client);
    while proxy.open_connections() > 0 {
        tokio::task::yield_now().await;
    }
    (received, end)
}

#[tokio::test]
async fn without_a_storm_all_bytes_are_forwarded() {
    assert_eq!(receive(None, RESPONSE.len()).await, (RESPONSE.to_vec(), None));
}

#[tokio::test]
async fn each_fault_ends_the_connection_as_documented() {
    let (received, end) = receive(Some(ConnectionFault::Reset { after: 5 }), 6).await;
    assert!(received.len() <= 5 && end == Some(Err(ErrorKind::ConnectionReset)), "{received:?} {end:?}");
    assert_eq!(
        receive(Some(ConnectionFault::Cut { after: 5 }), 6).await,
        (RESPONSE[..5].to_vec(), Some(Ok(())))
    );
    assert_eq!(
        receive(Some(ConnectionFault::HalfClose { after: 3 }), 4).await,
        (RESPONSE[..3].to_vec(), Some(Ok(())))
    );
    assert_eq!(receive(Some(ConnectionFault::Mute), 0).await, (Vec::new(), None));
    assert_eq!(
        receive(Some(ConnectionFault::BlackHole { after: 7 }), 7).await,
        (RESPONSE[..7].to_vec(), None)
    );
    assert_eq!(
        receive(Some(ConnectionFault::Trickle { bytes: 9 }), RESPONSE.len()).await,
        (RESPONSE.to_vec(), None)
    );
}

#[tokio::test]
async fn connections_are_refused_until_it_listens_again() {
    let address = server().await;
    let mut proxy = Proxy::start(address, true, Arc::new(Report::new())).await.unwrap();
    proxy.refuse().await;
    let refused = TcpStream::connect(proxy.address()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    proxy.listen().await.unwrap();
    TcpStream::connect(proxy.address()).await.unwrap();
}
