use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(selector: &str, fields: &[(&str, &str)], matches: bool) {
    let selector: FieldSelector = selector.parse().unwrap();
    assert_eq!(selector.matches(fields), matches, "{selector} on {fields:?}");
}

#[test]
fn comparisons() {
    check("a=1", &[("a", "1")], true);
    check("a==1", &[("a", "1")], true);
    check("a=1", &[("a", "2")], false);
    check("a!=1", &[("a", "2")], true);
    check("a!=1", &[("a", "1")], false);
    check("a=1,b!=2", &[("a", "1"), ("b", "3")], true);
    check("a=1,b!=2", &[("a", "1"), ("b", "2")], false);
}

#[test]
fn a_missing_field_is_empty() {
    check("a=", &[], true);
    check("a!=1", &[], true);
    check("a=1", &[], false);
}

#[test]
fn escapes() {
    check(r"a=x\,y\=z\\", &[("a", r"x,y=z\")], true);
    assert_eq!(FieldSelector::parse(r"a=x\,y").unwrap().to_string(), r"a=x\,y");
    let error = |text: &str| FieldSelector::parse(text).unwrap_err().to_string();
    assert_eq!(error(r"a=\n"), r"invalid field selector: invalid escape sequence: \n");
    assert_eq!(error(r"a=\"), r"invalid field selector: invalid escape sequence: \");
    assert_eq!(error("a=b=c"), "invalid field selector: unescaped character in value: =");
}

#[test]
fn a_term_without_an_operator_is_rejected() {
    assert_eq!(
        FieldSelector::parse("a=1,metadata.name").unwrap_err().to_string(),
        "invalid selector: 'a=1,metadata.name'; can't understand 'metadata.name'"
    );
    let long = "a=1,".repeat(super::super::MAX_SELECTOR_BYTES);
    assert_eq!(FieldSelector::parse(&long), Err(SelectorError::TooLong(long.len())));
}

#[test]
fn empty_terms_say_nothing() {
    assert!(FieldSelector::parse("").unwrap().is_everything());
    assert_eq!(FieldSelector::parse(",a=1,,").unwrap().to_string(), "a=1");
}

#[test]
fn required_values() {
    let selector = FieldSelector::parse("metadata.name!=x,metadata.name==y").unwrap();
    assert_eq!(selector.required("metadata.name"), Some("y"));
    assert_eq!(selector.required("metadata.namespace"), None);
    assert_eq!(selector.terms().len(), 2);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_and_the_canonical_form_reads_back(text in r"[ab=!,\\.]{0,30}") {
        if let Ok(selector) = FieldSelector::parse(&text) {
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
        }
    }

    #[test]
    fn any_value_survives(value in "\\PC{0,20}") {
        let selector = FieldSelector::new([FieldTerm { field: "f".into(), value: value.as_str().into(), equal: true }]);
        prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
    }
}
