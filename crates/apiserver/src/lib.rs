//! An API server with true LIST and WATCH semantics that starts in milliseconds inside a test.
