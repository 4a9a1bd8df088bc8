//! The copy of the repository that has all patches, each behind a switch.

use super::{
    combine::combine,
    compare::{Changes, compare},
    patch::Patch,
};
use crate::{build::Switched, copy, instrument::Instrumented};
use anyhow::{Context, Result};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

const SWITCH: &str = include_str!("switch.rs");

pub struct Combined {
    repository: PathBuf,
    root: PathBuf,
    files: BTreeMap<String, PatchedFile>,
    /// Patches that need a build of their own, with the reason.
    alone: BTreeMap<u32, String>,
}

struct PatchedFile {
    source: String,
    changes: BTreeMap<u32, Changes>,
    instrumented: Instrumented,
}

impl Combined {
    /// Combines patches. `root` is the directory of the copy.
    pub fn new(repository: &Path, root: &Path, patches: &[Patch]) -> Result<Self> {
        let mut combined = Self {
            repository: repository.to_owned(),
            root: root.to_owned(),
            files: BTreeMap::new(),
            alone: BTreeMap::new(),
        };
        for patch in patches {
            for (path, patched) in &patch.files {
                if let Err(reason) = combined.add(patch.id, path, patched)? {
                    combined.alone.insert(patch.id, format!("{path}: {reason}"));
                }
            }
        }
        Ok(combined)
    }

    fn add(&mut self, id: u32, path: &str, patched: &str) -> Result<Result<(), String>> {
        let library = crate_of(path).map(|directory| self.repository.join(directory).join("src/lib.rs"));
        if !library.is_some_and(|library| library.exists()) || !self.repository.join(path).exists() {
            return Ok(Err("not a file of a library".to_owned()));
        }
        if !self.files.contains_key(path) {
            let source = fs::read_to_string(self.repository.join(path))?;
            let file =
                PatchedFile { source, changes: BTreeMap::new(), instrumented: Instrumented::default() };
            self.files.insert(path.to_owned(), file);
        }
        let file = self.files.get_mut(path).context("inserted above")?;
        Ok(compare(&file.source, patched, id).map(|changes| {
            file.changes.insert(id, changes);
        }))
    }

    /// Returns why a patch needs a build of its own; `None` if it has a switch.
    pub fn alone(&self, patch: &Patch) -> Option<&str> {
        self.alone.get(&patch.id).map(String::as_str)
    }

    /// Replaces the files of a patch in the copy, which has a switch for each of the other patches elsewhere.
    pub fn write_alone(&mut self, patch: &Patch) -> Result<()> {
        let mut generated = self.generate();
        for (path, text) in &patch.files {
            let is_library = path.ends_with("/src/lib.rs") && generated.contains_key(path);
            generated.insert(path.clone(), if is_library { with_switches(text) } else { text.clone() });
        }
        copy::write(&self.repository, &self.root, copy::files_of(&self.repository)?, &generated)?;
        Ok(())
    }

    /// The files that differ from those of the repository.
    fn generate(&mut self) -> HashMap<String, String> {
        let mut generated = HashMap::new();
        for (path, file) in &mut self.files {
            let changes = file.changes.iter().filter(|(id, _)| !self.alone.contains_key(id));
            let changes: Vec<(u32, &Changes)> = changes.map(|(id, changes)| (*id, changes)).collect();
            file.instrumented = combine(&file.source, &changes);
            generated.insert(path.clone(), file.instrumented.text.clone());
        }
        let crates: BTreeSet<&str> = self.files.keys().filter_map(|path| crate_of(path)).collect();
        for directory in crates {
            let library = format!("{directory}/src/lib.rs");
            let text = generated.remove(&library);
            let text = text.or_else(|| fs::read_to_string(self.repository.join(&library)).ok());
            generated.insert(library, with_switches(&text.unwrap_or_default()));
            generated.insert(format!("{directory}/src/__sabotage.rs"), SWITCH.to_owned());
        }
        generated
    }
}

impl Switched for Combined {
    fn root(&self) -> &Path {
        &self.root
    }

    fn write(&mut self) -> Result<u64> {
        let generated = self.generate();
        copy::write(&self.repository, &self.root, copy::files_of(&self.repository)?, &generated)
    }

    fn blamed(&self, file: &str, bytes: Range<usize>) -> Vec<u32> {
        self.files.get(file).map(|file| file.instrumented.blamed(&bytes)).unwrap_or_default()
    }

    fn leave_out(&mut self, ids: BTreeSet<u32>) {
        self.alone.extend(ids.into_iter().map(|id| (id, "does not compile with a switch".to_owned())));
    }
}

/// Directory of the crate to whose library a file belongs: `crates/wire` of `crates/wire/src/json.rs`.
fn crate_of(path: &str) -> Option<&str> {
    path.split_once("/src/").map(|(directory, _)| directory)
}

fn with_switches(library: &str) -> String {
    format!("{library}\nmod __sabotage;\n")
}
