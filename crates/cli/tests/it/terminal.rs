//! A terminal for tests: tmux, on its own server.

use std::{
    process::{Command, Output},
    sync::atomic::{AtomicUsize, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

/// The program in a terminal of a given size. Dropping it closes the terminal.
pub(crate) struct Terminal {
    socket: String,
}

/// Interval at which the screen is read; a shorter one would slow down the program.
const INTERVAL: Duration = Duration::from_millis(100);
/// Bounds a failing test; nothing is expected to take this long.
const TIMEOUT: Duration = Duration::from_secs(60);

impl Terminal {
    /// Starts the program; prints a line and returns `None` if tmux is not installed.
    pub(crate) fn start(width: usize, height: usize, arguments: &str) -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        if Command::new("tmux").arg("-V").output().is_err() {
            println!("skipped: tmux is not installed");
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let terminal = Self { socket: format!("kube-informer-{}-{number}", std::process::id()) };
        let program = env!("CARGO_BIN_EXE_kube-informer");
        // The shell stays open, so that the exit code can be read.
        let command = format!("'{program}' {arguments}; echo ended with $?; cat");
        let (width, height) = (width.to_string(), height.to_string());
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height, &command]);
        Some(terminal)
    }

    pub(crate) fn press(&self, key: &str) {
        self.tmux(&["send-keys", key]);
    }

    pub(crate) fn resize(&self, width: usize, height: usize) {
        self.tmux(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    pub(crate) fn screen(&self) -> String {
        String::from_utf8_lossy(&self.tmux(&["capture-pane", "-p"]).stdout).into_owned()
    }

    /// Waits until the screen has the wanted content, and returns it.
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if wanted(&screen) {
                return screen;
            }
            assert!(started.elapsed() < TIMEOUT, "never saw {what}; the screen is\n{screen}");
            sleep(INTERVAL);
        }
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let output =
            Command::new("tmux").args(["-L", &self.socket]).args(arguments).output().expect("tmux runs");
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-L", &self.socket, "kill-server"]).output();
    }
}
