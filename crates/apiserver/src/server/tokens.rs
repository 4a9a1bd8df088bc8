//! Bearer tokens.

use std::path::{Path, PathBuf};

use subtle::ConstantTimeEq;
use thiserror::Error;

use crate::authentication::User;

/// The shortest token, in characters: shorter ones can be guessed.
const MIN_LENGTH: usize = 16;

/// The bearer tokens that give access.
///
/// **One token is full access**: the server has no roles, so a client with a token may read and write everything, secrets included. The
/// user of a token only appears in reviews, and in objects that record their creator.
#[derive(Clone)]
pub struct Tokens(Vec<(String, User)>);

/// The error of loading tokens.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the tokens in {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// There is no token.
    #[error(
        "there is no token: write at least one, on a line of its own, such as `head -c 24 /dev/urandom | base64`"
    )]
    Empty,
    /// A token can be guessed, or cannot be sent in a header. Names its place, never its content.
    #[error(
        "token {number} must have {MIN_LENGTH} or more visible ASCII characters: make one with `head -c 24 /dev/urandom | base64`"
    )]
    Weak {
        /// Counted from one.
        number: usize,
    },
}

impl Tokens {
    /// These tokens. The first is the one that goes into kubeconfigs.
    pub fn new(tokens: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, TokenError> {
        Self::of_users(tokens.into_iter().map(|token| (token.into(), User::admin())).collect())
    }

    fn of_users(tokens: Vec<(String, User)>) -> Result<Self, TokenError> {
        if tokens.is_empty() {
            return Err(TokenError::Empty);
        }
        let weak = |(token, _): &(String, User)| {
            token.len() < MIN_LENGTH || !token.bytes().all(|b| b.is_ascii_graphic())
        };
        match tokens.iter().position(weak) {
            Some(index) => Err(TokenError::Weak { number: index + 1 }),
            None => Ok(Self(tokens)),
        }
    }

    /// The tokens in a file, one a line. Empty lines and lines that start with `#` are ignored. A line may have columns, as in the
    /// token files of kube-apiserver: token, user name, uid, groups.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, TokenError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|source| TokenError::Read { path: path.to_owned(), source })?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Self::of_users(lines.map(columns).collect())
    }

    /// The token for kubeconfigs.
    pub(crate) fn first(&self) -> &str {
        &self.0[0].0
    }

    /// The user of a token. Takes as long for a wrong one as for a right one of the same length.
    pub(crate) fn user_of(&self, presented: &str) -> Option<&User> {
        let mut found = None;
        for (token, user) in &self.0 {
            if token.as_bytes().ct_eq(presented.as_bytes()).into() {
                found = Some(user);
            }
        }
        found
    }
}

/// The columns of a line: a token, and its user if it is named.
fn columns(line: &str) -> (String, User) {
    let mut columns = line.splitn(4, ',').map(|column| column.trim().trim_matches('"'));
    let mut next = || columns.next().unwrap_or_default();
    let (token, name, uid, groups) = (next(), next(), next(), next());
    let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty()).map(str::to_owned);
    let user = if name.is_empty() { User::admin() } else { User::new(name, uid, groups) };
    (token.to_owned(), user)
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "0123456789abcdef";
    const B: &str = "fedcba9876543210+/=";

    #[test]
    fn a_file_has_one_token_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        std::fs::write(&path, format!("# ours\n\n{A}\n \"{B}\",jane,1,\"system:masters,dev\"\n")).unwrap();
        let tokens = Tokens::from_file(&path).unwrap();
        assert_eq!(tokens.first(), A);
        assert_eq!(tokens.user_of(A), Some(&User::admin()));
        let named = tokens.user_of(B).unwrap();
        assert_eq!((&*named.name, &*named.uid), ("jane", "1"));
        assert_eq!(named.groups, ["system:masters", "dev", "system:authenticated"]);
        for wrong in ["", "0123456789abcde", "0123456789abcdeg", "admin", "# ours"] {
            assert_eq!(tokens.user_of(wrong), None, "{wrong}");
        }
        assert_eq!(format!("{tokens:?}"), "Tokens(2)");
    }

    #[test]
    fn tokens_that_are_short_or_cannot_be_sent_are_refused_without_showing_them() {
        assert!(matches!(Tokens::new(Vec::<String>::new()), Err(TokenError::Empty)));
        for bad in ["secret", "0123456789abcd\u{e9}f", "0123456789abc def"] {
            let error = Tokens::new([A, bad]).unwrap_err();
            assert!(matches!(error, TokenError::Weak { number: 2 }), "{bad}");
            assert!(!error.to_string().contains(bad));
        }
        assert!(matches!(Tokens::from_file("/nonexistent/tokens"), Err(TokenError::Read { .. })));
    }
}
