//! Label selectors as text, and truncated lists.

use serde_json::Value;

/// `a=1,b in (c,d),!e`, by key; empty for a selector that is absent or selects everything.
pub(super) fn selector(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return String::new() };
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let mut parts: Vec<(&str, String)> =
        labels.map(|(key, value)| (key.as_str(), format!("{key}={}", text(value)))).collect();
    for requirement in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        parts.push((text(&requirement["key"]), expression(requirement)));
    }
    parts.sort_by_key(|(key, _)| *key);
    parts.into_iter().map(|(_, part)| part).collect::<Vec<_>>().join(",")
}

fn expression(requirement: &Value) -> String {
    let key = text(&requirement["key"]);
    let mut values: Vec<&str> = requirement["values"].as_array().into_iter().flatten().map(text).collect();
    values.sort_unstable();
    let values = values.join(",");
    match text(&requirement["operator"]) {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        _ => key.to_owned(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The first elements, and the number of the others.
pub(super) fn some_of(all: &[String], shown: usize, separator: &str) -> String {
    if all.len() <= shown {
        return all.join(separator);
    }
    format!("{} + {} more...", all[..shown].join(separator), all.len() - shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_are_written_by_key() {
        let requirements = [
            json!({"key": "b", "operator": "In", "values": ["y", "x"]}),
            json!({"key": "c", "operator": "Exists"}),
            json!({"key": "a", "operator": "DoesNotExist"}),
        ];
        let all = json!({"matchLabels": {"d": "1"}, "matchExpressions": requirements});
        assert_eq!(selector(Some(&all)), "!a,b in (x,y),c,d=1");
        assert_eq!(selector(Some(&json!({}))), "");
        assert_eq!(selector(None), "");
    }

    #[test]
    fn long_lists_are_cut() {
        let all: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        assert_eq!(some_of(&all, 3, ","), "a,b,c");
        assert_eq!(some_of(&all, 2, ", "), "a, b + 1 more...");
    }
}
