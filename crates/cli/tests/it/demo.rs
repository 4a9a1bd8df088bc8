//! `kube-informer demo`, with and without a terminal.

use crate::{
    process::{Running, program, run, text},
    terminal::Terminal,
};

#[test]
fn without_a_terminal_it_prints_lines_and_a_summary() {
    let output = run(&["demo", "--for", "8s"]);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for part in ["pods live", "all watches are cut", "after 8s", "events coalesced"] {
        assert!(out.contains(part), "no {part:?} in\n{out}");
    }
    let pods =
        out.lines().rev().find(|line| line.trim_start().starts_with("pods")).expect("a line about pods");
    let objects: usize = pods.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!((5..80).contains(&objects), "{pods}");
}

#[test]
fn control_c_ends_it_cleanly() {
    let mut demo = Running::start(program(&["demo", "--plain"]));
    demo.out("pods live");
    let (code, err) = demo.interrupt();
    assert_eq!((code, err), (Some(0), Vec::new()));
}

const STAGES: [&str; 6] = ["Reflector", "Handlers", "WorkQueue", "Latest events", "pods", "q quit"];

#[test]
fn the_live_view_shows_every_stage_and_survives_a_resize() {
    for (width, height) in [(80, 24), (140, 45)] {
        let Some(terminal) = Terminal::start(width, height, "demo") else { return };
        let screen = terminal.until("the pipeline at work", |screen| {
            STAGES.iter().all(|stage| screen.contains(stage))
                && screen.contains("live")
                && screen.contains("pod default/")
        });
        assert!(screen.lines().all(|line| line.chars().count() <= width), "{screen}");

        terminal.resize(100, 30);
        terminal.until("the pipeline after a resize", |screen| {
            let keys = screen.lines().position(|line| line.contains("q quit"));
            keys == Some(29) && STAGES.iter().all(|stage| screen.contains(stage))
        });
        terminal.press("q");
        terminal.until("the end", |screen| screen.contains("ended with 0"));
    }
}

#[test]
fn keys_inject_visible_faults() {
    let Some(terminal) = Terminal::start(120, 50, "demo") else { return };
    terminal.until("pods", |screen| screen.contains("pod default/"));
    terminal.press("w");
    terminal.until("cut watches", |screen| screen.contains("all watches are cut"));
    terminal.press("e");
    terminal.until("a relist", |screen| screen.contains("relist of pods (expired)"));
    terminal.press("s");
    terminal.until("a stalled handler", |screen| screen.contains("stalled"));
    terminal.press("s");
    terminal.until("a handler that goes on", |screen| !screen.contains("stalled"));
    terminal.press("+");
    terminal.until("a scaled deployment", |screen| screen.contains("is scaled from"));
    terminal.press("C-c");
    terminal.until("the end", |screen| screen.contains("ended with 0"));
}
