//! The copy of the repository into which mutants are put.

use crate::{
    instrument::{self, Instrumented},
    mutant::Mutant,
    sites::{self, Site},
};
use anyhow::{Context, Result, ensure};
use std::{
    collections::{HashMap, HashSet},
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

/// Ids of one file. The ids of other files stay the same if a file gets more mutants, so that less is compiled again.
const IDS_PER_FILE: u32 = 1000;

/// Paths without guards: fixtures for tests of users.
const EXCLUDED: &[&str] = &["crates/informer/src/testing.rs", "crates/informer/src/testing/"];

/// In a test that compiles the modules of its crate by itself, such as the model checks of the work queue.
const INCLUDES_SOURCE: &str = "#[path = \"../../src\"]";

const SWITCH: &str = include_str!("switch.rs");

/// The source files of some crates with all their mutants.
pub struct Tree {
    /// Directory of the copy.
    pub root: PathBuf,
    crates: Vec<Crate>,
    files: Vec<SourceFile>,
    unviable: HashSet<u32>,
}

struct Crate {
    /// `crates/wire`.
    directory: String,
    first_id: u32,
    ids: u32,
}

struct SourceFile {
    /// Path in the repository.
    path: String,
    source: String,
    sites: Vec<Site>,
    mutants: Vec<Mutant>,
    instrumented: Instrumented,
}

impl Tree {
    /// Reads the crates in these directories of the repository. `root` is the directory of the copy.
    pub fn read(repository: &Path, root: PathBuf, directories: &[String]) -> Result<Self> {
        let mut tree = Self { root, crates: Vec::new(), files: Vec::new(), unviable: HashSet::new() };
        for directory in directories {
            let first_id = tree.next_id();
            tree.read_modules(repository, &format!("{directory}/src/lib.rs"))?;
            let ids = tree.next_id() - first_id;
            tree.crates.push(Crate { directory: directory.clone(), first_id, ids });
        }
        Ok(tree)
    }

    /// Id of the first mutant of the next file. 0 is no mutant.
    fn next_id(&self) -> u32 {
        (self.files.len() as u32 + 1) * IDS_PER_FILE
    }

    /// Reads a file and the files of the modules below it.
    fn read_modules(&mut self, repository: &Path, path: &str) -> Result<()> {
        let source =
            fs::read_to_string(repository.join(path)).with_context(|| format!("cannot read {path}"))?;
        let found = sites::find(&source).with_context(|| format!("cannot parse {path}"))?;
        let is_excluded = EXCLUDED.iter().any(|excluded| path.starts_with(excluded));
        let sites = if is_excluded { Vec::new() } else { found.sites };
        let mutants = instrument::mutants(path, &source, &sites, self.next_id());
        ensure!(mutants.len() < IDS_PER_FILE as usize, "{path} has too many mutants");
        let instrumented = Instrumented::default();
        self.files.push(SourceFile { path: path.to_owned(), source, sites, mutants, instrumented });
        let base = path.strip_suffix("/lib.rs").or_else(|| path.strip_suffix("/mod.rs"));
        let base = base.or_else(|| path.strip_suffix(".rs")).unwrap_or(path);
        for module in found.modules {
            let module = format!("{base}/{}", module.join("/"));
            let file = [format!("{module}.rs"), format!("{module}/mod.rs")];
            let file = file.iter().find(|file| repository.join(file).exists());
            let file = file.with_context(|| format!("{path} names a module without a file: {module}"))?;
            self.read_modules(repository, file)?;
        }
        Ok(())
    }

    pub fn mutants(&self) -> impl Iterator<Item = &Mutant> {
        self.files.iter().flat_map(|file| &file.mutants)
    }

    pub fn is_viable(&self, mutant: &Mutant) -> bool {
        !self.unviable.contains(&mutant.id)
    }

    /// Leaves mutants out of the copy, from the next [`Self::write`] on.
    pub fn leave_out(&mut self, ids: impl IntoIterator<Item = u32>) {
        self.unviable.extend(ids);
    }

    /// Mutants to blame for a compiler error at these bytes of a file of the copy.
    pub fn blamed(&self, file: &str, bytes: std::ops::Range<usize>) -> Vec<u32> {
        // A test that compiles modules of its crate by itself names them by `tests/name/../../src`.
        let (of, rest) =
            (file.split_once("/tests/").map(|(of, _)| of), file.split_once("/../../").map(|(_, rest)| rest));
        let file = of.zip(rest).map_or(file.to_owned(), |(of, rest)| format!("{of}/{rest}"));
        let file = self.files.iter().find(|candidate| candidate.path == file);
        file.map(|file| file.instrumented.blamed(&bytes)).unwrap_or_default()
    }

    /// Makes the copy the same as the repository, except for the mutants. Files that are the same keep their times, so that
    /// nothing is compiled without need. Returns a digest of everything that is compiled.
    pub fn write(&mut self, repository: &Path) -> Result<u64> {
        let mut generated = HashMap::new();
        for file in &mut self.files {
            let first_id = file.mutants.first().map_or(0, |mutant| mutant.id);
            file.instrumented = instrument::instrument(&file.source, &file.sites, first_id, &self.unviable);
            generated.insert(file.path.clone(), file.instrumented.text.clone());
        }
        for Crate { directory, first_id, ids } in &self.crates {
            let library =
                generated.get_mut(&format!("{directory}/src/lib.rs")).context("a crate without lib.rs")?;
            library.push_str("mod __mutants;\n");
            let switch = SWITCH
                .replace("const FIRST: u32 = 0;", &format!("const FIRST: u32 = {first_id};"))
                .replace("const COUNT: usize = 0;", &format!("const COUNT: usize = {ids};"));
            generated.insert(format!("{directory}/src/__mutants.rs"), switch);
        }
        let mut paths = files_of(repository)?;
        for path in paths.iter().filter(|path| path.ends_with("/main.rs") && path.contains("/tests/")) {
            let text = fs::read_to_string(repository.join(path))?;
            if self.crates.iter().any(|of| path.starts_with(&of.directory)) && text.contains(INCLUDES_SOURCE)
            {
                generated
                    .insert(path.clone(), text + "#[path = \"../../src/__mutants.rs\"]\nmod __mutants;\n");
            }
        }
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
            write_if_changed(&self.root.join(path), &content)?;
        }
        remove_others(&self.root, &self.root, &paths.into_iter().collect())?;
        Ok(digest.finish())
    }
}

/// Files of the repository, with changes that are not committed.
fn files_of(repository: &Path) -> Result<Vec<String>> {
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
