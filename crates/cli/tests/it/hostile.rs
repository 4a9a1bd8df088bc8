//! A hostile server: nothing that it sends may reach the terminal as a control character.

use crate::{
    process::{kubeconfig, program},
    watch::discovery,
};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Escape sequences, line breaks, a C1 control, DEL, and marks of the text direction.
const HOSTILE: &str = "x\x1b]0;owned\x07\x1b[2J\r\n+ pods forged\u{9b}31m\u{7f}\u{202e}\u{2066}\u{2028}";

#[derive(Clone, Copy)]
enum Attack {
    /// Hostile objects and events, then hostile errors.
    Objects,
    /// A hostile error instead of a list.
    ListError,
    /// A hostile error instead of discovery.
    DiscoveryError,
}

fn pod(name: &str, version: u64, fields: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "spec": fields, "metadata":
        {"name": name, "namespace": format!("ns{HOSTILE}"), "uid": format!("u-{name}"), "resourceVersion": version.to_string()}})
}

fn event(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

/// The streaming list with two pods and an item without a name, then changes of both pods, then an error.
fn watch_events() -> String {
    let name = format!("pod{HOSTILE}");
    let end = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "10",
        "annotations": {"k8s.io/initial-events-end": "true"}}});
    [
        event("ADDED", &pod(&name, 1, json!({"a": "1"}))),
        event("ADDED", &pod("final", 2, json!({}))),
        event("ADDED", &json!({"kind": "Pod", "apiVersion": "v1", "metadata": {HOSTILE: "3"}})),
        event("BOOKMARK", &end),
        event(
            "MODIFIED",
            &pod(&name, 11, json!({HOSTILE: HOSTILE, "list": [{"name": HOSTILE, "v": 1}], "node": HOSTILE})),
        ),
        event("DELETED", &pod(&name, 12, json!({}))),
        event("MODIFIED", &pod("final", 13, json!({"last": "event"}))),
        event("ERROR", &status(500)),
    ]
    .concat()
}

fn status(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": format!("Reason{HOSTILE}"), "code": code,
        "message": format!("message{HOSTILE}"), "metadata": {}})
}

/// Serves the attack, and returns the URL.
fn serve(attack: Attack) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let watches = Arc::new(AtomicUsize::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let watches = Arc::clone(&watches);
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|read| read > 0) {}
                let path = head.split_whitespace().nth(1).unwrap_or_default();
                let (code, body) = response(attack, path, &watches);
                let kind = if path.starts_with("/api?") || path == "/api" || path == "/apis" {
                    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
                } else {
                    "application/json"
                };
                // The client may have closed the connection.
                let _ = reader.get_mut().write_all(
                    format!("HTTP/1.1 {code} X\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n{body}")
                        .as_bytes(),
                );
            });
        }
    });
    format!("http://{address}")
}

fn response(attack: Attack, path: &str, watches: &AtomicUsize) -> (u16, String) {
    match (attack, path) {
        (Attack::DiscoveryError, _) => (403, status(403).to_string()),
        (_, "/api") => (200, discovery(true).to_string()),
        (_, "/apis") => (200, discovery(false).to_string()),
        (Attack::Objects, path) if path.contains("watch=") && watches.fetch_add(1, Ordering::SeqCst) == 0 => {
            (200, watch_events())
        }
        (Attack::Objects, _) => (500, status(500).to_string()),
        (Attack::ListError, _) => (403, status(403).to_string()),
    }
}

/// Runs `watch` until both streams contain the parts, and returns all bytes of both.
fn run(attack: Attack, arguments: &[&str], until: Option<(&str, &str)>) -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, kubeconfig(&serve(attack))).unwrap();
    let mut command = program(&["watch", "pods", "-A", "--log", "debug"]);
    command.args(arguments).env("KUBECONFIG", &path).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (mut out_bytes, mut err_bytes) = (Vec::new(), Vec::new());
    if let Some((out_part, err_part)) = until {
        let err_part = err_part.to_owned();
        let reader = std::thread::spawn(move || {
            let bytes = read_until(&mut err, &err_part);
            (err, bytes)
        });
        out_bytes = read_until(&mut out, out_part);
        (err, err_bytes) = reader.join().unwrap();
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    }
    out.read_to_end(&mut out_bytes).unwrap();
    err.read_to_end(&mut err_bytes).unwrap();
    child.wait().unwrap();
    (out_bytes, err_bytes)
}

fn read_until(stream: &mut impl Read, part: &str) -> Vec<u8> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&bytes).contains(part) {
        let read = stream.read(&mut chunk).unwrap();
        assert!(read > 0, "ended without {part:?}: {}", String::from_utf8_lossy(&bytes));
        bytes.extend(&chunk[..read]);
    }
    bytes
}

/// Asserts that a stream has only line breaks of its own and nothing else that a terminal interprets.
fn assert_harmless(stream: &str, bytes: Vec<u8>) -> String {
    let text = String::from_utf8(bytes).expect("the output is UTF-8");
    let bad = |c: char| {
        c != '\n'
            && (c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}'))
    };
    assert!(!text.contains(bad), "{stream}: {text:?}");
    assert!(text.lines().all(|line| !line.starts_with("+ pods forged")), "{stream}: {text:?}");
    text
}

#[test]
fn hostile_objects_are_escaped_in_every_format() {
    for (format, last) in [
        ("changes", "spec.last"),
        ("name", "/final"),
        ("json", "\"last\":\"event\""),
        ("yaml", "last: event"),
    ] {
        let arguments = ["-o", format, "--index", "spec.node"];
        let (out, err) = run(Attack::Objects, &arguments, Some((last, "lost the server")));
        let (out, err) = (assert_harmless(format, out), assert_harmless("stderr", err));
        assert!(out.contains("owned"), "{format}: the hostile name is shown: {out}");
        assert!(err.contains("left out 1 items"), "{format}: {err}");
        assert!(err.contains("message"), "{format}: the hostile message is shown: {err}");
    }
}

#[test]
fn hostile_errors_are_escaped() {
    for attack in [Attack::ListError, Attack::DiscoveryError] {
        let (out, err) = run(attack, &[], None);
        assert_eq!(assert_harmless("stdout", out), "");
        let err = assert_harmless("stderr", err);
        assert!(err.contains(r"message") && err.contains(r"\u{1b}"), "{err}");
    }
}
