//! The values of string and bytes literals.

/// Returns the value of a literal with its quotes, prefix `r` included.
pub(super) fn unescape(literal: &str, bytes: bool) -> Result<Vec<u8>, &'static str> {
    let normalized = literal.replace("\r\n", "\n").replace('\r', "\n");
    let (raw, quoted) = match normalized.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, normalized.as_str()),
    };
    let quotes =
        if quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\"")) { 3 } else { 1 };
    let text = quoted.get(quotes..quoted.len() - quotes).ok_or("unable to unescape string")?;
    if raw || !text.contains('\\') {
        return Ok(text.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c == '\\' {
            rest = push_escape(&mut out, rest, bytes)?;
        } else {
            push_char(&mut out, c);
        }
    }
    Ok(out)
}

fn push_char(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Appends the value of the escape sequence whose backslash is before `rest`; returns what follows it.
fn push_escape<'t>(out: &mut Vec<u8>, rest: &'t str, bytes: bool) -> Result<&'t str, &'static str> {
    const ERROR: &str = "unable to unescape string";
    let kind = rest.chars().next().ok_or("unable to unescape string, found '\\' as last character")?;
    let rest = &rest[kind.len_utf8()..];
    let simple = match kind {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' | '\'' | '"' | '`' | '?' => kind as u8,
        'x' | 'X' => return push_code(out, rest, 2, 16, bytes).ok_or(ERROR)?,
        'u' if !bytes => return push_code(out, rest, 4, 16, false).ok_or(ERROR)?,
        'U' if !bytes => return push_code(out, rest, 8, 16, false).ok_or(ERROR)?,
        '0'..='3' => {
            let octal = "unable to unescape octal sequence in string";
            let digits = rest
                .get(..2)
                .filter(|digits| digits.bytes().all(|b| (b'0'..=b'7').contains(&b)))
                .ok_or(octal)?;
            let code =
                kind.to_digit(8).unwrap_or(0) * 64 + u32::from_str_radix(digits, 8).map_err(|_| octal)?;
            push_value(out, code, bytes)?;
            return Ok(&rest[2..]);
        }
        _ => return Err(ERROR),
    };
    out.push(simple);
    Ok(rest)
}

type Rest<'t> = Result<&'t str, &'static str>;

fn push_code<'t>(
    out: &mut Vec<u8>,
    rest: &'t str,
    digits: usize,
    radix: u32,
    byte: bool,
) -> Option<Rest<'t>> {
    let code = rest.get(..digits).filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let code = u32::from_str_radix(code, radix).ok()?;
    Some(push_value(out, code, byte).map(|()| &rest[digits..]))
}

/// In bytes, a code is one byte; in strings it is a code point.
fn push_value(out: &mut Vec<u8>, code: u32, byte: bool) -> Result<(), &'static str> {
    if byte {
        out.push(u8::try_from(code).map_err(|_| "unable to unescape string")?);
        return Ok(());
    }
    push_char(out, char::from_u32(code).ok_or("invalid unicode code point")?);
    Ok(())
}
