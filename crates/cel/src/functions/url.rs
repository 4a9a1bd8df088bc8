//! URLs, parsed as Go does.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Native, no_overload};
use crate::meter::Meter;
use crate::value::{Eval, Key, Map, Value, error, quote};

/// A parsed URL.
#[derive(Debug, Clone, Default)]
pub(crate) struct Url {
    /// The whole URL.
    pub(crate) text: String,
    scheme: String,
    host: String,
    path: String,
    query: String,
}

pub(super) fn native(function: &str) -> Option<Native> {
    Some(match function {
        "url" => |_, _, args| match args {
            [Value::String(text)] => match Url::parse(text) {
                Ok(url) => Ok(Value::Url(Arc::new(url))),
                Err(why) => error(format!("URL parse error during conversion from string: {why}")),
            },
            _ => no_overload("url", args),
        },
        "isURL" => |_, _, args| match args {
            [Value::String(text)] => Ok(Value::Bool(check(text).is_ok())),
            _ => no_overload("isURL", args),
        },
        "getScheme" => |_, _, args| part("getScheme", args, |url| url.scheme.clone()),
        "getHost" => |_, _, args| part("getHost", args, |url| url.host.clone()),
        "getHostname" => |_, _, args| part("getHostname", args, |url| split_port(&url.host).0.to_owned()),
        "getPort" => |_, _, args| part("getPort", args, |url| split_port(&url.host).1.to_owned()),
        "getEscapedPath" => |_, _, args| part("getEscapedPath", args, Url::escaped_path),
        "getQuery" => get_query,
        _ => return None,
    })
}

fn part<'a>(function: &str, args: &[Value<'a>], part: fn(&Url) -> String) -> Eval<'a> {
    match args {
        [Value::Url(url)] => Ok(Value::string(part(url))),
        _ => no_overload(function, args),
    }
}

fn get_query<'a>(meter: &mut Meter, _: &str, args: &[Value<'a>]) -> Eval<'a> {
    let [Value::Url(url)] = args else { return no_overload("getQuery", args) };
    let mut values: BTreeMap<Key, Vec<Value<'a>>> = BTreeMap::new();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        meter.work(1)?;
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| decode(&text.replace('+', " "));
        if let (Some(name), Some(value)) = (decode(name), decode(value)) {
            values.entry(Key::String(name.into())).or_default().push(Value::string(value));
        }
    }
    let entries = values.into_iter().map(|(name, values)| (name, Value::list(values))).collect();
    Ok(Value::Map(Map::Owned(Arc::new(entries))))
}

/// Returns why a text is no absolute URI and no absolute path.
pub(super) fn check(text: &str) -> Result<(), String> {
    parse(text, true).map(drop).map_err(|why| format!("parse {}: {why}", quote(text)))
}

impl Url {
    /// Parses an absolute URI or an absolute path.
    fn parse(text: &str) -> Result<Self, String> {
        check(text)?;
        let without_fragment = text.split_once('#').map_or(text, |(url, _)| url);
        let mut url =
            parse(without_fragment, false).map_err(|why| format!("parse {}: {why}", quote(text)))?;
        url.text = text.to_owned();
        Ok(url)
    }

    fn escaped_path(&self) -> String {
        let valid = |b: u8| b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!'()*[]%".contains(&b);
        if self.path.bytes().all(valid) {
            return self.path.clone();
        }
        let decoded = decode_bytes(&self.path).unwrap_or_default();
        let mut out = String::new();
        for b in decoded {
            if b.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&b) {
                out.push(char::from(b));
            } else {
                out.push_str(&format!("%{b:02X}"));
            }
        }
        out
    }
}

fn parse(text: &str, request: bool) -> Result<Url, String> {
    if text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = text.to_owned();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.query = query.to_owned();
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            // Without a slash the rest is opaque.
            return Ok(url);
        }
        if request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|first| first.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let has_authority = !url.scheme.is_empty() || !request && !rest.starts_with("///");
    let mut path = rest;
    if let Some(after) = rest.strip_prefix("//").filter(|_| has_authority) {
        let (authority, tail) = after.split_at(after.find('/').unwrap_or(after.len()));
        url.host = parse_authority(authority)?;
        path = tail;
    }
    check_escapes(path)?;
    url.path = path.to_owned();
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (i, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if i > 0 => {}
            ':' if i == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..i], &text[i + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(authority: &str) -> Result<String, String> {
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let host = parse_host(host)?;
    if let Some(user) = user {
        let valid = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
        if !user.bytes().all(valid) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        check_escapes(user)?;
    }
    Ok(host)
}

fn parse_host(host: &str) -> Result<String, String> {
    let port = if host.starts_with('[') {
        let Some(end) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
        &host[end + 1..]
    } else {
        host.find(':').map_or("", |at| &host[at..])
    };
    if !port.is_empty()
        && !port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()))
    {
        return Err(format!("invalid port {} after host", quote(port)));
    }
    for (i, c) in host.char_indices() {
        if c == '%' {
            let escape = escape_at(host, i)?;
            // Only bytes that are not ASCII, and the zone of an address, are escaped in a host.
            if escape < 0x80 && escape != b'%' {
                return Err(format!("invalid URL escape {}", quote(&host[i..i + 3])));
            }
        } else if c.is_ascii() && !(c.is_ascii_alphanumeric() || "!$&'()*+,;=:[]<>\"-_.~".contains(c)) {
            return Err(format!("invalid character {} in host name", quote(&c.to_string())));
        }
    }
    Ok(decode(host).unwrap_or_else(|| host.to_owned()))
}

/// Returns the host without brackets, and the port.
fn split_port(host: &str) -> (&str, &str) {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (name, port),
        _ => (host, ""),
    };
    (name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name), port)
}

fn escape_at(text: &str, at: usize) -> Result<u8, String> {
    let digits = text.as_bytes().get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
    let value = digits
        .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))
        .and_then(|d| u8::from_str_radix(d, 16).ok());
    value.ok_or_else(|| {
        let mut end = (at + 3).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        format!("invalid URL escape {}", quote(&text[at..end]))
    })
}

fn check_escapes(text: &str) -> Result<(), String> {
    text.match_indices('%').try_for_each(|(at, _)| escape_at(text, at).map(drop))
}

fn decode(text: &str) -> Option<String> {
    decode_bytes(text).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn decode_bytes(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(b) = text.as_bytes().get(at) {
        if *b == b'%' {
            out.push(escape_at(text, at).ok()?);
            at += 3;
        } else {
            out.push(*b);
            at += 1;
        }
    }
    Some(out)
}
