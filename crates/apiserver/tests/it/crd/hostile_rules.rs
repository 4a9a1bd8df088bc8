//! CRDs and objects that are made to exhaust the server through CEL rules: refused when written, or stopped by a limit.

use serde_json::{Value, json};

use super::{DEFINITIONS, WIDGETS, cluster, definition, message, widget};
use crate::cluster::Cluster;

/// A CRD whose `spec` has this schema.
fn with_spec(spec: Value) -> Value {
    definition(&[json!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})])
}

fn with_rule(properties: Value, rule: &str) -> Value {
    with_spec(
        json!({"type": "object", "properties": properties, "x-kubernetes-validations": [{"rule": rule}]}),
    )
}

/// Properties without bounds, which estimates assume to be as large as a request may be.
fn unbounded() -> Value {
    let list = json!({"type": "array", "items": {"type": "string"}});
    json!({"s": {"type": "string"}, "n": {"type": "integer"}, "l": list, "m": {"type": "object", "additionalProperties": list}})
}

/// The same with bounds that make each rule cheap enough to be accepted.
fn bounded() -> Value {
    let text = json!({"type": "string", "maxLength": 500});
    json!({"s": text, "n": {"type": "integer"}, "l": {"type": "array", "maxItems": 2_000, "items": {"type": "string", "maxLength": 10}}})
}

#[tokio::test(start_paused = true)]
async fn rules_that_may_cost_too_much_are_refused_with_the_crd() {
    let c = Cluster::new().await;
    for rule in [
        // Nested comprehensions.
        "self.l.all(a, self.l.all(b, a != b))",
        "self.l.all(a, self.l.exists(b, self.l.map(c, c + a).size() > b.size()))",
        "self.m.all(k, self.m[k].all(v, self.m.all(l, l != v)))",
        // Growth of texts.
        "self.l.map(x, self.s + self.s).map(x, x + x + x + x).all(x, x.contains('ab'))",
        "self.l.all(x, self.s.replace('a', self.s).size() > 0)",
        // Regular expressions that depend on the object.
        "self.l.all(x, self.s.matches(x))",
        "self.l.all(x, x.matches('^(a+)+$') && self.l.all(y, y.matches('(a*)*b')))",
        // Sorting and sets.
        "self.l.all(x, self.l.isSorted() && sets.contains(self.l, self.l))",
    ] {
        let (code, status) = c.post(DEFINITIONS, with_rule(unbounded(), rule)).await;
        assert_eq!(code, 422, "{rule}: {status}");
        let why = message(&status);
        assert!(
            why.contains("estimated rule cost exceeds budget") || why.contains("exceeds budget for entire"),
            "{rule}: {why}"
        );
    }
    assert_eq!(c.get(DEFINITIONS).await.1["items"], json!([]), "none of them is stored");
}

#[tokio::test(start_paused = true)]
async fn rules_that_are_too_long_or_too_deep_are_refused_with_the_crd() {
    let c = Cluster::new().await;
    let deep = |open: &str, close: &str, n: usize| format!("{}true{}", open.repeat(n), close.repeat(n));
    for rule in [
        "a".repeat(200_000),
        deep("(", ")", 5_000),
        deep("[", "][0]", 5_000),
        deep("!", "", 150_000),
        format!("true{}", " && true".repeat(30_000)),
        format!("self.n == {}", vec!["1"; 40_000].join(" + ")),
        format!("self{}", ".s".repeat(20_000)),
        "[1].exists(x, ".repeat(500) + "true" + &")".repeat(500),
        format!("optional.of(1){}.hasValue()", ".optMap(x, x + x)".repeat(40)),
        format!("self.s.matches('{}')", "(".repeat(10_000)),
        "self.s.matches('(((a{100}){100}){100}){100}')".to_owned(),
        format!("'{}' == self.s", "\\u0041".repeat(50_000)),
        "'''".to_owned(),
        "\u{0}".to_owned(),
        "self.s == '\u{202e}'\u{0}".to_owned(),
    ] {
        let (code, status) = c.post(DEFINITIONS, with_rule(bounded(), &rule)).await;
        assert!(matches!(code, 400 | 422), "{rule:.60}: {code} {:.300}", status.to_string());
        assert!(status.to_string().len() < 2_000_000, "{rule:.60}: the response is too long");
    }
}

/// Many rules at once have a limit together, and so has the schema.
#[tokio::test(start_paused = true)]
async fn many_rules_have_a_limit_together() {
    let c = Cluster::new().await;
    let list = json!({"type": "array", "maxItems": 1_000, "items": {"type": "string", "maxLength": 100}});
    let rules: Vec<Value> = (0..200)
        .map(|n| json!({"rule": format!("self.l.all(x, self.l.exists(y, x != y + '{n}'))")}))
        .collect();
    let spec = json!({"type": "object", "properties": {"l": list}, "x-kubernetes-validations": rules});
    let (code, status) = c.post(DEFINITIONS, with_spec(spec)).await;
    assert_eq!(code, 422);
    assert!(message(&status).contains("budget"), "{:.300}", message(&status));
    let causes = status["details"]["causes"].as_array().expect("causes");
    assert!(causes.len() <= 1_000, "{}", causes.len());
}

/// A rule within the estimate may still be expensive for an object: the limit at run time refuses the object.
#[tokio::test(start_paused = true)]
async fn objects_that_cost_too_much_are_refused_and_the_next_one_is_served() {
    let text = json!({"type": "string", "maxLength": 500});
    let list =
        |most: u32| json!({"type": "array", "maxItems": most, "items": {"type": "string", "maxLength": 10}});
    for (rule, most, spec) in [
        ("self.l.all(a, self.l.all(b, a.size() + b.size() >= 0))", 1_400, json!({"l": vec!["x"; 1_400]})),
        (
            "self.l.map(a, a + a).map(a, a + a).all(a, a.matches('^(x|y)*$'))",
            2_000,
            json!({"l": vec!["xxxxxxxxxx"; 2_000]}),
        ),
    ] {
        let definition = with_rule(json!({"s": text, "l": list(most)}), rule);
        let c = Cluster::new().await;
        let (code, status) = c.post(DEFINITIONS, definition).await;
        if code == 422 {
            // The estimate refuses it already, which is earlier still.
            assert!(message(&status).contains("budget"), "{rule}: {status}");
            continue;
        }
        let (code, status) = c.post(WIDGETS, widget("a", spec)).await;
        assert!(
            code == 201 || message(&status).contains("call cost exceeds limit"),
            "{rule}: {code} {status}"
        );
        let (code, small) = c.post(WIDGETS, widget("b", json!({"l": ["x"], "s": "y"}))).await;
        assert_eq!(code, 201, "{rule}: {small}");
    }
}

/// Values of a type that no rule expects, at the limits of numbers, times and texts.
#[tokio::test(start_paused = true)]
async fn odd_values_are_an_error_of_the_rule_and_not_of_the_server() {
    let properties = json!({"n": {"type": "integer", "format": "int64"}, "f": {"type": "number"}, "s": {"type": "string", "maxLength": 100},
        "t": {"type": "string", "format": "date-time"}, "d": {"type": "string", "format": "duration"},
        "x": {"x-kubernetes-int-or-string": true}, "any": {"x-kubernetes-preserve-unknown-fields": true}});
    let rules = json!([
        {"rule": "!has(self.n) || self.n + 1 > self.n"},
        {"rule": "!has(self.f) || self.f / 0.0 != 1.0"},
        {"rule": "!has(self.s) || self.s.substring(0, 1) != 'q'"},
        {"rule": "!has(self.t) || self.t + duration('1h') > self.t"},
        {"rule": "!has(self.x) || (type(self.x) == int ? self.x < 100 : self.x.size() < 5)"},
        {"rule": "!has(self.s) || int(self.s) > 0", "messageExpression": "string(1 / 0)", "message": "not a number"}]);
    let c = cluster(with_spec(
        json!({"type": "object", "properties": properties, "x-kubernetes-validations": rules}),
    ))
    .await;
    for (spec, words) in [
        (json!({"n": i64::MAX}), "integer overflow"),
        (json!({"n": i64::MIN}), ""),
        (json!({"f": 0}), ""),
        (json!({"f": 1e308}), ""),
        (json!({"s": ""}), "index out of range"),
        (json!({"s": "é"}), "type conversion error"),
        (json!({"t": "9999-12-31T23:59:59Z"}), ""),
        (json!({"x": "long text"}), "failed rule"),
        (json!({"x": 7}), ""),
        (json!({"any": {"deep": [[[[[[1]]]]]]}}), ""),
    ] {
        let (code, status) = c.post(&format!("{WIDGETS}?dryRun=All"), widget("a", spec.clone())).await;
        assert!(matches!(code, 201 | 422), "{spec}: {code} {status}");
        if !words.is_empty() {
            assert!(code == 422 && message(&status).contains(words), "{spec}: {code} {}", message(&status));
        }
    }
}

/// Objects with long lists are refused or served, and other requests are not kept waiting for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expensive_objects_do_not_stop_other_requests() {
    let list = json!({"type": "array", "maxItems": 20_000, "items": {"type": "string", "maxLength": 20}});
    let c = cluster(with_rule(json!({"l": list}), "self.l.all(x, x.size() < 21 && x != 'y')")).await;
    let body = widget("big", json!({"l": vec!["xxxxxxxxxxxxxxxxxxxx"; 20_000]}));
    let writes: Vec<_> = (0..8)
        .map(|n| {
            let c = Cluster { server: c.server.clone(), client: c.server.client() };
            let mut body = body.clone();
            body["metadata"]["name"] = format!("big-{n}").into();
            tokio::spawn(async move { c.post(WIDGETS, body).await.0 })
        })
        .collect();
    for _ in 0..50 {
        assert_eq!(c.get("/api/v1/namespaces/default").await.0, 200);
    }
    for write in writes {
        let code = write.await.expect("no write panics");
        assert!(matches!(code, 201 | 422), "{code}");
    }
}
