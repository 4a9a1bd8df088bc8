//! Directories of a run.

use anyhow::{Context, Result};
use std::{fs, path::PathBuf};

/// Directories of a run, all below the target directory.
pub struct Directories {
    pub tree: PathBuf,
    pub build: PathBuf,
    pub output: PathBuf,
    pub temporary: PathBuf,
}

impl Directories {
    /// Creates them below a directory of this name.
    pub fn create(name: &str) -> Result<Self> {
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
        let below = std::path::absolute(target)?.join(name);
        let [tree, build, output, temporary] = ["tree", "build", "out", "tmp"].map(|part| below.join(part));
        for directory in [&tree, &output, &temporary] {
            fs::create_dir_all(directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
        }
        Ok(Self { tree, build, output, temporary })
    }
}
