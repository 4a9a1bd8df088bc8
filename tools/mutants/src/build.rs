//! Compiles the copy with all mutants.

use crate::tree::Tree;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Mutants that do not compile are left out in rounds. Each round finds those of one crate, and some errors hide others.
const ROUNDS: usize = 12;

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
    pub fn tests(
        &self,
        tree: &mut Tree,
        repository: &Path,
        packages: &[String],
    ) -> Result<(Vec<TestBinary>, u64)> {
        let mut arguments: Vec<String> = ["test", "--no-run", "--lib", "--tests"].map(Into::into).into();
        arguments.extend(packages.iter().flat_map(|package| ["-p".to_owned(), package.clone()]));
        for _ in 0..ROUNDS {
            let digest = tree.write(repository)?;
            let output = self.cargo(&tree.root, &arguments)?;
            if output.success {
                let binaries =
                    output.artifacts.iter().filter_map(|artifact| test_binary(artifact, &tree.root));
                let mut binaries: Vec<TestBinary> = binaries.collect();
                // Cargo names them in any order, and measurements refer to them by position.
                binaries.sort_by(|a, b| a.name.cmp(&b.name));
                return Ok((binaries, digest));
            }
            let blamed = blamed(tree, &output.errors);
            if blamed.is_empty() {
                bail!("the copy does not compile, and no mutant is to blame:\n{}", rendered(&output.errors));
            }
            eprintln!("{} mutants do not compile and are left out", blamed.len());
            tree.leave_out(blamed);
        }
        bail!("the copy does not compile after {ROUNDS} rounds")
    }

    /// Compiles the program `simulation`.
    pub fn simulation(&self, tree: &Tree) -> Result<PathBuf> {
        let arguments = ["build", "-p", "simulation", "--bin", "simulation"].map(Into::into);
        let output = self.cargo(&tree.root, &arguments)?;
        ensure!(output.success, "the simulation does not compile:\n{}", rendered(&output.errors));
        let executable = output.artifacts.iter().find_map(|artifact| artifact["executable"].as_str());
        Ok(executable.context("cargo built no program")?.into())
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

fn test_binary(artifact: &Value, root: &Path) -> Option<TestBinary> {
    if artifact["profile"]["test"] != true {
        return None;
    }
    let directory = Path::new(artifact["manifest_path"].as_str()?).parent()?.to_owned();
    let name = format!("{} {}", directory.file_name()?.to_str()?, artifact["target"]["name"].as_str()?);
    let package = directory.strip_prefix(root).ok()?.to_str()?.to_owned();
    Some(TestBinary { path: artifact["executable"].as_str()?.into(), directory, package, name })
}

fn blamed(tree: &Tree, errors: &[Value]) -> BTreeSet<u32> {
    let spans = errors.iter().flat_map(|error| error["message"]["spans"].as_array().into_iter().flatten());
    let primary = spans.filter(|span| span["is_primary"] == true);
    primary
        .filter_map(|span| {
            let bytes = span["byte_start"].as_u64()? as usize..span["byte_end"].as_u64()? as usize;
            Some(tree.blamed(span["file_name"].as_str()?, bytes))
        })
        .flatten()
        .collect()
}

fn rendered(errors: &[Value]) -> String {
    errors.iter().filter_map(|error| error["message"]["rendered"].as_str()).collect()
}
