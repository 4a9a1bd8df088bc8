//! How long a reflector waits for a server.

use std::time::Duration;

/// How long an informer waits for its server.
///
/// Every deadline of its requests is here, except that of the body of an error response, which is 5 s, and the pings
/// of connections.
///
/// `Duration::MAX` waits without limit. Set the fields of a default value:
///
/// ```
/// use kube_informer::{Kind, testing::FakeSource};
/// use std::time::Duration;
///
/// # let source = FakeSource::new(Kind::namespaced("", "v1", "ConfigMap", "configmaps"));
/// let informer = source.informer::<serde_json::Value>(|builder| {
///     builder.deadlines(|deadlines| deadlines.list_response = Duration::from_secs(300))
/// });
/// # let _ = informer;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deadlines {
    /// For the response headers of a LIST; 75 s by default. kube-apiserver ends a LIST with an error after 60 s, which
    /// is worth waiting for.
    pub list_response: Duration,
    /// For the next item of a LIST, and for its end after the last one; 60 s by default.
    pub list_item: Duration,
    /// For the response headers of a WATCH; 30 s by default.
    pub watch_response: Duration,
    /// For the next event of a streaming list until it is complete; 15 s by default. A streaming list that misses this
    /// deadline, or the next one, is replaced by a LIST, and no other one is tried.
    pub streaming_list_event: Duration,
    /// For a complete streaming list; 60 s by default. A streaming list may take longer while each of its objects comes
    /// within `streaming_list_event` of the one before.
    pub streaming_list: Duration,
    /// For the end of a WATCH, from the timeout that the request asked for; 15 s by default. A watch that lasts longer
    /// is dead.
    pub watch_end: Duration,
    /// For the end of a WATCH whose request has no timeout, because
    /// [`tweak_watch`](crate::InformerBuilder::tweak_watch) removed it; an hour by default, which is as long as
    /// kube-apiserver keeps such a watch open. `watch_end` is added.
    pub watch_without_timeout: Duration,
    /// For an event or a bookmark that shows that the server has reached the version at which a watch was opened; 90 s
    /// by default, counted over successive watches. Then the server is asked for its version: a server that was
    /// restored from a backup may be behind, and sends nothing until it has passed that version.
    pub probe_after: Duration,
    /// For the response to that request; 30 s by default. A probe that misses it is not repeated for that watch.
    pub probe: Duration,
    /// For the proof that a restored cache shows the state of the server, from the first response on; 30 s by default. Then
    /// the collection is listed, and compared with what was restored.
    pub restored: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            list_response: Duration::from_secs(75),
            list_item: Duration::from_secs(60),
            watch_response: Duration::from_secs(30),
            streaming_list_event: Duration::from_secs(15),
            streaming_list: Duration::from_secs(60),
            watch_end: Duration::from_secs(15),
            watch_without_timeout: Duration::from_secs(3600),
            probe_after: Duration::from_secs(90),
            probe: Duration::from_secs(30),
            restored: Duration::from_secs(30),
        }
    }
}
