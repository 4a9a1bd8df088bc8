//! A copy of the repository in which some files have other content.

use anyhow::{Context, Result, ensure};
use std::{
    collections::{HashMap, HashSet},
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
    process::Command,
};

/// Makes the copy the same as the repository, except for the generated files. Files that are the same keep their times, so
/// that nothing is compiled without need. Returns a digest of everything that is compiled.
pub fn write(
    repository: &Path,
    root: &Path,
    mut paths: Vec<String>,
    generated: &HashMap<String, String>,
) -> Result<u64> {
    paths.extend(generated.keys().cloned());
    paths.sort();
    paths.dedup();
    let mut digest = DefaultHasher::new();
    for path in &paths {
        let content = match generated.get(path) {
            Some(text) => text.clone().into_bytes(),
            None => fs::read(repository.join(path)).with_context(|| format!("cannot read {path}"))?,
        };
        if ["crates/", "Cargo.", ".cargo/"].iter().any(|compiled| path.starts_with(compiled)) {
            (path, &content).hash(&mut digest);
        }
        write_if_changed(&root.join(path), &content)?;
    }
    remove_others(root, root, &paths.into_iter().collect())?;
    Ok(digest.finish())
}

/// Files of the repository, with changes that are not committed.
pub fn files_of(repository: &Path) -> Result<Vec<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output =
        Command::new("git").args(arguments).current_dir(repository).output().context("cannot run git")?;
    ensure!(output.status.success(), "git ls-files failed: {}", String::from_utf8_lossy(&output.stderr));
    let paths = String::from_utf8(output.stdout)?;
    let paths = paths.split('\0').filter(|path| !path.is_empty() && repository.join(path).is_file());
    Ok(paths.map(ToOwned::to_owned).collect())
}

fn write_if_changed(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|current| current == content) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().context("a file without a directory")?)?;
    fs::write(path, content).with_context(|| format!("cannot write {}", path.display()))
}

/// Removes files of an earlier copy.
fn remove_others(root: &Path, directory: &Path, paths: &HashSet<String>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.strip_prefix(root)?.to_string_lossy().into_owned();
        if path.is_dir() {
            remove_others(root, &path, paths)?;
        } else if !paths.contains(&name) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
