//! Integration tests of the embedded API server: one binary, one module per subject.

mod golden;
