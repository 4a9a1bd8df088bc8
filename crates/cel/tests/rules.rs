//! Rules in schemas: what a CRD may contain, and what they say about objects.

use kube_informer_cel::{Problem, Schema, Validator, Verdict, check_defaults, check_rules};
use serde_json::{Value as Json, json};

fn problems(schema: &Json) -> Vec<String> {
    check_rules(schema, "schema").iter().map(shown).collect()
}

fn shown(problem: &Problem) -> String {
    format!("{}: {}", problem.field, problem.message())
}

fn validate(schema: &Json, object: &Json, old: Option<&Json>) -> Verdict {
    Validator::new(Schema::of_resource(schema)).expect("the schema has rules").validate(object, old)
}

fn errors(schema: &Json, object: &Json, old: Option<&Json>) -> Vec<String> {
    validate(schema, object, old).errors.iter().map(shown).collect()
}

/// A schema whose `spec` has these properties and rules.
fn with_spec(properties: Json, rules: Json) -> Json {
    json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": properties, "x-kubernetes-validations": rules},
    }})
}

#[test]
fn valid_rules_have_no_problems() {
    let schema = with_spec(
        json!({"min": {"type": "integer"}, "max": {"type": "integer"}}),
        json!([{"rule": "self.min <= self.max", "messageExpression": "'%d > %d'.format([self.min, self.max])",
                "reason": "FieldValueInvalid", "fieldPath": ".min"},
               {"rule": "self.min >= oldSelf.min"},
               {"rule": "oldSelf.hasValue() || self.min > 0", "optionalOldSelf": true}]),
    );
    assert_eq!(problems(&schema), [""; 0]);
}

#[test]
fn expressions_with_errors_are_rejected_with_an_excerpt() {
    let schema =
        with_spec(json!({"a": {"type": "string"}}), json!([{"rule": "self.b == 1"}, {"rule": "self.a"}]));
    let at = "schema.properties[spec].x-kubernetes-validations";
    let rule = |rule: &str| {
        format!(
            r#"{{"Rule":"{rule}","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}}"#
        )
    };
    assert_eq!(
        problems(&schema),
        [
            format!(
                "{at}[0].rule: Invalid value: {}: compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b == \
                 1\n | ....^",
                rule("self.b == 1")
            ),
            format!(
                "{at}[1].rule: Invalid value: {}: cel expression must evaluate to a bool",
                rule("self.a")
            ),
        ]
    );
    let schema = with_spec(
        json!({"a": {"type": "string"}}),
        json!([{"rule": "self.a == 'x'", "messageExpression": "self.b"}, {"rule": "true", "messageExpression": "1"},
               {"rule": "int('x') == 1"}]),
    );
    let found = problems(&schema);
    assert!(
        found[0].contains("[0].messageExpression: ")
            && found[0].contains("messageExpression compilation failed: ERROR")
    );
    assert!(found[1].ends_with("messageExpression must evaluate to a string"));
    assert!(found[2].ends_with("program instantiation failed: type conversion error from 'string' to 'int'"));
}

#[test]
fn fields_of_rules_are_checked_before_expressions() {
    let schema = with_spec(
        json!({"a": {"type": "string"}}),
        json!([{"rule": " "}, {"rule": "true", "message": " "}, {"rule": "true", "message": "a\nb"},
               {"rule": "true\n&& true"}, {"rule": "true", "messageExpression": " "}, {"rule": "true", "reason": "x"},
               {"rule": "true", "fieldPath": ".b"}, {"rule": "nonsense("}]),
    );
    let at = "schema.properties[spec].x-kubernetes-validations";
    assert_eq!(
        problems(&schema),
        [
            format!("{at}[0].rule: Required value: rule is not specified"),
            format!("{at}[1].message: Invalid value: \" \": must be non-empty if specified"),
            format!("{at}[2].message: Invalid value: \"a\\nb\": must not contain line breaks"),
            format!(
                "{at}[3].message: Required value: message must be specified if rule contains line breaks"
            ),
            format!(
                "{at}[4].messageExpression: Required value: messageExpression must be non-empty if specified"
            ),
            format!(
                "{at}[5].reason: Unsupported value: \"x\": supported values: \"FieldValueDuplicate\", \
                 \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\""
            ),
            format!("{at}[6].fieldPath: Invalid value: \".b\": must be a valid path"),
        ]
    );
}

#[test]
fn rules_that_may_cost_too_much_are_rejected() {
    let schema = with_spec(
        json!({"l": {"type": "array", "items": {"type": "string"}}}),
        json!([{"rule": "self.l.all(x, self.l.all(y, x != y))"}]),
    );
    let limits = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings \
                  are declared)";
    let rule = "schema.properties[spec].x-kubernetes-validations[0].rule";
    assert_eq!(
        problems(&schema),
        [
            format!(
                "{rule}: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {limits}"
            ),
            format!(
                "{rule}: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
            ),
            format!(
                "schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds \
                 budget by factor of more than 100x {limits}"
            ),
        ]
    );
    // Each bound of the schema lowers the estimate.
    let bounded =
        json!({"l": {"type": "array", "maxItems": 50, "items": {"type": "string", "maxLength": 50}}});
    assert_eq!(
        problems(&with_spec(bounded, json!([{"rule": "self.l.all(x, self.l.all(y, x != y))"}]))),
        [""; 0]
    );
    // A rule below an unbounded list may be evaluated for every element.
    let nested = |bounds: Json| {
        let mut list = json!({"type": "array", "items": {"type": "object", "properties": {"s": {"type": "string"}},
            "x-kubernetes-validations": [{"rule": "self.s.matches('^a+$')"}]}});
        list.as_object_mut().unwrap().extend(bounds.as_object().unwrap().clone());
        json!({"type": "object", "properties": {"l": list}})
    };
    assert_eq!(problems(&nested(json!({}))).len(), 3);
    assert_eq!(problems(&nested(json!({"maxItems": 10}))), [""; 0]);
}

#[test]
fn old_self_needs_a_former_value() {
    let rule = json!([{"rule": "self == oldSelf"}]);
    let list = |kind: Json| {
        json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 2, "x-kubernetes-list-type": kind,
            "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object", "properties": {"k": {"type": "string"}},
            "x-kubernetes-validations": rule}}}})
    };
    assert_eq!(problems(&list(json!("map"))), [""; 0]);
    assert_eq!(
        problems(&list(json!("atomic"))),
        [
            "schema.properties[l].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": oldSelf cannot be \
          used on the uncorrelatable portion of the schema within schema.properties[l]"
        ]
    );
    let schema = with_spec(json!({}), json!([{"rule": "true", "optionalOldSelf": true}]));
    assert_eq!(
        problems(&schema),
        [
            "schema.properties[spec].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf \
          is not used in rule"
        ]
    );
}

#[test]
fn failed_rules_are_reported_with_their_message_field_and_reason() {
    let properties = json!({"a": {"type": "integer"}, "b": {"type": "string", "x-kubernetes-validations": [
        {"rule": "self.startsWith('x')"}, {"rule": "self.size() < 3", "message": " too long "}]}});
    let schema = with_spec(
        properties,
        json!([{"rule": "self.a > 1", "message": "a is small", "fieldPath": ".a"},
               {"rule": "self.a > 2", "reason": "FieldValueForbidden"},
               {"rule": "self.a > 3", "reason": "FieldValueRequired", "fieldPath": ".a"},
               {"rule": "self.a > 4", "reason": "FieldValueDuplicate"},
               {"rule": "self.a > 5", "message": "unused", "messageExpression": "'a is ' + string(self.a)"},
               {"rule": "self.a > 6", "message": "kept", "messageExpression": "string(1 / (self.a - 1))"},
               {"rule": "self.a > 7", "messageExpression": "'two\\nlines'"}]),
    );
    assert_eq!(
        errors(&schema, &json!({"spec": {"a": 1, "b": "long"}}), None),
        [
            "spec.a: Invalid value: a is small",
            "spec: Forbidden: failed rule: self.a > 2",
            "spec.a: Required value: failed rule: self.a > 3",
            "spec: Duplicate value",
            "spec: Invalid value: a is 1",
            "spec: Invalid value: kept",
            "spec: Invalid value: failed rule: self.a > 7",
            "spec.b: Invalid value: \"long\": failed rule: self.startsWith('x')",
            "spec.b: Invalid value: \"long\": too long",
        ]
    );
    assert_eq!(errors(&schema, &json!({"spec": {"a": 9, "b": "xy"}}), None), [""; 0]);
    assert_eq!(errors(&schema, &json!({}), None), [""; 0]);
}

#[test]
fn errors_of_rules_are_reported_as_such() {
    let schema = with_spec(
        json!({"a": {"type": "integer"}, "p": {"x-kubernetes-int-or-string": true}}),
        json!([{"rule": "1 / self.a > 0"}, {"rule": "self.p.size() > 1", "message": "m"}, {"rule": "self.a == 0"}]),
    );
    assert_eq!(
        errors(&schema, &json!({"spec": {"a": 0, "p": 5}}), None),
        [
            "spec: Invalid value: \"object\": division by zero evaluating rule: 1 / self.a > 0",
            "spec: Invalid value: \"object\": 'no such overload: size': call arguments did not match a supported operator, \
             function or macro signature for rule: m",
        ]
    );
}

#[test]
fn rules_at_the_root_see_type_and_name() {
    let schema = json!({"type": "object", "x-kubernetes-validations": [
        {"rule": "self.metadata.name.startsWith('x') && self.kind == 'K'"}]});
    assert_eq!(problems(&schema), [""; 0]);
    let object =
        |name: &str| json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": name, "labels": {}}});
    assert_eq!(errors(&schema, &object("xy"), None), [""; 0]);
    assert_eq!(
        errors(&schema, &object("y"), None),
        ["<nil>: Invalid value: failed rule: self.metadata.name.startsWith('x') && self.kind == 'K'"]
    );
}

#[test]
fn transition_rules_apply_to_updates() {
    let schema = with_spec(
        json!({"a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "shrinks"}]},
               "b": {"type": "string", "x-kubernetes-validations": [
                   {"rule": "oldSelf.hasValue() ? oldSelf.value() == self : self == 'first'", "optionalOldSelf": true}]},
               "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
                   "type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                   "x-kubernetes-validations": [{"rule": "self.v == oldSelf.v"}]}}}),
        json!([]),
    );
    let old = json!({"spec": {"a": 5, "b": "first", "l": [{"k": "x", "v": 1}, {"k": "y", "v": 2}]}});
    assert_eq!(errors(&schema, &old, None), [""; 0]);
    assert_eq!(errors(&schema, &json!({"spec": {"b": "other"}}), None).len(), 1);
    let new = json!({"spec": {"a": 4, "b": "second", "l": [{"k": "y", "v": 3}, {"k": "z", "v": 9}, {"k": "x", "v": 1}]}});
    assert_eq!(
        errors(&schema, &new, Some(&old)),
        [
            "spec.a: Invalid value: 4: shrinks",
            "spec.b: Invalid value: \"second\": failed rule: oldSelf.hasValue() ? oldSelf.value() == self : self == 'first'",
            "spec.l[0]: Invalid value: failed rule: self.v == oldSelf.v",
        ]
    );
}

#[test]
fn unchanged_values_stay_accepted_with_a_warning() {
    let schema = with_spec(
        json!({"a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 10"}]}, "b": {"type": "integer"},
               "l": {"type": "array", "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 10"}]}}}),
        json!([{"rule": "self.b > 10"}]),
    );
    let old = json!({"spec": {"a": 1, "b": 1, "l": [1]}});
    let same = validate(&schema, &old, Some(&old));
    assert_eq!((same.errors.len(), same.warnings.len()), (0, 3));
    // The rule of `spec` is about a value that changed; those of `a` and of the unchanged list are not.
    let new = json!({"spec": {"a": 1, "b": 2, "l": [1]}});
    let verdict = validate(&schema, &new, Some(&old));
    let shown = |problems: &[Problem]| problems.iter().map(shown).collect::<Vec<_>>();
    assert_eq!(shown(&verdict.errors), ["spec: Invalid value: failed rule: self.b > 10"]);
    assert_eq!(
        shown(&verdict.warnings),
        [
            "spec.a: Invalid value: 1: failed rule: self > 10",
            "spec.l[0]: Invalid value: 1: failed rule: self > 10"
        ]
    );
    // An element of a list without keys has no former value once the list changes.
    let new = json!({"spec": {"a": 1, "b": 1, "l": [1, 20]}});
    let verdict = validate(&schema, &new, Some(&old));
    assert_eq!(verdict.errors.len(), 2, "{verdict:?}");
}

#[test]
fn defaults_satisfy_the_rules() {
    let rule = |rule: &str| json!([{"rule": rule}]);
    let optional = json!([{"rule": "oldSelf.hasValue() || self != 'b'", "optionalOldSelf": true}]);
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "default": {"n": 1}, "properties": {
        "n": {"type": "integer", "default": 3, "x-kubernetes-validations": rule("self > 2")},
        "m": {"type": "integer", "default": 1, "x-kubernetes-validations": rule("self > 2")},
        "s": {"type": "string", "default": "b", "x-kubernetes-validations": optional},
        "l": {"type": "array", "items": {"type": "object", "properties": {
            "t": {"type": "string", "default": "x", "maxLength": 3, "x-kubernetes-validations": rule("self == oldSelf && size(self) > 1")},
            "u": {"type": "string", "default": "x", "maxLength": 3, "x-kubernetes-validations": rule("size(self) > 1")}}}}}}}});
    let found: Vec<String> = check_defaults(&schema, "schema").iter().map(shown).collect();
    let spec = "schema.properties[spec]";
    assert_eq!(
        found,
        [
            format!("{spec}.default.n: Invalid value: 1: failed rule: self > 2"),
            format!(
                "{spec}.properties[l].items.properties[t].default: Invalid value: \"x\": failed rule: self == oldSelf && size(self) > 1"
            ),
            format!(
                "{spec}.properties[l].items.properties[u].default: Invalid value: \"x\": failed rule: size(self) > 1"
            ),
            format!("{spec}.properties[m].default: Invalid value: 1: failed rule: self > 2"),
            format!(
                "{spec}.properties[s].default: Invalid value: \"b\": failed rule: oldSelf.hasValue() || self != 'b'"
            ),
        ]
    );
}

#[test]
fn a_check_gives_up_when_its_allowance_is_used_up() {
    let schema = with_spec(
        json!({"l": {"type": "array", "items": {"type": "integer"}}}),
        json!([{"rule": "self.l.all(x, x >= 0)", "messageExpression": "'negative ' + string(self.l.size())"}]),
    );
    let validator = Validator::new(Schema::of_resource(&schema)).expect("the schema has rules");
    let within = |list: Json, allowance| {
        let object = json!({"spec": {"l": list}});
        validator.validate_within(&object, None, allowance)
    };
    let valid: Vec<i64> = (0..100).collect();
    assert_eq!(within(json!(valid), 10_000), Some(Verdict::default()));
    assert_eq!(within(json!(valid), 100), None);
    // The message counts too.
    let needed = (1..100).find(|allowance| within(json!([-1]), *allowance).is_some()).expect("an allowance");
    let rule_alone =
        (1..100).find(|allowance| within(json!([1]), *allowance).is_some()).expect("an allowance");
    assert!(needed > rule_alone, "{needed} {rule_alone}");
}

#[test]
fn the_budget_of_an_object_ends_the_check() {
    let rules: Vec<Json> =
        (0..16).map(|_| json!({"rule": "self.l.all(x, self.l.all(y, x + y >= 0))"})).collect();
    let schema = with_spec(json!({"l": {"type": "array", "items": {"type": "integer"}}}), json!(rules));
    let object = |n: i64| json!({"spec": {"l": (0..n).collect::<Vec<_>>()}});
    // One evaluation is within its limit, and all of them are not.
    assert_eq!(
        errors(&schema, &object(340), None),
        [
            "spec: Invalid value: \"object\": validation failed due to running out of cost budget, no further validation rules \
          will be run"
        ]
    );
    let found = errors(&schema, &object(1000), None);
    assert_eq!(
        found,
        [
            "spec: Invalid value: \"object\": 'operation cancelled: actual cost limit exceeded': no further validation rules will \
          be run due to call cost exceeds limit for rule: self.l.all(x, self.l.all(y, x + y >= 0))"
        ]
    );
}
