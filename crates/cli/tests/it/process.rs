//! Runs the program.

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio},
};

/// The program, without environment variables that change its behaviour.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kube-informer"));
    command.args(arguments).stdin(Stdio::null());
    for variable in
        ["KUBECONFIG", "RUST_LOG", "NO_COLOR", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"]
    {
        command.env_remove(variable);
    }
    // Without the default kubeconfig too.
    command.env("HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Runs the program until it exits.
pub(crate) fn run(arguments: &[&str]) -> Output {
    program(arguments).output().expect("the program starts")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A kubeconfig for a server without authentication.
pub(crate) fn kubeconfig(url: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: a, cluster: {{server: '{url}'}}}}]\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\nusers: [{{name: a, user: {{}}}}]\ncurrent-context: a\n"
    )
}

/// A running program; killed when dropped.
pub(crate) struct Running {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
    err: Lines<BufReader<ChildStderr>>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let out = BufReader::new(child.stdout.take().expect("piped")).lines();
        let err = BufReader::new(child.stderr.take().expect("piped")).lines();
        Self { child, out, err }
    }

    /// The next line of standard output that contains `part`.
    pub(crate) fn out(&mut self, part: &str) -> String {
        find(&mut self.out, part)
    }

    /// The next line of standard error that contains `part`.
    pub(crate) fn err(&mut self, part: &str) -> String {
        find(&mut self.err, part)
    }

    /// Closes the pipe that is the standard input, and waits for the exit code.
    pub(crate) fn close_input(mut self) -> Option<i32> {
        drop(self.child.stdin.take().expect("piped"));
        self.child.wait().expect("the program ends").code()
    }

    /// Sends SIGINT and waits for the exit code. Returns it with the unread lines of standard error.
    pub(crate) fn interrupt(mut self) -> (Option<i32>, Vec<String>) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().expect("kill is there");
        assert!(sent.success());
        let code = self.child.wait().expect("the program ends").code();
        let rest = self.err.by_ref().map_while(Result::ok).collect();
        (code, rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find(lines: &mut Lines<impl BufRead>, part: &str) -> String {
    let mut before = Vec::new();
    for line in lines.map_while(Result::ok) {
        if line.contains(part) {
            return line;
        }
        before.push(line);
    }
    panic!("ended without {part:?}, after {before:#?}");
}
