//! The contenders and their programs.

use anyhow::{Context, bail};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// A contender: a program and its arguments.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) variant: &'static str,
    /// Whether all stages are measured, not only the short ones.
    pub(crate) thorough: bool,
    /// The program and its first arguments, or the reason why it is missing.
    pub(crate) program: Result<(PathBuf, Vec<&'static str>), String>,
}

impl Peer {
    pub(crate) fn label(&self) -> String {
        format!("{}/{}", self.name, self.variant)
    }
}

/// All informers. Builds the programs of the peers.
pub(crate) fn all(only: &[String]) -> anyhow::Result<Vec<Peer>> {
    let builds: [(_, &[_], Build); 2] =
        [("kube-rs", &["json", "tuned"], kube_rs), ("client-go", &["json", "proto", "tuned"], client_go)];
    build_all(only, &["packed", "json", "tuned", "raw", "decoded"], &builds)
}

/// The variant that is a program with a store of pods, not a controller.
pub(crate) const REFLECTOR: &str = "reflector";

/// All controllers, and a program with a store of pods. Builds the programs of the peers.
pub(crate) fn controllers(only: &[String]) -> anyhow::Result<Vec<Peer>> {
    let builds: [(_, &[_], Build); 2] = [
        ("kube-rs", &["controller", REFLECTOR], kube_rs),
        ("controller-runtime", &["controller"], controller_runtime),
    ];
    build_all(only, &["controller", "drop-in", REFLECTOR], &builds)
}

fn build_all(
    only: &[String],
    own_variants: &[&'static str],
    builds: &[(&'static str, &[&'static str], Build)],
) -> anyhow::Result<Vec<Peer>> {
    let own = std::env::current_exe()?;
    let out = own.parent().context("a program without a directory")?.join("peers");
    let wanted = |name: &str, variant: &str| {
        only.is_empty() || only.iter().any(|word| word == name || *word == format!("{name}/{variant}"))
    };
    let thorough = |name: &str, variant: &str| {
        let main = if name == "kube-informer" { "packed" } else { "json" };
        variant == main || only.contains(&format!("{name}/{variant}"))
    };
    let mut peers = Vec::new();
    let mut add = |name, variant, program| {
        peers.push(Peer { name, variant, thorough: thorough(name, variant), program });
    };
    for variant in own_variants {
        if wanted("kube-informer", variant) {
            add("kube-informer", *variant, Ok((own.clone(), vec!["contender"])));
        }
    }
    for (name, variants, build) in builds {
        let variants: Vec<&'static str> =
            variants.iter().copied().filter(|variant| wanted(name, variant)).collect();
        if variants.is_empty() {
            continue;
        }
        let program = build(&out).map(|program| (program, vec![])).map_err(|error| format!("{error:#}"));
        variants.into_iter().for_each(|variant| add(*name, variant, program.clone()));
    }
    for peer in &peers {
        if let Err(reason) = &peer.program {
            println!("{}: skipped: {reason}", peer.label());
        }
    }
    Ok(peers)
}

/// Builds the program of a peer in a directory.
type Build = fn(&Path) -> anyhow::Result<PathBuf>;

fn sources(peer: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(peer)
}

fn kube_rs(out: &Path) -> anyhow::Result<PathBuf> {
    let target = out.join("kube-rs");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(cargo)
        .args(["build", "--release", "--quiet", "--locked", "--target-dir"])
        .arg(&target)
        .current_dir(sources("kube-rs")))?;
    Ok(target.join("release/bench-kube-rs"))
}

fn client_go(out: &Path) -> anyhow::Result<PathBuf> {
    go(out, "client-go", "./informer")
}

fn controller_runtime(out: &Path) -> anyhow::Result<PathBuf> {
    go(out, "controller-runtime", "./controller")
}

fn go(out: &Path, name: &str, package: &str) -> anyhow::Result<PathBuf> {
    if Command::new("go").arg("version").output().is_err() {
        bail!("{name} needs Go; see https://go.dev/dl");
    }
    let program = out.join(name);
    run(Command::new("go").args(["build", "-o"]).arg(&program).arg(package).current_dir(sources("go")))?;
    Ok(program)
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}
