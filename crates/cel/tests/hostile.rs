//! Expressions and values that are made to exhaust time, memory or the stack, and random ones.

use kube_informer_cel::{
    CompileError, Environment, Outcome, PER_CALL_LIMIT, Schema, Validator, check_rules, compile_pattern,
};
use serde_json::{Value as Json, json};

fn schema() -> Schema {
    Schema::of_resource(&json!({"type": "object", "properties": {
        "s": {"type": "string"}, "n": {"type": "integer"}, "l": {"type": "array", "items": {"type": "string"}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "d": {"x-kubernetes-int-or-string": true}, "t": {"type": "string", "format": "date-time"}}}))
}

fn compile(expression: &str) -> Result<kube_informer_cel::Program, CompileError> {
    Environment::new(&schema()).expect("an object").compile(expression)
}

fn evaluate(expression: &str, object: &Json) -> Outcome {
    let program = compile(expression).unwrap_or_else(|e| panic!("{expression}: {e}"));
    program.evaluate(&schema(), object, Some(object), PER_CALL_LIMIT)
}

fn assert_exceeds(expression: &str, object: &Json) {
    let outcome = evaluate(expression, object);
    assert!(outcome.exceeded, "{expression:.80}: {:?}", outcome.result.map(|_| "a value"));
}

fn rejected(expression: &str) -> String {
    match compile(expression) {
        Ok(_) => panic!("{expression:.80} is accepted"),
        Err(error) => error.to_string(),
    }
}

/// Runs on the stack of a thread that a server gives its requests, with room to spare.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn long_and_deep_expressions_are_rejected() {
    on_a_small_stack(|| {
        let long = rejected(&format!("'{}' == ''", "a".repeat(100_000)));
        assert_eq!(
            long,
            "compilation failed: ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100008, limit 100000"
        );
        for deep in [
            format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000)),
            format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000)),
            format!("{}1{}", "{'a':".repeat(10_000), "}".repeat(10_000)),
            format!("{}true", "true?".repeat(10_000)),
            format!("1{}", "+1".repeat(10_000)),
            format!("self{}", ".s".repeat(10_000)),
            format!("self{}", "[0]".repeat(10_000)),
            format!("1{}", " == 1".repeat(10_000)),
            "[1].map(x, ".repeat(400) + "1" + &")".repeat(400),
            "f(".repeat(10_000),
            format!("self.l{}", ".filter(x, true)".repeat(5_000)),
        ] {
            let why = rejected(&deep);
            assert!(why.contains("recursion limit exceeded") || why.contains("Syntax error"), "{why:.200}");
        }
    });
}

#[test]
fn the_deepest_expressions_fit_the_stack() {
    on_a_small_stack(|| {
        let object = json!({"n": 1});
        for (deep, n) in [("(1 + ", 240), ("[", 200), ("1 == 1 ? 1 : (", 110), ("-(", 200)] {
            let close = match deep {
                "[" => "]",
                _ => ")",
            };
            let expression = deep.repeat(n) + "1" + &close.repeat(n);
            let _ = evaluate(&expression, &object).result;
        }
        let nested = "[1].map(x, ".repeat(60) + "1" + &")".repeat(60);
        assert!(evaluate(&nested, &object).result.is_ok());
        let long = vec!["self.n == 1"; 5_000].join(" && ");
        assert!(evaluate(&long, &object).result.is_ok());
    });
}

#[test]
fn signs_and_strings_without_end_are_linear() {
    assert!(compile(&("-".repeat(90_000) + "self.n")).is_ok());
    assert!(compile(&("!".repeat(90_001) + "true")).is_ok());
    rejected(&"'".repeat(99_999));
    rejected(&"\"\"\"".repeat(33_000));
    rejected(&"=".repeat(99_999));
    rejected(&"a.".repeat(49_000));
    rejected(&"a{".repeat(49_000));
}

#[test]
fn macros_that_repeat_their_target_are_bounded() {
    let doubling = format!("optional.of(1){}.hasValue()", ".optMap(x, x)".repeat(60));
    assert!(rejected(&doubling).contains("expression size exceeds limit after macro expansion"));
}

#[test]
fn comprehensions_end_at_the_cost_limit() {
    let l: Vec<String> = (0..2_000).map(|i| i.to_string()).collect();
    let object = json!({"l": l});
    assert_exceeds("self.l.all(a, self.l.all(b, self.l.all(c, a + b + c != '')))", &object);
    assert_exceeds("self.l.map(a, self.l.map(b, a + b)).size() > 0", &object);
    assert_exceeds("lists.range(9223372036854775807).size() > 0", &object);
    assert_exceeds("self.l.map(x, lists.range(100000)).size() > 0", &object);
    assert_exceeds("self.l.distinct().sort().size() > 0", &object);
}

#[test]
fn copies_that_cost_nothing_are_bounded() {
    let l: Vec<String> = (0..20_000).map(|i| i.to_string()).collect();
    let object = json!({"l": l, "s": "x".repeat(100_000)});
    assert_exceeds("self.l.all(x, size(self.l + self.l) > 0)", &object);
    assert_exceeds(
        "self.l.all(x, self.s.replace('', 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy') != '')",
        &object,
    );
    let doubling = format!("optional.of(self.l){}.hasValue()", ".optMap(x, x + x)".repeat(12));
    assert_exceeds(&doubling, &object);
    assert_exceeds("self.l.all(x, x.matches(x + x + '[a-z]*$') || true)", &object);
}

#[test]
fn what_is_collected_is_not_copied_for_every_element() {
    let l: Vec<String> = (0..20_000).map(|i| i.to_string()).collect();
    let object = json!({"l": l});
    for expression in [
        "self.l.map(x, x + 'a').size() == 20000",
        "self.l.filter(x, x != '').size() == 20000",
        "self.l.transformMap(i, v, v).size() == 20000",
        "self.l.transformMapEntry(i, v, {v: i}).size() == 20000",
    ] {
        let outcome = evaluate(expression, &object);
        assert_eq!(
            outcome.result.map_err(|e| format!("{expression}: {e}")),
            Ok(kube_informer_cel::Output::Bool(true))
        );
    }
}

#[test]
fn expensive_patterns_are_rejected_or_linear() {
    assert!(compile_pattern(r"(((a{100}){100}){100}){100}").is_err());
    let object = json!({"s": "a".repeat(50_000)});
    let outcome = evaluate(r"self.s.matches('^(a+)+$') || self.s.matches('(a*)*b')", &object);
    assert!(outcome.result.is_ok() || outcome.exceeded);
}

#[test]
fn large_schemas_with_rules_are_checked_in_time() {
    let rule = json!([{"rule": "has(self.a) || true"}]);
    let mut schema = json!({"type": "string"});
    for _ in 0..100 {
        schema = json!({"type": "object", "properties": {"a": schema}, "x-kubernetes-validations": rule});
    }
    assert_eq!(check_rules(&schema, "schema"), []);
    let mut object = json!("x");
    for _ in 0..100 {
        object = json!({"a": object});
    }
    let validator = Validator::new(Schema::new(&schema)).unwrap();
    assert_eq!(validator.validate(&object, Some(&object)), kube_informer_cel::Verdict::default());
}

/// Fragments from which random expressions are made; most combinations are invalid in some way.
const FRAGMENTS: &[&str] = &[
    "self",
    "oldSelf",
    ".s",
    ".n",
    ".l",
    ".m",
    ".d",
    ".t",
    ".?s",
    "[0]",
    "[?1]",
    "['a']",
    ".all(x, ",
    ".exists(x, ",
    ".map(x, ",
    ".filter(x, ",
    ".exists_one(x, ",
    ".all(i, v, ",
    ".transformMap(k, v, ",
    ".sortBy(x, ",
    ".optMap(x, ",
    ")",
    "(",
    "x",
    "i",
    "v",
    "k",
    " + ",
    " - ",
    " * ",
    " / ",
    " % ",
    " == ",
    " != ",
    " < ",
    " && ",
    " || ",
    " in ",
    " ? ",
    " : ",
    "!",
    "-",
    "1",
    "1u",
    "1.5",
    "'a'",
    "b'\\xff'",
    "\"é\"",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "true",
    "null",
    "size(",
    ".size()",
    ".matches('a')",
    ".format([",
    "'%s %.2f'",
    ".split('')",
    ".join(',')",
    ".replace(",
    "string(",
    "int(",
    "duration('1h')",
    "timestamp('2020-01-01T00:00:00Z')",
    ".getHours()",
    "type(",
    "optional.of(",
    "optional.none()",
    ".value()",
    ".orValue(",
    "lists.range(",
    "sets.contains(",
    "quantity('1Gi')",
    ".asInteger()",
    "ip('::1')",
    "cidr('10.0.0.0/8')",
    "url('/a')",
    "semver('1.2.3')",
    "format.dns1123Label()",
    ".validate(",
    "has(",
    "dyn(",
    ".sum()",
    ".min()",
    ".flatten()",
    ".reverse()",
    ".distinct()",
    ".slice(0, 1)",
    ".first()",
    ".substring(1)",
    ".charAt(0)",
    ".indexOf('a')",
    ".lowerAscii()",
    ".trim()",
    "strings.quote(",
    "// c\n",
    "'''",
    "r'",
    "\\",
    "`",
    "@",
    "日",
    "\n",
];

#[test]
fn random_expressions_neither_panic_nor_run_away() {
    let seed = 0x5eed;
    let mut random = fastrand::Rng::with_seed(seed);
    let object = json!({"s": "aé日", "n": -3, "l": ["a", "", "b"], "m": {"a": 1, "b": 2}, "d": "5%", "t": "2020-02-29T23:59:59.5Z"});
    let schema = schema();
    let environment = Environment::new(&schema).unwrap();
    let mut valid = 0;
    for _ in 0..10_000 {
        let parts = random.usize(1..14);
        let mut expression: String = (0..parts).map(|_| *random.choice(FRAGMENTS).unwrap()).collect();
        // Half of the expressions have their brackets closed.
        if random.bool() {
            expression.push_str(&closing(&expression));
        }
        if let Ok(program) = environment.compile(&expression) {
            valid += 1;
            let outcome = program.evaluate(&schema, &object, Some(&object), PER_CALL_LIMIT);
            assert!(outcome.exceeded || outcome.cost <= PER_CALL_LIMIT, "{expression}");
        }
    }
    assert!(valid > 100, "only {valid} expressions are valid (seed {seed})");
}

fn closing(text: &str) -> String {
    let mut open = Vec::new();
    for c in text.chars() {
        match c {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' => drop(open.pop()),
            _ => {}
        }
    }
    open.into_iter().rev().collect()
}

#[test]
fn random_bytes_do_not_panic() {
    let mut random = fastrand::Rng::with_seed(7);
    let environment = Environment::new(&schema()).unwrap();
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..random.usize(0..40)).map(|_| random.u8(..)).collect();
        let text = String::from_utf8_lossy(&bytes);
        let _ = environment.compile(&text);
        let _ = compile_pattern(&text);
        // Bytes of ASCII reach further.
        let text: String = bytes.iter().map(|b| char::from(b & 0x7f)).collect();
        let _ = environment.compile(&text);
        let _ = compile_pattern(&text);
    }
}

#[test]
fn objects_that_do_not_fit_the_schema_give_errors() {
    for object in [
        json!(null),
        json!(1),
        json!([]),
        json!({"s": 1, "n": "x", "l": {"a": 1}, "m": [1], "d": {}, "t": "no"}),
    ] {
        for expression in [
            "self.s == 'a'",
            "self.n + 1 > 0",
            "self.l.all(x, x == '')",
            "self.m.all(k, k == '')",
            "self.d == 1",
            "self.t == self.t",
        ] {
            let outcome = evaluate(expression, &object);
            assert!(outcome.result.is_err(), "{expression} {object}");
        }
    }
}

#[test]
fn values_that_do_not_fit_the_schema_are_printed_as_invalid() {
    let object = json!({"s": 1, "n": 2, "l": [3], "m": {"a": "x"}});
    for (expression, wanted) in [
        ("self", r#"{"l": [<invalid>], "m": {"a": <invalid>}, "n": 2, "s": <invalid>}"#),
        ("[self.l]", "[[<invalid>]]"),
        ("{'a': self.m}", r#"{"a": {"a": <invalid>}}"#),
    ] {
        let outcome = evaluate(expression, &object);
        assert_eq!(outcome.result, Ok(kube_informer_cel::Output::Other(wanted.to_owned())), "{expression}");
    }
}
