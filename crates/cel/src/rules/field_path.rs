//! `fieldPath`: the field that an error is reported for, as a path from the value of the rule.

use crate::schema::Schema;

/// Returns the path in the form of error messages, or why it is not valid for the schema.
pub(super) fn normalize(path: &str, schema: &Schema) -> Result<String, String> {
    let mut out = String::new();
    let mut at = schema;
    let mut tokens = tokens(path).into_iter();
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" => {
                let token = tokens.next().ok_or("unexpected end of JSON path")?;
                let inner = token.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let inner = inner.filter(|_| token.len() >= 2);
                let name =
                    unescape(inner.ok_or_else(|| format!("expected single quoted string but got {token}"))?)?;
                at = descend(at, &name, &mut out)?;
                match tokens.next() {
                    Some("]") => continue,
                    Some(other) => return Err(format!("expected ] but got {other}")),
                    None => return Err("unexpected end of JSON path".to_owned()),
                }
            }
            "." => tokens.next().ok_or("unexpected end of JSON path")?,
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        at = descend(at, name, &mut out)?;
    }
    Ok(out)
}

fn descend<'s>(schema: &'s Schema, name: &str, out: &mut String) -> Result<&'s Schema, String> {
    const UNKNOWN: &str = "does not refer to a valid field";
    if schema.is_struct() {
        if !out.is_empty() {
            out.push('.');
        }
        out.push_str(name);
        return schema.properties.get(name).ok_or_else(|| UNKNOWN.to_owned());
    }
    let inner = schema.additional.as_deref().ok_or(UNKNOWN)?;
    out.push('[');
    out.push_str(name);
    out.push(']');
    Ok(inner)
}

/// Splits a path at `.`, `[` and `]` outside of quotes.
fn tokens(path: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let bytes = rest.as_bytes();
                let end = (1..bytes.len()).find(|i| bytes[*i] == b'\'' && bytes[i - 1] != b'\\');
                end.map_or(rest.len(), |end| end + 1)
            }
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        out.push(token);
        rest = after;
    }
    out
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('\'') => '\'',
            Some('\\') => '\\',
            Some(other) => return Err(format!("invalid string literal: invalid escape char \\{other}")),
            None => '\\',
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_follow_the_schema() {
        let schema = Schema::new(&json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b.c": {"type": "string"}, "d": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "string"}}}},
        }}));
        for (path, normalized) in [
            (".a.d", "a.d"),
            (".a['b.c']", "a.b.c"),
            ("['a'].d", "a.d"),
            (".m.key.x", "m[key].x"),
            (".m['it\\'s'].x", "m[it's].x"),
            ("", ""),
        ] {
            assert_eq!(normalize(path, &schema).as_deref(), Ok(normalized), "{path}");
        }
        for path in ["a", ".a.", ".a[", ".a['d'", ".a[d]", ".x", ".a.d.e", ".a['\\q']", "..a", ".a]"] {
            assert!(normalize(path, &schema).is_err(), "{path}");
        }
    }
}
