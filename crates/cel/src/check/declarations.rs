//! The functions of the environment, read once from `functions.txt`.
//!
//! Each line has the name of a function, the id of an overload, its signature and its result. A type before the parentheses is that of the
//! receiver. `A` and `B` are type parameters. The order of overloads is that of kube-apiserver: the first that matches binds types that are
//! not known yet.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::types::{CIDR, FORMAT, IP, QUANTITY, SEMVER, Type, URL};

/// One signature of a function.
#[derive(Debug)]
pub(crate) struct Overload {
    pub(crate) id: &'static str,
    pub(crate) is_member: bool,
    /// The receiver, if there is one, and the arguments.
    pub(crate) params: Vec<Type>,
    pub(crate) result: Type,
    /// Whether types have parameters that are instantiated for each call.
    pub(crate) is_generic: bool,
}

type Table = HashMap<&'static str, Vec<Overload>>;

/// Returns the overloads of a function.
pub(crate) fn function(name: &str) -> Option<&'static [Overload]> {
    static TABLE: OnceLock<Table> = OnceLock::new();
    let table = TABLE.get_or_init(|| {
        let mut table = Table::new();
        for line in include_str!("functions.txt").lines() {
            let (name, overload) = read(line).expect("functions.txt has one overload a line");
            table.entry(name).or_default().push(overload);
        }
        table
    });
    table.get(name).map(Vec::as_slice)
}

/// Returns the type of an identifier that is the name of a type.
pub(crate) fn type_name(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "duration" | "google.protobuf.Duration" => Type::Duration,
        "dyn" => Type::Dyn,
        "int" => Type::Int,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "string" => Type::String,
        "timestamp" | "google.protobuf.Timestamp" => Type::Timestamp,
        "type" => Type::Meta(None),
        "uint" => Type::Uint,
        "optional_type" => Type::Opaque("optional_type"),
        "net.IP" => IP,
        "net.CIDR" => CIDR,
        _ => return None,
    })
}

fn read(line: &'static str) -> Option<(&'static str, Overload)> {
    let (name, rest) = line.split_once(' ')?;
    let (id, rest) = rest.split_once(' ')?;
    let (receiver, rest) = rest.split_once('(')?;
    let (args, result) = rest.split_once(')')?;
    let receiver = receiver.strip_suffix('.');
    let params = receiver.into_iter().chain(args.split(", ").filter(|arg| !arg.is_empty()));
    let params: Option<Vec<Type>> = params.map(read_type).collect();
    let is_generic = line[name.len() + id.len() + 1..].contains(['A', 'B']) && has_params(line);
    Some((
        name,
        Overload {
            id,
            is_member: receiver.is_some(),
            params: params?,
            result: read_type(result.trim())?,
            is_generic,
        },
    ))
}

fn has_params(line: &str) -> bool {
    line.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| matches!(word, "A" | "B"))
}

fn read_type(text: &str) -> Option<Type> {
    if let Some((outer, inner)) = text.strip_suffix('>').and_then(|text| text.split_once('<')) {
        return Some(match outer {
            "list" => Type::list(read_type(inner)?),
            "optional" => Type::optional(read_type(inner)?),
            "type" => Type::Meta(Some(read_type(inner)?.into())),
            "map" => {
                let (key, value) = inner.split_once(',')?;
                Type::map(read_type(key)?, read_type(value)?)
            }
            _ => return None,
        });
    }
    Some(match text {
        "A" => Type::Param('A'),
        "B" => Type::Param('B'),
        "kubernetes.URL" => URL,
        "kubernetes.Quantity" => QUANTITY,
        "kubernetes.Semver" => SEMVER,
        "kubernetes.NamedFormat" => FORMAT,
        name => type_name(name)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        assert_eq!(function("size").map(<[_]>::len), Some(8));
        let format = &function("format").unwrap()[0];
        assert_eq!((format.is_member, format.is_generic, format.params.len()), (true, false, 2));
        let insert = &function("cel.@mapInsert").unwrap()[0];
        assert_eq!((insert.is_generic, insert.result.to_string().as_str()), (true, "map(A, B)"));
        assert!(!function("isURL").unwrap()[0].is_generic);
    }
}
