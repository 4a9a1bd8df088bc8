//! Compares compilation, values, errors, costs and estimates with those of kube-apiserver.
//!
//! `conformance.jsonl` holds the outcomes of `oracle/main.go`, a program over the libraries of Kubernetes 1.36; its README says how to
//! record them. A case that is `loose` has another error message here; only whether and where it fails is compared.

use kube_informer_cel::{CompileError, Environment, Output, PER_CALL_LIMIT, Schema};
use serde_json::{Map, Value as Json, json};

/// The outcome of a case, of the oracle or of this crate.
fn outcome(case: &Json) -> Map<String, Json> {
    let declared = case.get("schema").cloned();
    let schema = match &declared {
        Some(schema) if schema["type"] == "object" && schema.get("additionalProperties").is_none() => {
            Schema::of_resource(schema)
        }
        Some(schema) => Schema::new(schema),
        None => Schema::new(&json!({"type": "boolean"})),
    };
    let optional = case["optional"] == true;
    let environment =
        Environment::new(&schema).expect("a schema with a type").with_optional_old_self(optional);
    let mut out = Map::new();
    let program = match environment.compile(case["expr"].as_str().unwrap_or_default()) {
        Ok(program) => program,
        Err(CompileError::Invalid(why)) => {
            out.insert("issues".to_owned(), why.into());
            return out;
        }
        Err(CompileError::Program(why)) => {
            out.insert("program".to_owned(), why.into());
            return out;
        }
        Err(other) => panic!("{other}"),
    };
    let (min, max) = program.estimated_cost();
    out.insert("type".to_owned(), program.output_type().into());
    out.insert("min".to_owned(), min.into());
    out.insert("max".to_owned(), max.into());
    let current = case.get("self").unwrap_or(&Json::Bool(true));
    let evaluated = if optional {
        program.evaluate_optional(&schema, current, case.get("old"), PER_CALL_LIMIT)
    } else {
        program.evaluate(&schema, current, case.get("old"), PER_CALL_LIMIT)
    };
    out.insert("cost".to_owned(), evaluated.cost.into());
    match evaluated.result {
        Ok(Output::Bool(b)) => out.insert("value".to_owned(), b.to_string().into()),
        Ok(Output::String(text)) => out.insert("text".to_owned(), text.into()),
        Ok(Output::Other(text)) => out.insert("value".to_owned(), text.into()),
        Ok(other) => panic!("{other:?}"),
        Err(why) => out.insert("error".to_owned(), why.into()),
    };
    out
}

/// Returns how an outcome differs from the recorded one.
fn difference(case: &Json, ours: &Map<String, Json>) -> Option<String> {
    let loose = case["loose"] == true;
    for key in ["issues", "program", "type", "value", "error", "cost", "min", "max"] {
        let recorded = case.get(key).filter(|value| *value != "");
        let own = match (key, ours.get("text")) {
            // A string is recorded as a literal.
            ("value", Some(text)) => {
                let literal = recorded
                    .and_then(Json::as_str)
                    .map(|literal| literal.replace("\\a", "\\u0007").replace("\\v", "\\u000b"));
                if literal.and_then(|literal| serde_json::from_str(&literal).ok()).as_ref() != Some(text) {
                    return Some(format!("{key}: {recorded:?}, here the string {text}"));
                }
                continue;
            }
            _ => ours.get(key),
        };
        // Without a program there is no type and no cost here.
        let applies = !matches!(key, "type" | "min" | "max")
            || ours.contains_key("type")
            || !case["program"].is_string();
        let applies = applies && (!matches!(key, "min" | "max") || ours.contains_key("type"));
        let same = if loose { recorded.is_some() == own.is_some() } else { recorded == own };
        if applies && !same {
            return Some(format!("{key}: {}, here {}", text(recorded), text(own)));
        }
    }
    None
}

fn text(value: Option<&Json>) -> String {
    value
        .map_or("nothing".to_owned(), |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

#[test]
fn outcomes_are_those_of_kube_apiserver() {
    let recorded = std::env::var("CEL_CASES").map_or_else(
        |_| include_str!("conformance.jsonl").to_owned(),
        |path| std::fs::read_to_string(path).unwrap(),
    );
    let cases: Vec<Json> = recorded.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!cases.is_empty());
    let differences: Vec<String> = cases
        .iter()
        .filter_map(|case| difference(case, &outcome(case)).map(|why| format!("{}\n    {why}", case["expr"])))
        .collect();
    assert!(
        differences.is_empty(),
        "{} of {} cases differ:\n{}",
        differences.len(),
        cases.len(),
        differences.join("\n")
    );
}
