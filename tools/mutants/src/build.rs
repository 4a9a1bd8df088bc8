//! Compiles a copy with all its switches.

use crate::tree::Tree;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    ops::Range,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Switches that do not compile are left out in rounds. Each round finds those of one crate, and some errors hide others.
const ROUNDS: usize = 12;

/// A copy of the repository with switches, which are numbered.
pub trait Switched {
    /// Directory of the copy.
    fn root(&self) -> &Path;

    /// Writes the copy, and returns a digest of everything that is compiled.
    fn write(&mut self) -> Result<u64>;

    /// Switches to blame for a compiler error at these bytes of a file of the copy.
    fn blamed(&self, file: &str, bytes: Range<usize>) -> Vec<u32>;

    /// Leaves switches out of the copy, from the next [`Self::write`] on.
    fn leave_out(&mut self, ids: BTreeSet<u32>);
}

/// A compiled program with tests.
#[derive(Debug, Clone)]
pub struct TestBinary {
    pub path: PathBuf,
    /// Directory of the crate: tests run there.
    pub directory: PathBuf,
    /// Directory of the crate in the repository.
    pub package: String,
    /// Crate and target, such as `informer it`.
    pub name: String,
}

/// Where and how to compile.
pub struct Builder {
    pub target: PathBuf,
    pub jobs: usize,
}

impl Builder {
    /// Compiles the tests of the crates. Leaves mutants out of the tree that do not compile.
    pub fn tests(&self, tree: &mut Tree, packages: &[String]) -> Result<(Vec<TestBinary>, u64)> {
        let mut arguments: Vec<String> = ["test", "--no-run", "--lib", "--tests"].map(Into::into).into();
        arguments.extend(packages.iter().flat_map(|package| ["-p".to_owned(), package.clone()]));
        let (output, digest) = self.until_it_compiles(tree, &arguments)?;
        let mut binaries: Vec<TestBinary> =
            output.artifacts.iter().filter_map(|artifact| test_binary(artifact, &tree.root)).collect();
        // Cargo names them in any order, and measurements refer to them by position.
        binaries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok((binaries, digest))
    }

    /// Compiles a copy, and leaves out the switches that do not compile. Returns the digest of the copy, too.
    fn until_it_compiles(&self, source: &mut impl Switched, arguments: &[String]) -> Result<(Output, u64)> {
        for _ in 0..ROUNDS {
            let digest = source.write()?;
            let output = self.cargo(source.root(), arguments)?;
            if output.success {
                return Ok((output, digest));
            }
            let blamed = blamed(source, &output.errors);
            if blamed.is_empty() {
                bail!("the copy does not compile, and no switch is to blame:\n{}", rendered(&output.errors));
            }
            eprintln!("{} switches do not compile and are left out", blamed.len());
            source.leave_out(blamed);
        }
        bail!("the copy does not compile after {ROUNDS} rounds")
    }

    /// Compiles the program `simulation` of a copy. `options` are those of cargo.
    pub fn simulation(&self, root: &Path, options: &[&str]) -> Result<PathBuf> {
        let output = self.cargo(root, &simulation_arguments(options))?;
        ensure!(output.success, "the simulation does not compile:\n{}", rendered(&output.errors));
        executable(&output)
    }

    /// Compiles the program `simulation` of a copy, and leaves out the switches that do not compile.
    pub fn switched_simulation(&self, source: &mut impl Switched, options: &[&str]) -> Result<PathBuf> {
        let (output, _) = self.until_it_compiles(source, &simulation_arguments(options))?;
        executable(&output)
    }

    fn cargo(&self, root: &Path, arguments: &[String]) -> Result<Output> {
        let mut child = Command::new("cargo")
            .args(arguments)
            .args(["--locked", "--message-format", "json", "--jobs", &self.jobs.to_string()])
            .current_dir(root)
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_PROFILE_DEV_DEBUG", "none")
            // Warnings of mutants are expected.
            .env("RUSTFLAGS", "--cap-lints allow")
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run cargo")?;
        let (mut artifacts, mut errors) = (Vec::new(), Vec::new());
        for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
            let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
            match message["reason"].as_str() {
                Some("compiler-artifact") => artifacts.push(message),
                Some("compiler-message") if message["message"]["level"] == "error" => errors.push(message),
                _ => {}
            }
        }
        Ok(Output { success: child.wait()?.success(), artifacts, errors })
    }
}

struct Output {
    success: bool,
    artifacts: Vec<Value>,
    errors: Vec<Value>,
}

fn simulation_arguments(options: &[&str]) -> Vec<String> {
    let arguments = ["build", "-p", "simulation", "--bin", "simulation"].iter().chain(options);
    arguments.map(|argument| (*argument).to_owned()).collect()
}

fn executable(output: &Output) -> Result<PathBuf> {
    let executable = output.artifacts.iter().find_map(|artifact| artifact["executable"].as_str());
    Ok(executable.context("cargo built no program")?.into())
}

fn test_binary(artifact: &Value, root: &Path) -> Option<TestBinary> {
    if artifact["profile"]["test"] != true {
        return None;
    }
    let directory = Path::new(artifact["manifest_path"].as_str()?).parent()?.to_owned();
    let name = format!("{} {}", directory.file_name()?.to_str()?, artifact["target"]["name"].as_str()?);
    let package = directory.strip_prefix(root).ok()?.to_str()?.to_owned();
    Some(TestBinary { path: artifact["executable"].as_str()?.into(), directory, package, name })
}

fn blamed(source: &impl Switched, errors: &[Value]) -> BTreeSet<u32> {
    let spans = errors.iter().flat_map(|error| error["message"]["spans"].as_array().into_iter().flatten());
    let primary = spans.filter(|span| span["is_primary"] == true);
    primary
        .filter_map(|span| {
            let bytes = span["byte_start"].as_u64()? as usize..span["byte_end"].as_u64()? as usize;
            Some(source.blamed(span["file_name"].as_str()?, bytes))
        })
        .flatten()
        .collect()
}

fn rendered(errors: &[Value]) -> String {
    errors.iter().filter_map(|error| error["message"]["rendered"].as_str()).collect()
}
