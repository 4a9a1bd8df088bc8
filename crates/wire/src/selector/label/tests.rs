use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

#[track_caller]
fn check(selector: &str, matching: &[&[(&str, &str)]], other: &[&[(&str, &str)]]) {
    let selector: LabelSelector = selector.parse().unwrap();
    for pairs in matching {
        assert!(selector.matches(&labels(pairs)), "{selector} should match {pairs:?}");
        assert!(selector.matches(*pairs), "{selector} should match the slice {pairs:?}");
        assert!(
            selector.matches(&crate::Labels::new(pairs.iter().copied())),
            "{selector} should match packed {pairs:?}"
        );
    }
    for pairs in other {
        assert!(!selector.matches(&labels(pairs)), "{selector} should not match {pairs:?}");
    }
}

#[track_caller]
fn error(selector: &str) -> String {
    LabelSelector::parse(selector).unwrap_err().to_string()
}

#[test]
fn equality() {
    check("x=1", &[&[("x", "1")], &[("x", "1"), ("y", "")]], &[&[("x", "2")], &[]]);
    check("x==1", &[&[("x", "1")]], &[&[("x", "2")], &[]]);
    check("x=", &[&[("x", "")]], &[&[("x", "2")], &[]]);
    check("x=,y=2", &[&[("x", ""), ("y", "2")]], &[&[("y", "2")]]);
}

#[test]
fn a_missing_key_is_unequal() {
    check("x!=1", &[&[("x", "2")], &[]], &[&[("x", "1")]]);
    check("x notin (1,2)", &[&[("x", "3")], &[]], &[&[("x", "1")], &[("x", "2")]]);
}

#[test]
fn sets() {
    check("x in (1, 20)", &[&[("x", "1")], &[("x", "20")]], &[&[("x", "2")], &[]]);
    check("x in (,a)", &[&[("x", "")], &[("x", "a")]], &[&[]]);
    check("x in ()", &[&[("x", "")]], &[&[("x", "a")], &[]]);
    check("x in (a,)", &[&[("x", "")], &[("x", "a")]], &[&[]]);
    check("in in (in,notin)", &[&[("in", "notin")]], &[&[]]);
}

#[test]
fn existence() {
    check("x", &[&[("x", "")]], &[&[("y", "")]]);
    check("!x", &[&[("y", "")]], &[&[("x", "")]]);
    check("x,!y", &[&[("x", "")]], &[&[("x", ""), ("y", "")]]);
}

#[test]
fn integers() {
    check("x>1", &[&[("x", "2")], &[("x", "20")]], &[&[("x", "1")], &[("x", "word")], &[]]);
    check("x<3", &[&[("x", "2")], &[("x", "-7")]], &[&[("x", "3")], &[("x", "")], &[]]);
}

#[test]
fn nothing_is_everything() {
    assert!(LabelSelector::parse(" ").unwrap().is_everything());
    check("", &[&[], &[("x", "1")]], &[]);
}

#[test]
fn canonical_form() {
    for (text, canonical) in [
        ("y=1,x=2", "x=2,y=1"),
        (" x in ( b , a,a ) ", "x in (a,b)"),
        ("x notin(b,a)", "x notin (a,b)"),
        ("x in (,)", "x in ()"),
        ("x in ( )", "x in ()"),
        ("x == 1", "x==1"),
        ("x!=1 , ! y", "x!=1,!y"),
        ("x > 1,x<5", "x>1,x<5"),
        ("a.io/b_c=D-1", "a.io/b_c=D-1"),
    ] {
        let selector = LabelSelector::parse(text).unwrap();
        assert_eq!(selector.to_string(), canonical);
        assert_eq!(LabelSelector::parse(canonical), Ok(selector));
    }
}

#[test]
fn messages_of_malformed_selectors() {
    assert_eq!(error("a in b"), "unable to parse requirement: found 'b' expected: '('");
    assert_eq!(error("a,"), "found '', expected: identifier after ','");
    assert_eq!(error(",a"), "found ',', expected: !, identifier, or 'end of string'");
    assert_eq!(
        error("a b"),
        "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"
    );
    assert_eq!(error("a=b c"), "found 'c', expected: ',' or 'end of string'");
    assert_eq!(error("!"), "unable to parse requirement: found '', expected: identifier");
}

#[test]
fn keys_and_values_are_checked() {
    let long = "a".repeat(64);
    for bad in [
        "/a=b",
        "a/=b",
        "a/b/c=d",
        "A.io/b=c",
        "-a.io/b=c",
        "a-.io/b=c",
        "a_b.io/c=d",
        "a..io/b=c",
        "-a=b",
        "a-=b",
        "ä=b",
        "a=b/c",
        "a=-b",
        "a>b",
        "a in (b c)",
        "a in (b",
        "a=(",
        &format!("{long}=b"),
        &format!("a={long}"),
        &format!("{}/a=b", "a".repeat(254)),
    ] {
        assert!(error(bad).starts_with("unable to parse requirement: "), "{bad}: {}", error(bad));
    }
    assert!(error("/a=b").contains("prefix part must be non-empty"));
    assert!(error("a/=b").contains("name part must be non-empty"));
    for good in [
        "a-b.example.com/c=d",
        &format!("{}=b", &long[1..]),
        &format!("a={}", &long[1..]),
        &format!("{}/a=b", "a".repeat(253)),
    ] {
        assert!(LabelSelector::parse(good).is_ok(), "{good}");
    }
}

#[test]
fn long_input_is_refused_before_it_is_read() {
    let longest = "a".repeat(super::super::MAX_SELECTOR_BYTES);
    assert_eq!(super::super::bounded(&longest), Ok(&*longest));
    let text = "a,".repeat(super::super::MAX_SELECTOR_BYTES);
    assert_eq!(LabelSelector::parse(&text), Err(SelectorError::TooLong(text.len())));
}

#[test]
fn requirements_made_by_hand_are_checked_alike() {
    assert!(Requirement::new("a", Operator::Exists, ["x"]).is_err());
    assert!(Requirement::new("a", Operator::Equals, ["x", "y"]).is_err());
    assert!(Requirement::new("a", Operator::GreaterThan, ["x"]).is_err());
    let requirement = Requirement::new("a", Operator::In, ["y", "x"]).unwrap();
    assert_eq!((requirement.key(), requirement.values().collect::<Vec<_>>()), ("a", vec!["x", "y"]));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_and_the_canonical_form_reads_back(text in "[a-c/=!<>(), inot0-9._-]{0,40}") {
        if let Ok(selector) = LabelSelector::parse(&text) {
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
        }
    }

    #[test]
    fn arbitrary_unicode_never_panics(text in "\\PC{0,60}") {
        let _ = LabelSelector::parse(&text);
    }
}
