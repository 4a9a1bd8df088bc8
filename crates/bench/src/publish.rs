//! Copies the results of a run into the documents.

use crate::args::PublishOptions;
use anyhow::{Context, ensure};
use std::{fs, path::Path};

/// Documents, the mark of a section in them, and the file of a run that replaces the section.
const SECTIONS: [(&str, &str, &str); 3] = [
    ("README.md", "measured", "readme.md"),
    ("crates/bench/README.md", "table", "table.md"),
    ("crates/bench/README.md", "goals", "goals.md"),
];

const PLOTS: [&str; 2] = ["memory.svg", "cpu.svg"];

pub(crate) fn run(options: &PublishOptions) -> anyhow::Result<()> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.ancestors().nth(2).context("a package outside the workspace")?;
    for (document, mark, file) in SECTIONS {
        let (path, part) = (root.join(document), fs::read_to_string(options.from.join(file))?);
        fs::write(&path, replace_section(&fs::read_to_string(&path)?, mark, &part)?)?;
        println!("{file} is in {document}");
    }
    let results = package.join("results");
    fs::copy(options.from.join("results.json"), results.join("30000-pods.json"))?;
    for plot in PLOTS {
        fs::copy(options.from.join(plot), results.join(plot))?;
    }
    Ok(())
}

/// Replaces the section between `<!-- mark -->` and `<!-- end -->` of a document.
fn replace_section(document: &str, mark: &str, part: &str) -> anyhow::Result<String> {
    let start = format!("<!-- {mark} -->\n");
    let (before, rest) = document.split_once(&start).with_context(|| format!("no {start:?}"))?;
    let (_, after) = rest.split_once("<!-- end -->").context("a mark without an end")?;
    ensure!(!part.trim().is_empty(), "the new section {mark} is empty");
    Ok(format!("{before}{start}\n{}\n\n<!-- end -->{after}", part.trim()))
}

#[cfg(test)]
mod tests {
    use super::replace_section;

    #[test]
    fn only_the_section_between_the_marks_changes() {
        let document = "a\n<!-- table -->\nold\n<!-- end -->\nb\n<!-- other -->\nc\n<!-- end -->\n";
        let new = replace_section(document, "table", "new\n").unwrap();
        assert_eq!(new, "a\n<!-- table -->\n\nnew\n\n<!-- end -->\nb\n<!-- other -->\nc\n<!-- end -->\n");
        assert_eq!(replace_section(&new, "table", "new\n").unwrap(), new, "idempotent");
        assert!(
            replace_section(document, "missing", "x").is_err()
                && replace_section(document, "table", " ").is_err()
        );
    }
}
