//! Patterns for output that differs between runs: `{name}` matches text without spaces, `{*}` any text, and a line `...`
//! any lines. The number of spaces between words does not matter.

/// Returns whether lines match a pattern.
pub(crate) fn matches(pattern: &[String], lines: &[String]) -> bool {
    match pattern {
        [] => lines.is_empty(),
        [first, rest @ ..] if first == "..." => {
            (0..=lines.len()).any(|skipped| matches(rest, &lines[skipped..]))
        }
        [first, rest @ ..] => match lines {
            [line, others @ ..] => line_matches(&words(first), &words(line)) && matches(rest, others),
            [] => false,
        },
    }
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn line_matches(pattern: &str, line: &str) -> bool {
    let Some((before, name, after)) = placeholder(pattern) else { return pattern == line };
    let Some(rest) = line.strip_prefix(before) else { return false };
    let ends = rest.char_indices().map(|(at, _)| at).skip(1).chain([rest.len()]);
    let (shortest, spaces) = (usize::from(name != "*"), name == "*");
    std::iter::once(0)
        .chain(ends)
        .filter(|end| *end >= shortest)
        .take_while(|end| spaces || !rest[..*end].contains(' '))
        .any(|end| line_matches(after, &rest[end..]))
}

/// The first placeholder of a pattern: lower-case letters or `*` in braces. JSON does not contain those.
fn placeholder(pattern: &str) -> Option<(&str, &str, &str)> {
    pattern.match_indices('{').find_map(|(open, _)| {
        let (name, after) = pattern[open + 1..].split_once('}')?;
        let is_name = name == "*" || !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
        is_name.then(|| (&pattern[..open], name, after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pattern: &str, lines: &str) -> bool {
        let split = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        matches(&split(pattern), &split(lines))
    }

    #[test]
    fn placeholders_match_variable_text() {
        assert!(all("NAME   AGE\na {age}", "NAME AGE\na       3s"));
        assert!(!all("a {age}", "a 3s 4s"));
        assert!(!all("a {age}", "a "));
        assert!(all("a {*}", "a 3s 4s"));
        assert!(all("a\n...\nd", "a\nb\nc\nd"));
        assert!(all("a\n...\nd", "a\nd"));
        assert!(!all("a\n...\nd", "a\nb"));
        assert!(!all("a", "a\nb"));
        assert!(all(r#"{"k":{}} {rv}"#, r#"{"k":{}} 12"#));
        assert!(!all(r#"{"k":1}"#, r#"{"k":2}"#));
    }
}
