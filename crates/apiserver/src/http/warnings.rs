//! `Warning` headers.

use std::collections::HashSet;

use http::header::{HeaderValue, WARNING};
use http::{HeaderMap, Response};

/// Characters of all warnings. Beyond it each is cut to [`CUT`], as in kube-apiserver: clients limit the size of headers.
const MAX_TOTAL: usize = 4 * 1024;
const CUT: usize = 256;

/// Adds a `Warning` header for each distinct text.
pub(crate) fn warn<'t, B>(response: &mut Response<B>, texts: impl IntoIterator<Item = &'t str>) {
    let mut seen = HashSet::new();
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty() && seen.insert(*text)).collect();
    let total: usize = texts.iter().map(|text| text.chars().count()).sum();
    let headers = response.headers_mut();
    if total <= MAX_TOTAL {
        texts.into_iter().for_each(|text| append(headers, text));
        return;
    }
    let mut written = 0;
    for text in texts {
        if written >= MAX_TOTAL {
            break;
        }
        let cut: String = text.chars().take(CUT).collect();
        written += cut.chars().count();
        append(headers, &cut);
    }
}

fn append(headers: &mut HeaderMap, text: &str) {
    if let Ok(value) = HeaderValue::from_str(&quoted(text)) {
        headers.append(WARNING, value);
    }
}

/// RFC 7234: code, agent, quoted text. Characters that a header cannot hold are dropped.
fn quoted(text: &str) -> String {
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    let printable: String = quoted.chars().filter(|c| !c.is_control() && c.is_ascii()).collect();
    format!("299 - \"{printable}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(texts: &[&str]) -> Vec<String> {
        let mut response = Response::new(());
        warn(&mut response, texts.iter().copied());
        let values = response.headers().get_all(WARNING).iter();
        values.map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn texts_are_quoted_and_sent_once() {
        assert_eq!(headers(&["a \"b\"\\\n", "c", "c", ""]), [r#"299 - "a \"b\"\\""#, r#"299 - "c""#]);
    }

    #[test]
    fn many_long_texts_are_cut() {
        let long: Vec<String> = (0..100).map(|n| format!("{n:03}{}", "x".repeat(1000))).collect();
        let sent = headers(&long.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(sent.len(), MAX_TOTAL / CUT);
        assert!(sent.iter().all(|text| text.len() == CUT + r#"299 - """#.len()));
        let one = "y".repeat(MAX_TOTAL);
        assert_eq!(headers(&[&one])[0].len(), MAX_TOTAL + 8, "what fits is not cut");
    }
}
