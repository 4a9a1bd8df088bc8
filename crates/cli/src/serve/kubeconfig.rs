//! The kubeconfig file of a served cluster.

use anyhow::Context;
use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// A kubeconfig file that this process created. It is removed when the server stops.
pub(super) struct Kubeconfig {
    path: PathBuf,
    file: File,
}

impl Kubeconfig {
    /// Creates a file that only its owner can read. If it exists, it is replaced or the function fails.
    pub(super) fn create(path: PathBuf, overwrite: bool) -> anyhow::Result<Self> {
        // Removed instead of truncated: others may have the old file open, or may read it.
        if overwrite
            && let Err(error) = std::fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            return Err(anyhow::Error::new(error).context(format!("cannot replace {}", path.display())));
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                anyhow::anyhow!(
                    "{} exists already; choose another name for --kubeconfig-out, or add --kubeconfig-overwrite",
                    path.display()
                )
            }
            _ => anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
        })?;
        let path = path.canonicalize().unwrap_or(path);
        Ok(Self { path, file })
    }

    pub(super) fn write(&self, content: &str) -> anyhow::Result<()> {
        (&self.file)
            .write_all(content.as_bytes())
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Kubeconfig {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The shell command that makes kubectl use the file.
    pub(super) fn export(&self) -> String {
        format!("export KUBECONFIG={}", quoted(&self.path))
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // It may have been removed or replaced meanwhile.
        if self.is_ours() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Kubeconfig {
    #[cfg(unix)]
    fn is_ours(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        match (self.file.metadata(), self.path.symlink_metadata()) {
            (Ok(ours), Ok(there)) => identity(ours) == identity(there),
            _ => false,
        }
    }

    #[cfg(not(unix))]
    fn is_ours(&self) -> bool {
        true
    }
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!(quoted(Path::new("/tmp/a.kubeconfig")), "/tmp/a.kubeconfig");
        assert_eq!(quoted(Path::new("/tmp/it's here")), r"'/tmp/it'\''s here'");
    }
}
