//! Runs each example and checks what it prints.

use std::process::Command;

/// Runs a program until it exits, and returns its output.
fn run(program: &str) -> String {
    let output = Command::new(program).output().expect("the example starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    out.into_owned()
}

/// Asserts that the output contains these parts, in this order.
fn assert_contains(out: &str, parts: &[&str]) {
    let mut rest = out;
    for part in parts {
        let at = rest.find(part).unwrap_or_else(|| panic!("no {part:?} after the earlier ones in:\n{out}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn services() {
    assert_contains(
        &run(env!("CARGO_BIN_EXE_01_services")),
        &["added default/cart", "updated default/cart", "deleted default/cart"],
    );
}

#[test]
fn nodes() {
    assert_contains(&run(env!("CARGO_BIN_EXE_02_nodes")), &["synced", "node-0", "node-1", "node-2"]);
}

#[test]
fn late_handlers() {
    assert_contains(
        &run(env!("CARGO_BIN_EXE_03_late_handlers")),
        &["early: + default/a", "late: + default/a (initial)", "late: + default/b"],
    );
}

#[test]
fn indexes_and_views() {
    assert_contains(
        &run(env!("CARGO_BIN_EXE_04_indexes_and_views")),
        &["node-0: 2 pods", "node-1: 1 pods", "images on node-0"],
    );
}

#[test]
fn dynamic() {
    assert_contains(
        &run(env!("CARGO_BIN_EXE_05_dynamic")),
        &["backups.example.com", "monday is of volume data", "kept for 7 days"],
    );
}

#[test]
fn shared_factory() {
    assert_contains(&run(env!("CARGO_BIN_EXE_06_shared_factory")), &["informers: 1"]);
}

#[test]
fn replica_sets() {
    let out = run(env!("CARGO_BIN_EXE_07_replica_sets"));
    assert_contains(
        &out,
        &["asked for 3, there are 3", "asked for 5, there are 5", "asked for 1, there are 1"],
    );
}

#[test]
fn writing_back() {
    assert_contains(
        &run(env!("CARGO_BIN_EXE_08_writing_back")),
        &[
            "edited: replicas 3, note none",
            "refused: Deployment default/web: cannot edit metadata.annotations",
            "applied: replicas 3, note reviewed, owner still shop",
        ],
    );
}

#[test]
fn operator() {
    assert_contains(
        &run(env!("CARGO_BIN_EXE_09_operator")),
        &[
            "register shop.example.com for ",
            "ready; its page is default/shop-page",
            "unregister the domain of default/shop",
            "deleted",
        ],
    );
}
