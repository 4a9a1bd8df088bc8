//! Frames of a WebSocket client.

use kube_embedded_apiserver::fuzzing;

/// One frame, unmasked.
#[derive(Debug, PartialEq, Eq)]
struct Frame {
    fin: bool,
    opcode: u8,
    masked: bool,
    payload: Vec<u8>,
}

const TEXT: u8 = 1;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// Reads one frame; `None` if it is incomplete. Reserved bits are part of the opcode, so that it is none that exists.
fn frame(data: &[u8]) -> Option<(Frame, &[u8])> {
    let (&[first, second], rest) = data.split_first_chunk()?;
    let (length, rest) = match second & 0x7f {
        126 => rest.split_first_chunk().map(|(bytes, rest)| (u64::from(u16::from_be_bytes(*bytes)), rest))?,
        127 => rest.split_first_chunk().map(|(bytes, rest)| (u64::from_be_bytes(*bytes), rest))?,
        short => (u64::from(short), rest),
    };
    let masked = second & 0x80 != 0;
    let (mask, rest) = match masked {
        true => rest.split_first_chunk::<4>().map(|(mask, rest)| (*mask, rest))?,
        false => ([0; 4], rest),
    };
    let (payload, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    let payload = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    Some((Frame { fin: first & 0x80 != 0, opcode: first & 0x7f, masked, payload }, rest))
}

fn frames(mut data: &[u8]) -> (Vec<Frame>, &[u8]) {
    let mut found = Vec::new();
    while let Some((one, rest)) = frame(data) {
        found.push(one);
        data = rest;
    }
    (found, data)
}

/// Whatever a client sends, the server sends whole, valid, unmasked frames: events, PONGs with what a PING had, and one Close at the end.
pub fn web_socket(data: &[u8]) {
    let (sent, _) = frames(data);
    let response = fuzzing::web_socket(data).expect("a server in this process starts");
    let (received, rest) = frames(&response);
    assert!(rest.is_empty(), "half a frame at the end: {rest:?}");
    for (i, frame) in received.iter().enumerate() {
        assert!(frame.fin && !frame.masked, "{frame:?}");
        match frame.opcode {
            TEXT => {
                let event: serde_json::Value =
                    serde_json::from_slice(&frame.payload).expect("an event is JSON");
                assert!(event["type"].is_string() && event["object"].is_object(), "{event}");
            }
            PONG => {
                let asked = sent.iter().any(|ping| ping.opcode == PING && ping.payload == frame.payload);
                assert!(asked && frame.payload.len() < 126, "a PONG without its PING: {frame:?}");
            }
            CLOSE => {
                assert_eq!(i, received.len() - 1, "nothing follows a Close");
                assert!(frame.payload.len() != 1 && frame.payload.len() < 126, "{frame:?}");
            }
            other => panic!("the server sent a frame with opcode {other}"),
        }
    }
}
