//! Watches over WebSocket, with honest and with hostile clients.

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;

const WATCH: &str = "/api/v1/configmaps?watch=1&resourceVersion=0&timeoutSeconds=86400";
/// A key and its response, from RFC 6455.
const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
const ACCEPT: &str = "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// Sends a request with an upgrade to WebSocket. Returns the stream and the head of the response.
async fn upgrade(served: &mut Served, path: &str, headers: &str) -> (DuplexStream, String) {
    let mut client = served.client.take().expect("one client");
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: server\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n{headers}\r\n"
    );
    client.write_all(request.as_bytes()).await.expect("sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.expect("a response"));
    }
    (client, String::from_utf8(head).expect("ASCII"))
}

/// Opens a watch.
async fn open(served: &mut Served, headers: &str) -> WebSocketStream<DuplexStream> {
    let (stream, head) = upgrade(served, WATCH, &format!("{KEY}{headers}")).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.contains(ACCEPT), "{head}");
    WebSocketStream::from_raw_socket(stream, Role::Client, None).await
}

fn json(message: &Message) -> Value {
    serde_json::from_str(message.to_text().expect("text")).expect("JSON")
}

#[tokio::test(start_paused = true)]
async fn each_event_is_one_text_message() {
    let mut served = connect_with(None).await;
    served.store("small", "1".to_owned()).await;
    served.store("large", "x".repeat(200_000)).await;
    let mut socket = open(&mut served, "").await;
    for (name, size) in [("large", 200_000), ("small", 1)] {
        let event = json(&socket.next().await.expect("an event").expect("no error"));
        assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&"ADDED".into(), &name.into()));
        assert_eq!(event["object"]["data"]["k"].as_str().map(str::len), Some(size));
    }
    socket.send(Message::Ping("still there?".into())).await.expect("sent");
    socket.send(Message::text("a watch has no use for this")).await.expect("sent");
    assert!(!served.is_closed_after(HOUR).await, "an open watch is not idle");
    let pong = socket.next().await.expect("a pong").expect("no error");
    assert_eq!(pong, Message::Pong("still there?".into()));
    socket.close(None).await.expect("closed");
    assert!(served.is_closed_after(MINUTE).await);
}

#[tokio::test(start_paused = true)]
async fn protobuf_events_are_binary_messages_without_a_length() {
    let mut served = connect_with(None).await;
    served.store("a", "1".to_owned()).await;
    let mut socket = open(&mut served, "Accept: application/vnd.kubernetes.protobuf;stream=watch\r\n").await;
    let event = socket.next().await.expect("an event").expect("no error").into_data();
    assert_eq!(&event[..7], b"\x0a\x05ADDED", "field 1 of a WatchEvent");
}

#[tokio::test(start_paused = true)]
async fn a_token_may_be_a_subprotocol_and_the_other_one_is_selected() {
    use base64::Engine as _;
    let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(TOKEN);
    let protocols =
        format!("Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{token}, mine\r\n");
    let mut served = connect().await;
    let (_, head) = upgrade(&mut served, WATCH, &format!("{KEY}{protocols}")).await;
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("sec-websocket-protocol: mine\r\n"), "{head}");
    let mut served = connect().await;
    let (_, head) = upgrade(&mut served, WATCH, KEY).await;
    assert!(head.starts_with("HTTP/1.1 401 "), "{head}");
}

#[tokio::test(start_paused = true)]
async fn requests_that_cannot_be_upgraded_get_an_ordinary_response() {
    let two = format!("{KEY}Sec-WebSocket-Protocol: a, b\r\n");
    for (path, headers, status) in [
        (WATCH, "", "400"),
        (WATCH, "Sec-WebSocket-Key: x\r\nSec-WebSocket-Version: 8\r\n", "400"),
        (WATCH, "Sec-WebSocket-Version: 13\r\n", "400"),
        (WATCH, &*two, "400"),
        ("/api/v1/configmaps", KEY, "200"),
        ("/api/v1/nothing?watch=1", KEY, "404"),
        ("/api/v1/configmaps?watch=1&resourceVersion=x", KEY, "500"),
    ] {
        let mut served = connect_with(None).await;
        let (_, head) = upgrade(&mut served, path, headers).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {head}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_closes_the_socket() {
    let mut served = connect_with(None).await;
    let mut socket = open(&mut served, "").await;
    served.api.shutdown.begin();
    served.stop.send(true).expect("the connection is open");
    let mut last = socket.next().await;
    while matches!(&last, Some(Ok(message)) if message.is_text()) {
        last = socket.next().await;
    }
    assert!(matches!(last, Some(Ok(Message::Close(_)))), "{last:?}");
    assert!(served.is_closed_after(MINUTE).await);
}

#[tokio::test(start_paused = true)]
async fn malformed_frames_close_the_connection_and_nothing_else() {
    let masked = |first: u8, payload: &[u8]| {
        let mut frame = vec![first, 0x80 | 126];
        frame.extend(u16::try_from(payload.len()).expect("short").to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(payload);
        frame
    };
    let endless_fragments = [masked(0x01, &[b'x'; 40_000]), masked(0x00, &[b'x'; 40_000])].concat();
    for (what, bytes) in [
        ("an unmasked frame", b"\x81\x01a".to_vec()),
        ("a reserved opcode", b"\x83\x80\0\0\0\0".to_vec()),
        ("a reserved bit", b"\xc1\x80\0\0\0\0".to_vec()),
        ("a length of 2^63 bytes", b"\x82\xff\x80\0\0\0\0\0\0\0\0\0\0\0".to_vec()),
        ("a message that announces 1 GiB", b"\x82\xff\0\0\0\0\x40\0\0\0\0\0\0\0".to_vec()),
        ("a continuation without a beginning", b"\x80\x80\0\0\0\0".to_vec()),
        ("a fragmented ping", b"\x09\x80\0\0\0\0".to_vec()),
        ("a ping of 126 bytes", masked(0x89, &[0; 126])),
        ("text that is not UTF-8", masked(0x81, b"\xff\xfe")),
        ("a close code that does not exist", masked(0x88, &[0, 1])),
        ("fragments beyond the limit", endless_fragments),
    ] {
        let mut served = connect_with(None).await;
        let (mut stream, head) = upgrade(&mut served, WATCH, KEY).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        // The server may close the connection before it has read everything.
        let _ = stream.write_all(&bytes).await;
        let mut rest = Vec::new();
        let read = timeout(MINUTE, stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok(), "{what}");
        assert!(served.is_closed_after(MINUTE).await, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_only_sends_pings_still_receives_events() {
    let mut served = connect_with(None).await;
    let mut socket = open(&mut served, "").await;
    let mut seen = false;
    for n in 0..200 {
        if n == 100 {
            served.store("a", "1".to_owned()).await;
        }
        socket.send(Message::Ping(Bytes::new())).await.expect("sent");
        seen |= socket.next().await.expect("a message").expect("no error").is_text();
    }
    assert!(seen);
}

/// A masked frame with its length in the shortest form.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [7, 0, 255, 42];
    let mut frame = vec![first];
    match u8::try_from(payload.len()) {
        Ok(length @ 0..126) => frame.push(0x80 | length),
        _ => {
            frame.push(0x80 | 126);
            frame.extend(u16::try_from(payload.len()).expect("short").to_be_bytes());
        }
    }
    frame.extend(MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// A client may send what it wants in any pieces: the watch goes on, and every PING gets its PONG.
#[tokio::test(start_paused = true)]
async fn valid_frames_in_any_pieces_keep_the_watch_open() {
    let mut served = connect_with(None).await;
    let (mut stream, head) = upgrade(&mut served, WATCH, KEY).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    let frames = [
        masked(0x81, "text é".as_bytes()),
        masked(0x82, &[0, 255, 1]),
        masked(0x01, "fragm".as_bytes()),
        masked(0x89, b"between"),
        masked(0x00, b"ent"),
        masked(0x80, b"s"),
        masked(0x01, &[0xc3]),
        masked(0x80, &[0xa9]),
        masked(0x8a, b"a pong that nobody asked for"),
        masked(0x82, &[9; 40_000]),
        masked(0x89, b""),
    ];
    for byte in frames[..9].concat() {
        stream.write_all(&[byte]).await.expect("sent");
    }
    stream.write_all(&frames[9..].concat()).await.expect("sent");
    served.store("later", "1".to_owned()).await;
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
    let (mut pongs, mut events) = (Vec::new(), 0);
    while events == 0 || pongs.len() < 2 {
        match socket.next().await.expect("a message").expect("no error") {
            Message::Pong(payload) => pongs.push(payload),
            Message::Text(_) => events += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(pongs, [Bytes::from_static(b"between"), Bytes::new()]);
    assert!(!served.is_closed_after(HOUR).await);
}

/// A Close gets a Close with the same code, and nothing after it.
#[tokio::test(start_paused = true)]
async fn a_close_is_answered_with_its_code() {
    for code in [1000_u16, 1001, 1002, 1003, 1007, 1008, 1009, 1011, 3000, 4999] {
        let mut served = connect_with(None).await;
        let (mut stream, _) = upgrade(&mut served, WATCH, KEY).await;
        let reason = [&code.to_be_bytes()[..], b"bye"].concat();
        let frames = [masked(0x88, &reason), masked(0x89, b"too late")].concat();
        stream.write_all(&frames).await.expect("sent");
        let mut rest = Vec::new();
        timeout(MINUTE, stream.read_to_end(&mut rest)).await.expect("the server closes").expect("no error");
        assert_eq!(&rest[..1], [0x88], "{code}: only a Close: {rest:?}");
        assert_eq!(rest[2..4], code.to_be_bytes(), "{code}");
        assert!(served.is_closed_after(MINUTE).await, "{code}");
    }
}

/// Codes that no endpoint may send, and reasons that are not text, are errors of the protocol.
#[tokio::test(start_paused = true)]
async fn a_malformed_close_ends_the_connection() {
    let close = |payload: &[u8]| masked(0x88, payload);
    let code = |code: u16| close(&code.to_be_bytes());
    for (what, frame) in [
        ("one byte", close(&[3])),
        ("code 0", code(0)),
        ("code 999", code(999)),
        ("code 1005", code(1005)),
        ("code 1006", code(1006)),
        ("code 1015", code(1015)),
        ("code 2999", code(2999)),
        ("code 65535", code(65_535)),
        ("a reason that is not text", close(&[3, 232, 255])),
        ("a reason that is too long", masked(0x88, &[[3, 232].as_slice(), &[b'x'; 124]].concat())),
        ("a fragment", masked(0x08, &[3, 232])),
    ] {
        let mut served = connect_with(None).await;
        let (mut stream, _) = upgrade(&mut served, WATCH, KEY).await;
        stream.write_all(&frame).await.expect("sent");
        let mut rest = Vec::new();
        let read = timeout(MINUTE, stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok() && served.is_closed_after(MINUTE).await, "{what}");
    }
}

/// A client that goes away in the middle of a frame, or of a handshake, leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn a_client_that_disappears_frees_its_watch() {
    let whole = masked(0x82, &[1; 300]);
    for cut in [0, 1, 3, 7, 8, 100] {
        let mut served = connect_with(None).await;
        let (mut stream, _) = upgrade(&mut served, WATCH, KEY).await;
        stream.write_all(&whole[..cut]).await.expect("sent");
        drop(stream);
        assert!(served.is_closed_after(MINUTE).await, "after {cut} bytes");
    }
}
