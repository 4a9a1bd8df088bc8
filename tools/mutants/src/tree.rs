//! The copy of the repository into which mutants are put.

use crate::{
    build::Switched,
    copy,
    instrument::{self, Instrumented},
    mutant::Mutant,
    sites::{self, Site},
};
use anyhow::{Context, Result, ensure};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fs,
    ops::Range,
    path::{Path, PathBuf},
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
    repository: PathBuf,
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
        let mut tree = Self {
            repository: repository.to_owned(),
            root,
            crates: Vec::new(),
            files: Vec::new(),
            unviable: HashSet::new(),
        };
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
}

impl Switched for Tree {
    fn root(&self) -> &Path {
        &self.root
    }

    fn leave_out(&mut self, ids: BTreeSet<u32>) {
        self.unviable.extend(ids);
    }

    fn blamed(&self, file: &str, bytes: Range<usize>) -> Vec<u32> {
        // A test that compiles modules of its crate by itself names them by `tests/name/../../src`.
        let (of, rest) =
            (file.split_once("/tests/").map(|(of, _)| of), file.split_once("/../../").map(|(_, rest)| rest));
        let file = of.zip(rest).map_or(file.to_owned(), |(of, rest)| format!("{of}/{rest}"));
        let file = self.files.iter().find(|candidate| candidate.path == file);
        file.map(|file| file.instrumented.blamed(&bytes)).unwrap_or_default()
    }

    fn write(&mut self) -> Result<u64> {
        let repository = &self.repository;
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
        let paths = copy::files_of(repository)?;
        for path in paths.iter().filter(|path| path.ends_with("/main.rs") && path.contains("/tests/")) {
            let text = fs::read_to_string(repository.join(path))?;
            if self.crates.iter().any(|of| path.starts_with(&of.directory)) && text.contains(INCLUDES_SOURCE)
            {
                generated
                    .insert(path.clone(), text + "#[path = \"../../src/__mutants.rs\"]\nmod __mutants;\n");
            }
        }
        copy::write(repository, &self.root, paths, &generated)
    }
}
