#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod call_cost;
mod check;
mod declared;
mod escape;
mod estimate;
mod eval;
mod functions;
mod limits;
mod meter;
mod pattern;
mod plan;
mod program;
mod rules;
mod schema;
mod syntax;
mod types;
mod value;

pub use limits::ESTIMATED_COST_LIMIT;
pub use limits::ESTIMATED_SCHEMA_COST_LIMIT;
pub use limits::OBJECT_BUDGET;
pub use limits::PER_CALL_LIMIT;
pub use pattern::compile_pattern;
pub use program::CompileError;
pub use program::Environment;
pub use program::Outcome;
pub use program::Output;
pub use program::Program;
pub use rules::Problem;
pub use rules::ProblemKind;
pub use rules::Validator;
pub use rules::Verdict;
pub use rules::check_defaults;
pub use rules::check_rules;
pub use schema::Schema;
