//! A sabotage patch: its name, the worlds that notice it, and the files that it changes.

use anyhow::{Context, Result, bail, ensure};
use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File},
    path::Path,
    process::Command,
};

/// Directory of the patches in the repository.
const DIRECTORY: &str = "crates/simulation/sabotage";

/// The kind of world that notices a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worlds {
    /// Their seeds take longest.
    Controllers,
    Restarts,
    Caches,
}

impl Worlds {
    /// Reads the line `Worlds: ...` before a patch.
    fn of(patch: &str) -> Result<Self> {
        let before = patch.lines().take_while(|line| !line.starts_with("--- "));
        match before.filter_map(|line| line.strip_prefix("Worlds: ")).map(str::trim).next() {
            None => Ok(Self::Caches),
            Some("restarts") => Ok(Self::Restarts),
            Some("controllers") => Ok(Self::Controllers),
            Some(other) => bail!("`Worlds: {other}` is neither `restarts` nor `controllers`"),
        }
    }

    /// The switch of the simulation.
    pub fn switch(self) -> Option<&'static str> {
        match self {
            Self::Controllers => Some("--controllers"),
            Self::Restarts => Some("--restarts"),
            Self::Caches => None,
        }
    }
}

/// A patch that removes one guard.
#[derive(Debug)]
pub struct Patch {
    /// Number that switches it on. 0 is no patch.
    pub id: u32,
    pub name: String,
    pub worlds: Worlds,
    /// Paths in the repository, with the patched text.
    pub files: BTreeMap<String, String>,
}

impl Patch {
    /// Reads a patch and applies it to copies of its files in `temporary`.
    fn read(repository: &Path, name: &str, id: u32, temporary: &Path) -> Result<Self> {
        let path = repository.join(DIRECTORY).join(name).with_extension("patch");
        let text = fs::read_to_string(&path).with_context(|| format!("no patch {name}"))?;
        let worlds = Worlds::of(&text)?;
        let directory = temporary.join(name);
        let paths = text.lines().filter_map(|line| line.strip_prefix("+++ b/"));
        // A time may follow after a tab.
        let paths: Vec<&str> = paths.filter_map(|line| line.split('\t').next()).collect();
        ensure!(!paths.is_empty(), "{name}.patch has no line `+++ b/...`");
        for path in &paths {
            let copy = directory.join(path);
            fs::create_dir_all(copy.parent().context("a file without a directory")?)?;
            if repository.join(path).exists() {
                fs::copy(repository.join(path), copy)?;
            }
        }
        let status = Command::new("patch")
            .args(["--quiet", "--strip=1", "--no-backup-if-mismatch", "--directory"])
            .arg(&directory)
            .stdin(File::open(&path)?)
            .status()
            .context("cannot run patch")?;
        ensure!(status.success(), "{name}.patch no longer applies: make it again for the current code");
        let patched = |path: &&str| Ok(((*path).to_owned(), fs::read_to_string(directory.join(path))?));
        let files = paths.iter().map(patched).collect::<Result<_>>()?;
        fs::remove_dir_all(&directory)?;
        Ok(Self { id, name: name.to_owned(), worlds, files })
    }
}

/// Reads all patches.
pub fn read(repository: &Path, temporary: &Path) -> Result<Vec<Patch>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(repository.join(DIRECTORY))? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("patch")) {
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    names.iter().zip(1..).map(|(name, id)| Patch::read(repository, name, id, temporary)).collect()
}
