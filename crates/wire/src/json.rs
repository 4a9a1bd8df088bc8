//! A JSON scanner that builds no values.
//!
//! [`Cursor`] reads a complete text; [`SpanFinder`] finds the end of a value in a text that arrives in chunks. Neither
//! recurses, so that no nesting can exhaust the stack, and neither stores or quotes content.

mod blocks;
mod find;
mod span;

pub(crate) use span::SpanFinder;
pub(crate) use span::Step;

use find::find_special;
use std::borrow::Cow;

/// Maximum nesting, whatever the limits are: [`Nesting`] has one bit for each level.
pub(crate) const MAX_DEPTH: usize = 128;

/// A syntax error: its place, and what was expected there. Contains nothing of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Syntax {
    pub(crate) at: usize,
    pub(crate) expected: &'static str,
}

/// The type of a value, by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    Text,
    Number,
    Flag,
    Null,
}

/// The open brackets, one bit for each: 1 for an object.
#[derive(Default)]
struct Nesting {
    objects: u128,
    depth: usize,
}

impl Nesting {
    fn push(&mut self, object: bool) {
        self.objects = self.objects << 1 | u128::from(object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
    }

    /// Whether the innermost bracket is that of an object.
    fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }
}

/// Reads a complete JSON text from left to right.
///
/// 1. Accepts exactly JSON, except that strings need not be UTF-8 until they are decoded.
/// 2. Nesting deeper than `depth` is an error.
/// 3. Never allocates, except for a string that contains escapes.
pub(crate) struct Cursor<'a> {
    json: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(json: &'a [u8], depth: usize) -> Self {
        Self { json, at: 0, depth: depth.min(MAX_DEPTH) }
    }

    /// How many bytes have been read.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn fail<T>(&self, expected: &'static str) -> Result<T, Syntax> {
        Err(Syntax { at: self.at, expected })
    }

    /// The next byte that is not whitespace.
    #[inline]
    fn peek(&mut self) -> Result<u8, Syntax> {
        while let Some(&byte) = self.json.get(self.at) {
            if !is_space(byte) {
                return Ok(byte);
            }
            self.at += 1;
        }
        self.fail("more")
    }

    /// Consumes `byte` if it comes next.
    #[inline]
    fn take(&mut self, byte: u8) -> Result<bool, Syntax> {
        let found = self.peek()? == byte;
        self.at += usize::from(found);
        Ok(found)
    }

    /// The type of the next value; the value itself is not consumed.
    pub(crate) fn peek_type(&mut self) -> Result<Type, Syntax> {
        match self.peek()? {
            b'{' => Ok(Type::Object),
            b'[' => Ok(Type::Array),
            b'"' => Ok(Type::Text),
            b't' | b'f' => Ok(Type::Flag),
            b'n' => Ok(Type::Null),
            b'-' | b'0'..=b'9' => Ok(Type::Number),
            _ => self.fail("a value"),
        }
    }

    /// Checks that only whitespace is left.
    pub(crate) fn end(&mut self) -> Result<(), Syntax> {
        match self.peek() {
            Ok(_) => self.fail("the end"),
            Err(_) => Ok(()),
        }
    }

    /// Reads an object. Calls `field` with each key; it must consume the value.
    pub(crate) fn object<E: From<Syntax>>(
        &mut self,
        mut field: impl FnMut(&mut Self, Cow<'a, [u8]>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.take(b'{')? {
            return self.fail("an object").map_err(E::from);
        }
        self.enter()?;
        if !self.take(b'}')? {
            loop {
                let key = self.key()?;
                field(self, key)?;
                if self.take(b'}')? {
                    break;
                }
                self.comma()?;
            }
        }
        self.depth += 1;
        Ok(())
    }

    /// Reads an array. Calls `item` with each index; it must consume the element.
    pub(crate) fn array<E: From<Syntax>>(
        &mut self,
        mut item: impl FnMut(&mut Self, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.take(b'[')? {
            return self.fail("an array").map_err(E::from);
        }
        self.enter()?;
        if !self.take(b']')? {
            for index in 0.. {
                item(self, index)?;
                if self.take(b']')? {
                    break;
                }
                self.comma()?;
            }
        }
        self.depth += 1;
        Ok(())
    }

    fn enter(&mut self) -> Result<(), Syntax> {
        match self.depth.checked_sub(1) {
            Some(depth) => self.depth = depth,
            None => return self.fail("less nesting"),
        }
        Ok(())
    }

    fn comma(&mut self) -> Result<(), Syntax> {
        if self.take(b',')? { Ok(()) } else { self.fail("a comma or the closing bracket") }
    }

    fn key(&mut self) -> Result<Cow<'a, [u8]>, Syntax> {
        let raw = self.string()?;
        self.colon()?;
        Ok(raw.unescaped())
    }

    fn colon(&mut self) -> Result<(), Syntax> {
        if self.take(b':')? { Ok(()) } else { self.fail("a colon") }
    }

    /// Reads a string.
    pub(crate) fn string(&mut self) -> Result<RawText<'a>, Syntax> {
        if self.peek()? != b'"' {
            return self.fail("a string");
        }
        let start = self.at;
        let escaped = self.skip_string()?;
        Ok(RawText { quoted: &self.json[start..self.at], escaped })
    }

    /// Skips a value and returns its bytes.
    pub(crate) fn span(&mut self) -> Result<&'a [u8], Syntax> {
        self.peek()?;
        let start = self.at;
        self.skip()?;
        Ok(&self.json[start..self.at])
    }

    /// Skips a value and checks that it is JSON.
    pub(crate) fn skip(&mut self) -> Result<(), Syntax> {
        let mut open = Nesting::default();
        loop {
            let opened = match self.peek()? {
                b'"' => self.skip_string().map(|_| false)?,
                b'{' => self.open(&mut open, true)?,
                b'[' => self.open(&mut open, false)?,
                b't' => self.literal(b"true")?,
                b'f' => self.literal(b"false")?,
                b'n' => self.literal(b"null")?,
                _ => self.skip_number().map(|()| false)?,
            };
            if !opened && !self.close(&mut open)? {
                return Ok(());
            }
        }
    }

    /// Skips a value by its brackets and quotes: fast, without a check that it is JSON.
    pub(crate) fn skip_unchecked(&mut self) -> Result<(), Syntax> {
        if !matches!(self.peek()?, b'{' | b'[') {
            return self.skip();
        }
        let mut finder = SpanFinder::new(self.depth);
        let step = finder.advance(self.json, self.at);
        if finder.is_too_deep() {
            return self.fail("less nesting");
        }
        match step {
            Step::End(end) => self.at = end,
            Step::More => {
                self.at = self.json.len();
                return self.fail("more");
            }
        }
        Ok(())
    }

    /// Skips a value as [`skip_unchecked`](Self::skip_unchecked) does and returns its bytes.
    pub(crate) fn span_unchecked(&mut self) -> Result<&'a [u8], Syntax> {
        self.peek()?;
        let start = self.at;
        self.skip_unchecked()?;
        Ok(&self.json[start..self.at])
    }

    /// Enters an object or array, up to its first value; `false` if it is empty.
    fn open(&mut self, open: &mut Nesting, object: bool) -> Result<bool, Syntax> {
        self.at += 1;
        if open.depth >= self.depth {
            return self.fail("less nesting");
        }
        if self.take(if object { b'}' } else { b']' })? {
            return Ok(false);
        }
        open.push(object);
        if object {
            self.skip_key()?;
        }
        Ok(true)
    }

    /// After a value: leaves the objects and arrays that end here and goes on to the next value; `false` if there is none.
    fn close(&mut self, open: &mut Nesting) -> Result<bool, Syntax> {
        while open.depth > 0 {
            match (self.peek()?, open.in_object()) {
                (b',', object) => {
                    self.at += 1;
                    if object {
                        self.skip_key()?;
                    }
                    return Ok(true);
                }
                (b'}', true) | (b']', false) => {
                    self.at += 1;
                    open.pop();
                }
                _ => return self.fail("a comma or the closing bracket"),
            }
        }
        Ok(false)
    }

    #[inline]
    fn skip_key(&mut self) -> Result<(), Syntax> {
        if self.peek()? != b'"' {
            return self.fail("a string");
        }
        self.skip_string()?;
        self.colon()
    }

    /// Skips a string, from its opening quote; returns whether it has escapes.
    #[inline]
    fn skip_string(&mut self) -> Result<bool, Syntax> {
        self.at += 1;
        let mut escaped = false;
        loop {
            self.at = find_special(self.json, self.at);
            match self.json.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.skip_escape()?;
                }
                Some(_) => return self.fail("no control character in a string"),
                None => return self.fail("the end of a string"),
            }
        }
    }

    fn skip_escape(&mut self) -> Result<(), Syntax> {
        self.at += 1;
        match self.json.get(self.at) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                let digits = self.json.get(self.at + 1..self.at + 5).unwrap_or_default();
                if digits.len() < 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return self.fail("four hexadecimal digits");
                }
                self.at += 5;
            }
            _ => return self.fail("an escape"),
        }
        Ok(())
    }

    fn literal(&mut self, word: &'static [u8]) -> Result<bool, Syntax> {
        if !self.json[self.at..].starts_with(word) {
            return self.fail("true, false or null");
        }
        self.at += word.len();
        Ok(false)
    }

    fn digits(&mut self) -> Result<(), Syntax> {
        let start = self.at;
        while self.json.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start { self.fail("a digit") } else { Ok(()) }
    }

    fn skip_number(&mut self) -> Result<(), Syntax> {
        self.at += usize::from(self.json.get(self.at) == Some(&b'-'));
        match self.json.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return self.fail("a value"),
        }
        if self.json.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.json.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.json.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }
}

#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// A string as encoded in the JSON, with quotes.
#[derive(Clone, Copy)]
pub(crate) struct RawText<'a> {
    quoted: &'a [u8],
    escaped: bool,
}

impl<'a> RawText<'a> {
    /// The decoded text; `None` if it is not UTF-8 or has an escape that is not a character.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        if self.escaped {
            return serde_json::from_slice::<String>(self.quoted).ok().map(Cow::Owned);
        }
        std::str::from_utf8(self.inside()).ok().map(Cow::Borrowed)
    }

    /// The decoded bytes; those of the JSON if it cannot be decoded.
    pub(crate) fn unescaped(self) -> Cow<'a, [u8]> {
        if !self.escaped {
            return Cow::Borrowed(self.inside());
        }
        self.text().map_or(Cow::Borrowed(self.inside()), |text| Cow::Owned(text.into_owned().into_bytes()))
    }

    fn inside(self) -> &'a [u8] {
        &self.quoted[1..self.quoted.len() - 1]
    }
}

#[cfg(test)]
pub(crate) mod tests;
