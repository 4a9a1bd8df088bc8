//! The walker accepts what serde_json accepts, and ends where serde_json ends.

use super::*;
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Any JSON value of moderate size.
pub(crate) fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9f64).prop_map(Value::from),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any_text(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Texts that need escapes, texts that look like structure, plain texts.
pub(crate) fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,20}",
        r#"["\\/{}\[\],:\n\t é😀-]{0,12}"#,
        any::<String>(),
        prop_oneof!["metadata", "name", "items", "a", "b"].prop_map(String::from),
    ]
}

/// The value as text, compact or spread over lines.
pub(crate) fn written(value: &Value, pretty: bool) -> String {
    if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) }.unwrap()
}

/// `text` with a few bytes replaced, removed or doubled.
pub(crate) fn damaged(text: &str, damage: &[(prop::sample::Index, u8, u8)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for (index, action, byte) in damage {
        if bytes.is_empty() {
            break;
        }
        let at = index.index(bytes.len());
        match action % 4 {
            0 => bytes[at] = *byte,
            1 => bytes[at] = b"{}[]\",:\\0-en \n"[usize::from(*byte) % 14],
            2 => drop(bytes.remove(at)),
            _ => bytes.insert(at, bytes[at]),
        }
    }
    bytes
}

pub(crate) fn any_damage() -> impl Strategy<Value = Vec<(prop::sample::Index, u8, u8)>> {
    prop::collection::vec(any::<(prop::sample::Index, u8, u8)>(), 0..4)
}

fn accepts(json: &[u8]) -> bool {
    let mut cursor = Cursor::new(json, usize::MAX);
    cursor.skip().and_then(|()| cursor.end()).is_ok()
}

fn serde_accepts(json: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(json).is_ok()
}

fn span(json: &[u8], cuts: &[usize]) -> Option<usize> {
    let (mut finder, mut start) = (SpanFinder::new(usize::MAX), 0);
    for cut in cuts.iter().copied().chain([json.len()]) {
        if let Step::End(end) = finder.advance(&json[start..cut], 0) {
            return Some(start + end);
        }
        start = cut;
    }
    None
}

proptest! {
    #[test]
    fn damaged_json_is_judged_as_serde_json_does(value in any_value(), pretty: bool, damage in any_damage()) {
        let bytes = damaged(&written(&value, pretty), &damage);
        prop_assert_eq!(accepts(&bytes), serde_accepts(&bytes), "{:?}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_bytes_are_judged_as_serde_json_does(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        prop_assert_eq!(accepts(&bytes), serde_accepts(&bytes));
    }

    #[test]
    fn bytes_from_the_json_alphabet_are_judged_as_serde_json_does(
        text in r#"[{}\[\]",:\\utrfalsen0-9eE+. -]{0,24}"#,
    ) {
        prop_assert_eq!(accepts(text.as_bytes()), serde_accepts(text.as_bytes()), "{}", text);
    }

    #[test]
    fn strings_read_as_serde_json_reads_them(text in any_text(), damage in any_damage()) {
        let bytes = damaged(&Value::from(text).to_string(), &damage);
        let mut cursor = Cursor::new(&bytes, 1);
        let ours = cursor.string().and_then(|raw| cursor.end().map(|()| raw)).ok().and_then(RawText::text);
        prop_assert_eq!(ours.map(Cow::into_owned), serde_json::from_slice::<String>(&bytes).ok());
    }

    #[test]
    fn a_span_ends_at_its_value_however_it_is_cut(
        value in any_value(),
        pretty: bool,
        suffix in "[,}\\] ][ -~]{0,20}",
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let text = written(&value, pretty);
        let whole = [text.as_str(), &suffix].concat();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len())).collect();
        cuts.sort_unstable();
        prop_assert_eq!(span(whole.as_bytes(), &cuts), Some(text.len()));
        prop_assert_eq!(span(whole.as_bytes(), &(0..whole.len()).collect::<Vec<_>>()), Some(text.len()));
    }

    #[test]
    fn brackets_are_followed_as_a_loop_would(
        text in r#"\{(["\\]|[{}\[\]a]|["\\]{0,70}|[^\\"]{0,70}){0,12}"#,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        limit in 0..8usize,
    ) {
        let (end, deepest) = followed(text.as_bytes());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len())).collect();
        cuts.sort_unstable();
        prop_assert_eq!(span(text.as_bytes(), &cuts), end);
        let mut finder = SpanFinder::new(limit);
        finder.advance(text.as_bytes(), 0);
        prop_assert_eq!(finder.is_too_deep(), deepest > limit);
    }

    #[test]
    fn an_object_is_walked_in_order(fields in prop::collection::vec((any_text(), any_value()), 0..6)) {
        let body: Vec<String> = fields.iter().map(|(k, v)| format!("{}:{v}", Value::from(k.as_str()))).collect();
        let json = format!("{{{}}}", body.join(","));
        let mut seen = Vec::new();
        let mut cursor = Cursor::new(json.as_bytes(), usize::MAX);
        cursor.object::<Syntax>(|cursor, key| {
            seen.push((key.into_owned(), serde_json::from_slice::<Value>(cursor.span()?).unwrap()));
            Ok(())
        }).unwrap();
        let wanted: Vec<_> = fields.into_iter().map(|(k, v)| (k.into_bytes(), reread(&v))).collect();
        prop_assert_eq!(seen, wanted);
    }
}

/// Where brackets close, and how deep they were, byte by byte.
fn followed(text: &[u8]) -> (Option<usize>, usize) {
    let (mut depth, mut deepest, mut string, mut escape) = (0usize, 0, false, false);
    for (at, byte) in text.iter().enumerate() {
        let escaped = std::mem::take(&mut escape);
        match byte {
            b'\\' if !escaped => escape = true,
            b'"' if !escaped => string = !string,
            _ if string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
        if depth == 0 {
            return (Some(at + 1), deepest);
        }
    }
    (None, deepest)
}

/// Numbers with a fraction may change in the last digit when they are written and read.
fn reread(value: &Value) -> Value {
    serde_json::from_str(&value.to_string()).unwrap()
}

#[test]
fn nesting_has_a_bound() {
    let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    for (limit, depth, good) in
        [(3, 3, true), (3, 4, false), (usize::MAX, 128, true), (usize::MAX, 129, false)]
    {
        let json = nested(depth);
        assert_eq!(Cursor::new(&json, limit).skip().is_ok(), good, "{depth} levels under a limit of {limit}");
    }
    let deep = nested(1_000_000);
    assert_eq!(Cursor::new(&deep, usize::MAX).skip().unwrap_err().expected, "less nesting");
    assert_eq!(span(&deep, &[]), Some(deep.len()));
    // Objects and arrays that are entered one by one count as well.
    let mut cursor = Cursor::new(b"[[[1]]]", 2);
    let result = cursor.array::<Syntax>(|cursor, _| cursor.array(|cursor, _| cursor.skip()));
    assert_eq!(result.unwrap_err().expected, "less nesting");
}

#[test]
fn an_escaped_code_point_has_four_hexadecimal_digits() {
    for (json, good) in
        [(r#""\u00e9""#, true), (r#""\u00g9""#, false), (r#""\uZZZZ""#, false), (r#""\u00""#, false)]
    {
        assert_eq!((accepts(json.as_bytes()), serde_accepts(json.as_bytes())), (good, good), "{json}");
    }
    let cut_off = Cursor::new(br#""\u00"#, 1).skip().unwrap_err();
    assert_eq!(cut_off.expected, "four hexadecimal digits");
}

#[test]
fn long_strings_end_where_they_end() {
    for length in 0..200 {
        for end in ["\"", "\\\"\""] {
            let json = format!("\"{}{end},", "x".repeat(length));
            for cut in 0..json.len() {
                assert_eq!(
                    span(json.as_bytes(), &[cut]),
                    Some(json.len() - 1),
                    "{length} bytes, cut at {cut}"
                );
            }
            let mut cursor = Cursor::new(json.as_bytes(), 1);
            cursor.skip().unwrap();
            assert_eq!(cursor.position(), json.len() - 1);
        }
    }
}
