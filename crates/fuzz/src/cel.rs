//! CEL expressions and the rules of schemas.

use crate::{text, values};
use kube_informer_cel::{
    Environment, PER_CALL_LIMIT, Schema, Validator, check_defaults, check_rules, compile_pattern,
};
use serde_json::{Value, json};

/// A small limit, so that expressions that copy much end soon.
const SMALL_LIMIT: u64 = 1_000;

fn schema() -> Schema {
    Schema::of_resource(&json!({"type": "object", "properties": {
        "s": {"type": "string"}, "n": {"type": "integer"}, "o": {"type": "string"},
        "l": {"type": "array", "items": {"type": "string"}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "d": {"x-kubernetes-int-or-string": true}, "t": {"type": "string", "format": "date-time"}}}))
}

/// Any text compiles or is an error. An expression ends within the cost limit, with the same result every time, and does not cost more
/// than was estimated for values without bounds.
pub fn cel_expression(data: &[u8]) {
    let Some(expression) = text(data) else { return };
    let _ = compile_pattern(expression);
    let schema = schema();
    let Some(environment) = Environment::new(&schema) else { return };
    let Ok(program) = environment.compile(expression) else { return };
    let (least, most) = program.estimated_cost();
    assert!(least <= most, "the estimate is a range: {least} to {most}");
    let object = json!({"s": "aé,日", "n": -3, "l": ["b", "", "a"], "m": {"a": 1}, "d": "5%", "t": "2020-02-29T23:59:59.5Z"});
    for limit in [0, SMALL_LIMIT, PER_CALL_LIMIT] {
        let outcome = program.evaluate(&schema, &object, Some(&object), limit);
        assert!(outcome.exceeded || outcome.cost <= limit, "{} is more than {limit}", outcome.cost);
        assert!(!outcome.exceeded || outcome.result.is_err(), "no result beyond the limit");
        let again = program.evaluate(&schema, &object, Some(&object), limit);
        assert_eq!((again.cost, again.exceeded), (outcome.cost, outcome.exceeded));
        assert_eq!(format!("{:?}", again.result), format!("{:?}", outcome.result));
    }
    let wrong = json!({"s": 1, "n": "x", "l": {}, "m": [], "d": {}, "t": "no"});
    let _ = program.evaluate(&schema, &wrong, None, SMALL_LIMIT);
}

/// Rules that the check of a CRD accepts compile, and their validation ends with the same verdict however much it is interrupted.
pub fn cel_rules(data: &[u8]) {
    let Some((schema, object)) = values(data) else { return };
    if !schema.is_object() {
        return;
    }
    let problems = check_rules(&schema, "schema");
    for problem in &problems {
        assert!(!problem.message().is_empty() && problem.field.starts_with("schema"), "{problem:?}");
    }
    let _ = check_defaults(&schema, "schema");
    let Some(validator) = Validator::new(Schema::of_resource(&schema)) else { return };
    for old in [None, Some(&object), Some(&Value::Null)] {
        let verdict = validator.validate(&object, old);
        assert_eq!(validator.validate(&object, old), verdict, "not deterministic");
        if let Some(within) = validator.validate_within(&object, old, SMALL_LIMIT) {
            assert_eq!(within, verdict, "an allowance that is enough changes the verdict");
        }
    }
}
