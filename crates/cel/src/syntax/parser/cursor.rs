//! The tokens that are not parsed yet, and the errors about them.

use super::super::lexer::TokenKind;
use super::super::source::Offset;
use super::{Abort, Parse, Parser};

impl Parser<'_> {
    pub(super) fn kind(&self) -> TokenKind {
        self.kind_after(0)
    }

    pub(super) fn kind_after(&self, n: usize) -> TokenKind {
        self.tokens.get(self.next + n).map_or(TokenKind::End, |token| token.kind)
    }

    pub(super) fn here(&self) -> Offset {
        self.tokens.get(self.next).or(self.tokens.last()).map(|token| token.at)
    }

    pub(super) fn token_text(&self) -> String {
        let Some(token) = self.tokens.get(self.next) else { return String::new() };
        self.text[token.at as usize..token.end as usize].iter().collect()
    }

    pub(super) fn shown(&self) -> String {
        if self.kind() == TokenKind::End { "<EOF>".to_owned() } else { self.token_text() }
    }

    pub(super) fn take(&mut self, fixed: &'static str) -> Option<Offset> {
        if self.kind() != TokenKind::Fixed(fixed) {
            return None;
        }
        let at = self.here();
        self.next += 1;
        Some(at)
    }

    pub(super) fn expect(&mut self, fixed: &'static str) -> Parse<()> {
        if self.take(fixed).is_some() {
            return Ok(());
        }
        // One token too many, or a missing one, is reported and parsing goes on.
        let token = self.shown();
        if self.kind_after(1) == TokenKind::Fixed(fixed) {
            self.syntax_error(format!("extraneous input '{token}' expecting '{fixed}'"));
            self.next += 2;
            return Ok(());
        }
        let fits = match fixed {
            ":" => starts_expression(self.kind()),
            _ => ends_expression(self.kind()),
        };
        if fits {
            self.syntax_error(format!("missing '{fixed}' at '{token}'"));
            return Ok(());
        }
        Err(self.unexpected(&format!("'{fixed}'")))
    }

    /// Expects the end of a list of elements, after which another element could follow too.
    pub(super) fn close(&mut self, fixed: &'static str) -> Parse<()> {
        if self.kind() == TokenKind::Fixed(fixed) || self.kind_after(1) == TokenKind::Fixed(fixed) {
            return self.expect(fixed);
        }
        Err(self.unexpected(&format!("{{'{fixed}', ','}}")))
    }

    pub(super) fn unexpected(&mut self, expected: &str) -> Abort {
        let token = self.shown();
        self.syntax_error(format!("mismatched input '{token}' expecting {expected}"))
    }

    pub(super) fn syntax_error(&mut self, message: String) -> Abort {
        let at = self.here();
        self.issues.report(at, format!("Syntax error: {message}"));
        Abort
    }
}

/// Returns whether a token can start an expression.
pub(super) fn starts_expression(kind: TokenKind) -> bool {
    match kind {
        TokenKind::Fixed(text) => ["[", "{", "(", ".", "-", "!", "true", "false", "null"].contains(&text),
        TokenKind::End | TokenKind::EscapedIdent => false,
        _ => true,
    }
}

/// Returns whether a token can follow an expression.
pub(super) fn ends_expression(kind: TokenKind) -> bool {
    match kind {
        TokenKind::Fixed(text) => !["{", "(", "!", "true", "false", "null"].contains(&text),
        TokenKind::End => true,
        _ => false,
    }
}
