//! Named formats, with the messages of Kubernetes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Native, no_overload, url};
use crate::meter::Meter;
use crate::value::{Eval, Timestamp, Value};

/// A format of strings.
#[derive(Debug)]
pub(crate) struct NamedFormat {
    /// The function that returns it, without `format.`.
    function: &'static str,
    pub(crate) name: &'static str,
    /// The length of the expression that the cost assumes.
    pub(crate) regex_size: u64,
    check: fn(&str) -> Vec<String>,
}

static FORMATS: [NamedFormat; 13] = [
    NamedFormat { function: "dns1123Label", name: "DNS1123Label", regex_size: 30, check: |s| label_1123(s) },
    NamedFormat {
        function: "dns1123Subdomain",
        name: "DNS1123Subdomain",
        regex_size: 60,
        check: |s| subdomain(s),
    },
    NamedFormat { function: "dns1035Label", name: "DNS1035Label", regex_size: 30, check: |s| label_1035(s) },
    NamedFormat { function: "qualifiedName", name: "QualifiedName", regex_size: 60, check: qualified_name },
    NamedFormat {
        function: "dns1123LabelPrefix",
        name: "DNS1123LabelPrefix",
        regex_size: 30,
        check: |s| label_1123(&mask(s)),
    },
    NamedFormat {
        function: "dns1123SubdomainPrefix",
        name: "DNS1123SubdomainPrefix",
        regex_size: 60,
        check: |s| subdomain(&mask(s)),
    },
    NamedFormat {
        function: "dns1035LabelPrefix",
        name: "DNS1035LabelPrefix",
        regex_size: 30,
        check: |s| label_1035(&mask(s)),
    },
    NamedFormat { function: "labelValue", name: "LabelValue", regex_size: 40, check: label_value },
    NamedFormat {
        function: "uri",
        name: "URI",
        regex_size: 1103,
        check: |s| url::check(s).err().into_iter().collect(),
    },
    NamedFormat {
        function: "uuid",
        name: "uuid",
        regex_size: 72,
        check: |s| one(is_uuid(s), "does not match the UUID format"),
    },
    NamedFormat {
        function: "byte",
        name: "byte",
        regex_size: 84,
        check: |s| one(is_base64(s), "invalid base64"),
    },
    NamedFormat {
        function: "date",
        name: "date",
        regex_size: 72,
        check: |s| one(Timestamp::parse_date(s).is_some(), "invalid date"),
    },
    NamedFormat {
        function: "datetime",
        name: "datetime",
        regex_size: 72,
        check: |s| one(Timestamp::parse_date_time(s).is_some(), "invalid datetime"),
    },
];

pub(super) fn native(function: &str) -> Option<Native> {
    Some(match function {
        "format.named" => |_, _, args| match args {
            [Value::String(name)] => {
                let found = FORMATS.iter().find(|format| format.function == &**name);
                Ok(found.map_or(Value::Optional(None), |format| Value::some(Value::Format(format))))
            }
            _ => no_overload("format.named", args),
        },
        "validate" => validate,
        "format.dns1123Label" => |_, _, _| Ok(Value::Format(&FORMATS[0])),
        "format.dns1123Subdomain" => |_, _, _| Ok(Value::Format(&FORMATS[1])),
        "format.dns1035Label" => |_, _, _| Ok(Value::Format(&FORMATS[2])),
        "format.qualifiedName" => |_, _, _| Ok(Value::Format(&FORMATS[3])),
        "format.dns1123LabelPrefix" => |_, _, _| Ok(Value::Format(&FORMATS[4])),
        "format.dns1123SubdomainPrefix" => |_, _, _| Ok(Value::Format(&FORMATS[5])),
        "format.dns1035LabelPrefix" => |_, _, _| Ok(Value::Format(&FORMATS[6])),
        "format.labelValue" => |_, _, _| Ok(Value::Format(&FORMATS[7])),
        "format.uri" => |_, _, _| Ok(Value::Format(&FORMATS[8])),
        "format.uuid" => |_, _, _| Ok(Value::Format(&FORMATS[9])),
        "format.byte" => |_, _, _| Ok(Value::Format(&FORMATS[10])),
        "format.date" => |_, _, _| Ok(Value::Format(&FORMATS[11])),
        "format.datetime" => |_, _, _| Ok(Value::Format(&FORMATS[12])),
        _ => return None,
    })
}

fn validate<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let [Value::Format(format), Value::String(text)] = args else { return no_overload("validate", args) };
    meter.work(text.len() as u64 / 16)?;
    let problems = (format.check)(text);
    if problems.is_empty() {
        return Ok(Value::Optional(None));
    }
    Ok(Value::some(Value::list(problems.into_iter().map(Value::string).collect())))
}

fn one(valid: bool, problem: &str) -> Vec<String> {
    if valid { Vec::new() } else { vec![problem.to_owned()] }
}

/// A prefix is followed by something that ends it properly.
fn mask(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if prefix.len() > 1 => format!("{rest}a"),
        _ => prefix.to_owned(),
    }
}

fn too_long(text: &str, limit: usize) -> Option<String> {
    (text.len() > limit).then(|| format!("must be no more than {limit} characters"))
}

fn is_label_1123(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.bytes().all(|b| inner(b) || b == b'-') && ends(text, inner)
}

/// Returns whether the first and the last byte match.
fn ends(text: &str, matches: impl Fn(u8) -> bool) -> bool {
    text.bytes().next().is_some_and(&matches) && text.bytes().last().is_some_and(matches)
}

fn label_1123(text: &str) -> Vec<String> {
    let mut problems: Vec<String> = too_long(text, 63).into_iter().collect();
    if !is_label_1123(text) {
        // kube-apiserver has a message of its own for a valid subdomain.
        problems.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
             with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned()
        });
    }
    problems
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label_1123)
}

fn subdomain(text: &str) -> Vec<String> {
    let mut problems: Vec<String> = too_long(text, 253).into_iter().collect();
    if !is_subdomain(text) {
        problems.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
             and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    problems
}

fn label_1035(text: &str) -> Vec<String> {
    let mut problems: Vec<String> = too_long(text, 63).into_iter().collect();
    if !is_label_1123(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        problems.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
             '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    problems
}

fn is_name(text: &str) -> bool {
    let valid = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    text.bytes().all(valid) && ends(text, |b| b.is_ascii_alphanumeric())
}

const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                    character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn qualified_name(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                problems
                    .extend(subdomain(prefix).into_iter().map(|problem| format!("prefix part {problem}")));
            }
            *name
        }
        _ => {
            let why = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {NAME} {why}")];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else {
        problems.extend(too_long(name, 63).map(|problem| format!("name part {problem}")));
    }
    if !is_name(name) {
        problems.push(format!("name part {NAME}"));
    }
    problems
}

fn label_value(text: &str) -> Vec<String> {
    let mut problems: Vec<String> = too_long(text, 63).into_iter().collect();
    if !text.is_empty() && !is_name(text) {
        problems.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
             and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation \
             is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    problems
}

/// Hyphens are optional.
fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (i, digits) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        match rest.split_at_checked(digits) {
            Some((group, after)) if group.bytes().all(|b| b.is_ascii_hexdigit()) => rest = after,
            _ => return false,
        }
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    !text.is_empty() && STANDARD.decode(text).is_ok()
}
