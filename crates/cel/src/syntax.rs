//! From the text of an expression to its syntax tree.

pub(crate) mod ast;
mod lexer;
mod macros;
mod parser;
pub(crate) mod source;
mod unescape;

pub(crate) use parser::RESERVED;
pub(crate) use parser::parse;
