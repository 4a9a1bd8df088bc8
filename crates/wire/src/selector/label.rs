//! Label selectors: `app=web,tier in (a,b),!legacy,size>3`.

use std::fmt;
use std::str::FromStr;

use super::syntax::{Lexer, Token, key_error, value_error};
use super::{Lookup, SelectorError, bounded};

/// A conjunction of requirements on labels. The empty one matches everything.
///
/// `Display` is the canonical form: sorted by key, values sorted, no spaces except around `in` and `notin`. Parsing it
/// gives an equal selector.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LabelSelector {
    /// Sorted by key; requirements of one key in the order given.
    requirements: Box<[Requirement]>,
}

/// One requirement of a label selector.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: Box<str>,
    operator: Operator,
    /// Sorted, without duplicates; one value for comparisons, none for existence.
    values: Box<[Box<str>]>,
}

/// The operator of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `key=value`
    Equals,
    /// `key==value`
    DoubleEquals,
    /// `key!=value`; also true if the key is missing
    NotEquals,
    /// `key in (a,b)`
    In,
    /// `key notin (a,b)`; also true if the key is missing
    NotIn,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
    /// `key>1`, for integers
    GreaterThan,
    /// `key<1`, for integers
    LessThan,
}

impl LabelSelector {
    /// The selector that matches everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// A selector of these requirements.
    pub fn new(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut requirements: Vec<_> = requirements.into_iter().collect();
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements: requirements.into() }
    }

    /// Parses a selector. Empty text matches everything.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut lexer = Lexer::new(bounded(text)?);
        let mut requirements = Vec::new();
        if lexer.peek() == Token::End {
            return Ok(Self::default());
        }
        expect_start(&lexer, "!, identifier, or 'end of string'")?;
        loop {
            requirements.push(read_requirement(&mut lexer).map_err(SelectorError::Requirement)?);
            match lexer.next() {
                Token::End => return Ok(Self::new(requirements)),
                Token::Symbol(",") => expect_start(&lexer, "identifier after ','")?,
                other => return Err(unexpected(other, "',' or 'end of string'")),
            }
        }
    }

    /// A selector that matches what both match.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        match self.is_everything() {
            true => other.clone(),
            false => Self::new(self.requirements.into_iter().chain(other.requirements.iter().cloned())),
        }
    }

    /// Whether these labels meet every requirement.
    pub fn matches<L: Lookup + ?Sized>(&self, labels: &L) -> bool {
        self.requirements.iter().all(|r| r.matches(labels))
    }

    /// Whether it matches all labels.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }
}

impl Requirement {
    /// A valid requirement: key and values are well formed, and the number of values fits the operator.
    pub fn new<V: Into<Box<str>>>(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = V>,
    ) -> Result<Self, SelectorError> {
        let values = values.into_iter().map(Into::into).collect();
        Self::checked(key, operator, values).map_err(SelectorError::Requirement)
    }

    fn checked(key: &str, operator: Operator, mut values: Vec<Box<str>>) -> Result<Self, String> {
        if let Some(error) = key_error(key) {
            return Err(format!("<nil>: Invalid value: {key:?}: {error}"));
        }
        if let Some(error) = operator.count_error(values.len()) {
            return Err(format!("values: Invalid value: {values:?}: {error}"));
        }
        if operator.compares_integers() && values[0].parse::<i64>().is_err() {
            let value = &values[0];
            return Err(format!(
                "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer"
            ));
        }
        if let Some((at, error)) = values.iter().enumerate().find_map(|(at, v)| Some((at, value_error(v)?))) {
            return Err(format!("values[{at}][{key}]: Invalid value: {:?}: {error}", values[at]));
        }
        values.sort_unstable();
        values.dedup();
        Ok(Self { key: key.into(), operator, values: values.into() })
    }

    /// The key of the label.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The operator.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values, sorted.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &str> {
        self.values.iter().map(|v| &**v)
    }

    /// Whether these labels meet the requirement.
    pub fn matches<L: Lookup + ?Sized>(&self, labels: &L) -> bool {
        let value = labels.lookup(&self.key);
        let listed = |value: &str| self.values.iter().any(|v| **v == *value);
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => value.is_some_and(listed),
            Operator::NotEquals | Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.integers(value).is_some_and(|(label, bound)| label > bound),
            Operator::LessThan => self.integers(value).is_some_and(|(label, bound)| label < bound),
        }
    }

    fn integers(&self, value: Option<&str>) -> Option<(i64, i64)> {
        Some((value?.parse().ok()?, self.values[0].parse().ok()?))
    }
}

impl Operator {
    fn count_error(self, values: usize) -> Option<&'static str> {
        match self {
            Self::In | Self::NotIn => {
                (values == 0).then_some("for 'in', 'notin' operators, values set can't be empty")
            }
            Self::Exists | Self::DoesNotExist => {
                (values != 0).then_some("values set must be empty for exists and does not exist")
            }
            Self::Equals | Self::DoubleEquals | Self::NotEquals => {
                (values != 1).then_some("exact-match compatibility requires one single value")
            }
            Self::GreaterThan | Self::LessThan => {
                (values != 1).then_some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
        }
    }

    fn compares_integers(self) -> bool {
        matches!(self, Self::GreaterThan | Self::LessThan)
    }
}

fn unexpected(found: Token<'_>, expected: &'static str) -> SelectorError {
    SelectorError::Unexpected { found: found.text().to_owned(), expected }
}

fn expect_start(lexer: &Lexer<'_>, expected: &'static str) -> Result<(), SelectorError> {
    match lexer.peek() {
        Token::Word(_) | Token::Symbol("!") => Ok(()),
        other => Err(unexpected(other, expected)),
    }
}

fn read_requirement(lexer: &mut Lexer<'_>) -> Result<Requirement, String> {
    let negated = lexer.peek() == Token::Symbol("!");
    if negated {
        lexer.next();
    }
    let Token::Word(key) = lexer.peek() else {
        return Err(format!("found '{}', expected: identifier", lexer.peek().text()));
    };
    lexer.next();
    if let Some(error) = key_error(key) {
        return Err(format!("<nil>: Invalid value: {key:?}: {error}"));
    }
    if negated {
        return Requirement::checked(key, Operator::DoesNotExist, Vec::new());
    }
    if matches!(lexer.peek(), Token::End | Token::Symbol(",")) {
        return Requirement::checked(key, Operator::Exists, Vec::new());
    }
    let operator = read_operator(lexer)?;
    let values = match operator {
        Operator::In | Operator::NotIn => read_set(lexer)?,
        _ => vec![read_value(lexer)?],
    };
    Requirement::checked(key, operator, values)
}

fn read_operator(lexer: &mut Lexer<'_>) -> Result<Operator, String> {
    match lexer.next() {
        Token::Word("in") => Ok(Operator::In),
        Token::Word("notin") => Ok(Operator::NotIn),
        Token::Symbol("=") => Ok(Operator::Equals),
        Token::Symbol("==") => Ok(Operator::DoubleEquals),
        Token::Symbol("!=") => Ok(Operator::NotEquals),
        Token::Symbol(">") => Ok(Operator::GreaterThan),
        Token::Symbol("<") => Ok(Operator::LessThan),
        other => Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text())),
    }
}

/// The value after an operator such as `=`; without one, it is empty.
fn read_value(lexer: &mut Lexer<'_>) -> Result<Box<str>, String> {
    match lexer.peek() {
        Token::End | Token::Symbol(",") => Ok("".into()),
        Token::Word(value) => {
            lexer.next();
            Ok(value.into())
        }
        other => Err(format!("found '{}', expected: identifier", other.text())),
    }
}

/// The values in parentheses. Two commas, a comma at either end, or empty parentheses contain an empty value.
fn read_set(lexer: &mut Lexer<'_>) -> Result<Vec<Box<str>>, String> {
    match lexer.next() {
        Token::Symbol("(") => {}
        other => return Err(format!("found '{}' expected: '('", other.text())),
    }
    let mut values: Vec<Box<str>> = Vec::new();
    loop {
        values.push(match lexer.peek() {
            Token::Word(value) => {
                lexer.next();
                value.into()
            }
            _ => "".into(),
        });
        match lexer.next() {
            Token::Symbol(",") => {}
            Token::Symbol(")") => return Ok(values),
            other => return Err(format!("found '{}', expected: ',', or ')'", other.text())),
        }
    }
}

impl FromStr for LabelSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        Self::parse(text)
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

#[cfg(test)]
mod tests;
