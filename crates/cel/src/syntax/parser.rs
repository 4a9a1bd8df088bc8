//! The parser: recursive descent over a bounded depth.

mod cursor;
mod nodes;
mod numbers;

use std::sync::Arc;

use super::ast::{Entry, Expr, Field, Kind, Literal};
use super::lexer::{Token, TokenKind, tokens};
use super::macros;
use super::source::{Issues, Offset};
use super::unescape::unescape;
use crate::limits::{MAX_CODE_POINTS, MAX_DEPTH};
use cursor::starts_expression;
use numbers::{parse_int, parse_uint};

/// Words that are reserved as identifiers.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];
/// The tokens that can start an expression, as syntax errors list them.
const PRIMARY: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, \
                       BYTES, IDENTIFIER}";

/// How tightly operators bind.
const OR: u8 = 1;
const AND: u8 = 2;
const RELATION: u8 = 3;
const SUM: u8 = 4;
const PRODUCT: u8 = 5;

/// A parsed expression with the places of its parts.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) root: Expr,
    pub(crate) positions: Vec<Offset>,
}

/// Parsing ended with an error that is in the issues.
#[derive(Debug)]
pub(super) struct Abort;

type Parse<T> = Result<T, Abort>;

/// Parses `text` and expands its macros.
pub(crate) fn parse(text: &str, issues: &mut Issues) -> Option<Parsed> {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() > MAX_CODE_POINTS {
        let size = chars.len();
        issues.report(
            None,
            format!("expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}"),
        );
        return None;
    }
    let tokens = tokens(&chars, issues);
    let mut parser = Parser {
        text: chars,
        tokens,
        next: 0,
        nesting: 0,
        positions: Vec::new(),
        depths: Vec::new(),
        recovers: false,
        issues,
    };
    let root = parser.start().ok()?;
    let positions = std::mem::take(&mut parser.positions);
    issues.is_empty().then_some(Parsed { root, positions })
}

pub(super) struct Parser<'i> {
    text: Vec<char>,
    tokens: Vec<Token>,
    next: usize,
    /// Open expressions around the current token. Parentheses leave no trace in the tree, so that its depth does not bound them.
    nesting: usize,
    positions: Vec<Offset>,
    depths: Vec<usize>,
    /// Whether a token was skipped already; a second error ends parsing.
    recovers: bool,
    pub(super) issues: &'i mut Issues,
}

impl Parser<'_> {
    fn start(&mut self) -> Parse<Expr> {
        let root = self.expression()?;
        if self.kind() != TokenKind::End {
            let token = self.shown();
            // One token too many is deleted in recovery, which has a message of its own.
            let last = self.tokens.get(self.next + 1).is_none_or(|t| t.kind == TokenKind::End);
            let problem = if last { "extraneous" } else { "mismatched" };
            return Err(self.syntax_error(format!("{problem} input '{token}' expecting <EOF>")));
        }
        Ok(root)
    }

    fn expression(&mut self) -> Parse<Expr> {
        self.nesting += 1;
        if self.nesting > MAX_DEPTH {
            return Err(self.too_deep());
        }
        let condition = self.binary(OR)?;
        let parsed = if let Some(at) = self.take("?") {
            let yes = self.binary(OR)?;
            self.expect(":")?;
            let no = self.expression()?;
            self.call(at, "_?_:_", None, vec![condition, yes, no])
        } else {
            Ok(condition)
        };
        self.nesting -= 1;
        parsed
    }

    /// Parses operators that bind at least as tightly as `tightness`.
    fn binary(&mut self, tightness: u8) -> Parse<Expr> {
        let mut left = self.unary()?;
        while let Some((function, binds)) = self.operator().filter(|(_, binds)| *binds >= tightness) {
            if binds <= AND {
                left = self.chain(function, binds, left)?;
                continue;
            }
            let at = self.here();
            self.next += 1;
            let right = self.binary(binds + 1)?;
            left = self.call(at, function, None, vec![left, right])?;
        }
        Ok(left)
    }

    /// Parses a chain of `&&` or `||` after its first term.
    fn chain(&mut self, function: &'static str, binds: u8, first: Expr) -> Parse<Expr> {
        let mut terms = vec![first];
        let mut operators = Vec::new();
        while self.operator() == Some((function, binds)) {
            operators.push(self.here());
            self.next += 1;
            terms.push(self.binary(binds + 1)?);
        }
        self.balanced(function, terms, &operators)
    }

    /// Returns the function of the operator that comes next, and how tightly it binds.
    fn operator(&self) -> Option<(&'static str, u8)> {
        let TokenKind::Fixed(text) = self.kind() else { return None };
        Some(match text {
            "||" => ("_||_", OR),
            "&&" => ("_&&_", AND),
            "<" => ("_<_", RELATION),
            "<=" => ("_<=_", RELATION),
            ">=" => ("_>=_", RELATION),
            ">" => ("_>_", RELATION),
            "==" => ("_==_", RELATION),
            "!=" => ("_!=_", RELATION),
            "in" => ("@in", RELATION),
            "+" => ("_+_", SUM),
            "-" => ("_-_", SUM),
            "*" => ("_*_", PRODUCT),
            "/" => ("_/_", PRODUCT),
            "%" => ("_%_", PRODUCT),
            _ => return None,
        })
    }

    /// Makes a balanced tree of a chain of terms, so that long chains are not deep.
    fn balanced(&mut self, function: &str, terms: Vec<Expr>, operators: &[Offset]) -> Parse<Expr> {
        let mut terms: Vec<Option<Expr>> = terms.into_iter().map(Some).collect();
        match operators.len() {
            0 => Ok(take(&mut terms, 0)),
            n => self.subtree(function, &mut terms, operators, 0, n - 1),
        }
    }

    fn subtree(
        &mut self,
        function: &str,
        terms: &mut [Option<Expr>],
        operators: &[Offset],
        low: usize,
        high: usize,
    ) -> Parse<Expr> {
        let middle = (low + high).div_ceil(2);
        let left = if middle == low {
            take(terms, middle)
        } else {
            self.subtree(function, terms, operators, low, middle - 1)?
        };
        let right = if middle == high {
            take(terms, middle + 1)
        } else {
            self.subtree(function, terms, operators, middle + 1, high)?
        };
        self.call(operators[middle], function, None, vec![left, right])
    }

    fn unary(&mut self) -> Parse<Expr> {
        let (operator, function) = match self.kind() {
            TokenKind::Fixed("!") => ("!", "!_"),
            TokenKind::Fixed("-") if !self.is_negative_number() => ("-", "-_"),
            _ => return self.member(),
        };
        let first = self.here();
        let mut count = 0;
        while self.kind() == TokenKind::Fixed(operator) {
            self.next += 1;
            count += 1;
        }
        let operand = self.member()?;
        // An even number of signs has no effect.
        if count % 2 == 0 { Ok(operand) } else { self.call(first, function, None, vec![operand]) }
    }

    fn is_negative_number(&self) -> bool {
        self.kind() == TokenKind::Fixed("-")
            && matches!(self.kind_after(1), TokenKind::Int | TokenKind::Float)
    }

    fn member(&mut self) -> Parse<Expr> {
        let mut operand = self.primary()?;
        loop {
            if let Some(at) = self.take(".") {
                let optional = self.take("?").is_some();
                operand = self.selection(operand, at, optional)?;
            } else if let Some(at) = self.take("[") {
                let optional = self.take("?").is_some();
                if !optional && !starts_expression(self.kind()) && !starts_expression(self.kind_after(1)) {
                    return Err(self.unexpected(&PRIMARY.replacen("'!'", "'!', '?'", 1)));
                }
                let index = self.expression()?;
                self.expect("]")?;
                let function = if optional { "_[?_]" } else { "_[_]" };
                operand = self.call(at, function, None, vec![operand, index])?;
            } else {
                return Ok(operand);
            }
        }
    }

    fn selection(&mut self, operand: Expr, at: Offset, optional: bool) -> Parse<Expr> {
        let field_at = self.here();
        let escaped = self.kind() == TokenKind::EscapedIdent;
        if !escaped && self.kind() != TokenKind::Ident {
            let token = self.token_text();
            return Err(match token.as_str() {
                "true" | "false" | "null" => self.unexpected("IDENTIFIER"),
                token => self.syntax_error(format!("no viable alternative at input '.{token}'")),
            });
        }
        let field = self.token_text();
        self.next += 1;
        if escaped {
            self.issues.report(field_at, "unsupported syntax: '`'".to_owned());
        }
        if !optional && self.kind() == TokenKind::Fixed("(") {
            let open = self.here();
            self.next += 1;
            let args = self.arguments()?;
            return self.call(open, &field, Some(operand), args);
        }
        if optional {
            let field = self.node(field_at, Kind::Literal(Literal::String(field.into())))?;
            return self.node(
                at,
                Kind::Call { target: None, function: "_?._".to_owned(), args: vec![operand, field] },
            );
        }
        self.node(at, Kind::Select { operand: Box::new(operand), field, test_only: false })
    }

    fn arguments(&mut self) -> Parse<Vec<Expr>> {
        let mut args = Vec::new();
        if self.take(")").is_some() {
            return Ok(args);
        }
        if !starts_expression(self.kind()) {
            return Err(self.unexpected(&PRIMARY.replacen("'('", "'(', ')'", 1)));
        }
        loop {
            args.push(self.expression()?);
            if self.take(",").is_none() {
                self.close(")")?;
                return Ok(args);
            }
        }
    }

    fn primary(&mut self) -> Parse<Expr> {
        let at = self.here();
        match self.kind() {
            TokenKind::Fixed("(") => {
                self.next += 1;
                let inner = self.expression()?;
                self.expect(")")?;
                Ok(inner)
            }
            TokenKind::Fixed("[") => self.list(),
            TokenKind::Fixed("{") => self.map(),
            TokenKind::Fixed(".") if self.kind_after(1) == TokenKind::Ident => {
                self.next += 1;
                self.name(".")
            }
            TokenKind::Ident => self.name(""),
            TokenKind::Fixed(".") => {
                self.next += 1;
                let token = self.token_text();
                Err(self.syntax_error(format!("no viable alternative at input '.{token}'")))
            }
            _ => match self.literal()? {
                Some(literal) => self.node(at, Kind::Literal(literal)),
                // One token too many is reported, and parsing goes on after it.
                None if self.kind() != TokenKind::End
                    && starts_expression(self.kind_after(1))
                    && !self.recovers =>
                {
                    self.recovers = true;
                    let token = self.shown();
                    self.syntax_error(format!("extraneous input '{token}' expecting {PRIMARY}"));
                    self.next += 1;
                    self.primary()
                }
                None => Err(self.unexpected(PRIMARY)),
            },
        }
    }

    /// An identifier, a call of a global function, or a message.
    fn name(&mut self, prefix: &str) -> Parse<Expr> {
        if let Some(parts) = self.message_parts() {
            return self.message(prefix, parts);
        }
        let at = self.here();
        let name = self.token_text();
        self.next += 1;
        let open = self.take("(");
        let args = if open.is_some() { Some(self.arguments()?) } else { None };
        if RESERVED.contains(&name.as_str()) {
            self.issues.report(at, format!("reserved identifier: {name}"));
        }
        let name = format!("{prefix}{name}");
        match args {
            Some(args) => self.call(open.unwrap_or(at), &name, None, args),
            None => self.node(at, Kind::Ident(name)),
        }
    }

    /// Returns the number of tokens of the name, if a message literal follows.
    fn message_parts(&self) -> Option<usize> {
        let mut length = 1;
        while self.kind_after(length) == TokenKind::Fixed(".")
            && self.kind_after(length + 1) == TokenKind::Ident
        {
            length += 2;
        }
        (self.kind_after(length) == TokenKind::Fixed("{")).then_some(length)
    }

    fn message(&mut self, prefix: &str, parts: usize) -> Parse<Expr> {
        let mut name = prefix.to_owned();
        for _ in 0..parts {
            name.push_str(&self.token_text());
            self.next += 1;
        }
        let at = self.here();
        self.expect("{")?;
        let mut fields = Vec::new();
        while self.take("}").is_none() {
            let _ = self.take("?");
            if self.kind() != TokenKind::Ident {
                return Err(self.unexpected("{'}', '?', IDENTIFIER, ESC_IDENTIFIER}"));
            }
            self.next += 1;
            self.expect(":")?;
            fields.push(Field { value: self.expression()? });
            if self.take(",").is_none() {
                self.expect("}")?;
                break;
            }
        }
        self.node(at, Kind::Struct { name, fields })
    }

    fn list(&mut self) -> Parse<Expr> {
        let at = self.here();
        self.expect("[")?;
        let (mut elements, mut optional) = (Vec::new(), Vec::new());
        while self.take("]").is_none() {
            if elements.is_empty() && self.take(",").is_some() {
                self.expect("]")?;
                break;
            }
            optional.push(self.take("?").is_some());
            elements.push(self.expression()?);
            if self.take(",").is_none() {
                self.close("]")?;
                break;
            }
            if self.kind() == TokenKind::End {
                self.expect("]")?;
                break;
            }
        }
        self.node(at, Kind::List { elements, optional })
    }

    fn map(&mut self) -> Parse<Expr> {
        let at = self.here();
        self.expect("{")?;
        let mut entries = Vec::new();
        while self.take("}").is_none() {
            if entries.is_empty() && self.take(",").is_some() {
                self.expect("}")?;
                break;
            }
            let optional = self.take("?").is_some();
            let key = self.expression()?;
            self.expect(":")?;
            let value = self.expression()?;
            entries.push(Entry { key, value, optional });
            if self.take(",").is_none() {
                self.close("}")?;
                break;
            }
        }
        self.node(at, Kind::Map(entries))
    }

    fn literal(&mut self) -> Parse<Option<Literal>> {
        let at = self.here();
        let negative = self.is_negative_number();
        self.next += usize::from(negative);
        let text = format!("{}{}", if negative { "-" } else { "" }, self.token_text());
        let literal = match self.kind() {
            TokenKind::Int => parse_int(&text).map(Literal::Int).ok_or("invalid int literal"),
            TokenKind::Uint => parse_uint(&text).map(Literal::Uint).ok_or("invalid uint literal"),
            TokenKind::Float => {
                let parsed = text.parse::<f64>().ok().filter(|f| f.is_finite());
                parsed.map(Literal::Double).ok_or("invalid double literal")
            }
            TokenKind::String => {
                unescape(&text, false).map(|s| Literal::String(String::from_utf8_lossy(&s).into()))
            }
            TokenKind::Bytes => unescape(&text[1..], true).map(|b| Literal::Bytes(Arc::from(b))),
            TokenKind::Fixed("true") => Ok(Literal::Bool(true)),
            TokenKind::Fixed("false") => Ok(Literal::Bool(false)),
            TokenKind::Fixed("null") => Ok(Literal::Null),
            _ => return Ok(None),
        };
        self.next += 1;
        Ok(Some(literal.unwrap_or_else(|why| {
            self.issues.report(at, why.to_owned());
            Literal::Null
        })))
    }

    /// Makes a call, or the expansion of the macro of that name.
    pub(super) fn call(
        &mut self,
        at: Offset,
        function: &str,
        target: Option<Expr>,
        args: Vec<Expr>,
    ) -> Parse<Expr> {
        macros::expand(self, at, function, target, args)
    }
}

fn take(terms: &mut [Option<Expr>], at: usize) -> Expr {
    terms[at].take().expect("each term is in the tree once")
}
