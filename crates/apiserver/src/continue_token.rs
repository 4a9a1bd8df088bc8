//! Continue tokens, in the encoding of kube-apiserver.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// The longest accepted token: a key has at most two names of 253 bytes.
const MAX_TOKEN_BYTES: usize = 4096;

const VERSION: &str = "meta.k8s.io/v1";

/// The position after the last item of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContinueToken {
    /// The revision of the first page; negative means the latest revision.
    pub(crate) revision: i64,
    /// The first key of the next page, relative to the prefix of the request, without a leading `/`.
    pub(crate) start: String,
}

#[derive(Serialize, Deserialize)]
struct Encoded<'a> {
    #[serde(default)]
    v: std::borrow::Cow<'a, str>,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
}

/// The form of a token. Tokens of the cache have a slash before the start key, tokens of the store have none; [`ContinueToken::decode`]
/// accepts both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenFormat {
    Cache,
    Storage,
}

impl ContinueToken {
    /// Returns the token that continues after `last`, a key relative to the prefix.
    pub(crate) fn after(last: &str, revision: i64) -> Self {
        Self { revision, start: format!("{last}\0") }
    }

    /// Returns the token that continues from the same key at the latest revision.
    pub(crate) fn inconsistent(&self) -> Self {
        Self { revision: -1, start: self.start.clone() }
    }

    pub(crate) fn encode(&self, format: TokenFormat) -> String {
        let slash = if format == TokenFormat::Cache { "/" } else { "" };
        let encoded =
            Encoded { v: VERSION.into(), rv: self.revision, start: format!("{slash}{}", self.start) };
        let json = serde_json::to_vec(&encoded).expect("strings and numbers always encode");
        URL_SAFE_NO_PAD.encode(json)
    }

    /// Decodes a token. The error is the text after `invalid continue token: `.
    pub(crate) fn decode(token: &str) -> Result<Self, String> {
        let invalid = |why: &dyn std::fmt::Display| format!("continue key is not valid: {why}");
        if token.len() > MAX_TOKEN_BYTES {
            return Err(invalid(&"token is too long"));
        }
        let json = URL_SAFE_NO_PAD.decode(token).map_err(|e| invalid(&e))?;
        let encoded: Encoded<'_> = serde_json::from_slice(&json).map_err(|e| invalid(&e))?;
        if encoded.v != VERSION {
            return Err(invalid(&format!("server does not recognize this encoded version {}", encoded.v)));
        }
        if encoded.rv == 0 {
            return Err(invalid(&format!("incorrect encoded start resourceVersion (version {VERSION})")));
        }
        if encoded.start.is_empty() {
            return Err(invalid(&format!("encoded start key empty (version {VERSION})")));
        }
        let start = encoded.start.strip_prefix('/').unwrap_or(&encoded.start);
        if !is_clean(start) {
            return Err(invalid(&encoded.start));
        }
        Ok(Self { revision: encoded.rv, start: start.to_owned() })
    }
}

/// Returns whether a path has no empty, `.` or `..` parts, so that a start key cannot leave its prefix.
fn is_clean(path: &str) -> bool {
    path.is_empty() || path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(json: &str) -> String {
        URL_SAFE_NO_PAD.encode(json)
    }

    #[track_caller]
    fn error(json: &str) -> String {
        ContinueToken::decode(&token(json)).unwrap_err()
    }

    #[test]
    fn tokens_are_encoded_as_by_kube_apiserver() {
        let after = ContinueToken::after("a", 1);
        assert_eq!(
            after.encode(TokenFormat::Cache),
            "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIvYVx1MDAwMCJ9"
        );
        assert_eq!(
            after.encode(TokenFormat::Storage),
            token(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a\u0000"}"#)
        );
    }

    #[test]
    fn both_formats_are_decoded() {
        for format in [TokenFormat::Cache, TokenFormat::Storage] {
            let after = ContinueToken::after("ns/name", 77);
            assert_eq!(ContinueToken::decode(&after.encode(format)), Ok(after.clone()));
            let replaced = ContinueToken { revision: -1, start: "ns/name\0".to_owned() };
            assert_eq!(ContinueToken::decode(&after.inconsistent().encode(format)), Ok(replaced));
        }
    }

    #[test]
    fn malformed_tokens_are_rejected_with_a_reason() {
        let version = "(version meta.k8s.io/v1)";
        assert_eq!(
            error(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#),
            format!("continue key is not valid: incorrect encoded start resourceVersion {version}")
        );
        assert_eq!(
            error(r#"{"v":"meta.k8s.io/v1","rv":5,"start":""}"#),
            format!("continue key is not valid: encoded start key empty {version}")
        );
        assert_eq!(
            error(r#"{"v":"v2","rv":5,"start":"a"}"#),
            "continue key is not valid: server does not recognize this encoded version v2"
        );
        for garbage in ["%%%", "YQ", "", &"a".repeat(MAX_TOKEN_BYTES + 1)] {
            assert!(ContinueToken::decode(garbage).unwrap_err().starts_with("continue key is not valid: "));
        }
    }

    #[test]
    fn a_start_key_cannot_leave_its_prefix() {
        for start in ["../secrets", "/../secrets", "a/../../b", "a//b", "//a", "./a", "a/.", "a/", "a/.."] {
            let json = format!(r#"{{"v":"meta.k8s.io/v1","rv":5,"start":"{start}"}}"#);
            assert_eq!(error(&json), format!("continue key is not valid: {start}"));
        }
        for start in ["/a", "a", "a/b", "...", "a/..b"] {
            let json = format!(r#"{{"v":"meta.k8s.io/v1","rv":5,"start":"{start}"}}"#);
            assert!(ContinueToken::decode(&token(&json)).is_ok(), "{start}");
        }
    }
}
