//! Acceptance of the names that a CRD requests.

use super::definition::Names;

/// The accepted names of a CRD.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Acceptance {
    /// The requested names, except that a name in use by another CRD keeps its previous value.
    pub(crate) names: Names,
    /// The reason and message of the condition, for the last name in use by another CRD.
    pub(crate) conflict: Option<(&'static str, String)>,
}

/// Compares the requested names with those of other CRDs in the group.
pub(crate) fn accept(requested: &Names, previous: &Names, others: &[Names]) -> Acceptance {
    let resources = |name: &str| {
        others
            .iter()
            .any(|o| o.plural == name || o.singular == name || o.short_names.iter().any(|s| s == name))
    };
    let kinds = |name: &str| others.iter().any(|o| o.kind == name || o.list_kind == name);
    let mut result = Acceptance { names: previous.clone(), conflict: None };
    let names = &mut result.names;
    let mut claim = |reason, in_use: bool, requested: &str, accepted: &mut String| {
        if in_use {
            result.conflict = Some((reason, format!("{requested:?} is already in use")));
        } else {
            requested.clone_into(accepted);
        }
    };
    claim("PluralConflict", resources(&requested.plural), &requested.plural, &mut names.plural);
    claim("SingularConflict", resources(&requested.singular), &requested.singular, &mut names.singular);
    claim("KindConflict", kinds(&requested.kind), &requested.kind, &mut names.kind);
    claim("ListKindConflict", kinds(&requested.list_kind), &requested.list_kind, &mut names.list_kind);
    match requested.short_names.iter().find(|s| resources(s)) {
        Some(short) => result.conflict = Some(("ShortNamesConflict", format!("{short:?} is already in use"))),
        None => names.short_names.clone_from(&requested.short_names),
    }
    names.categories.clone_from(&requested.categories);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(plural: &str, kind: &str, short: &[&str]) -> Names {
        Names {
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            short_names: short.iter().map(|s| (*s).to_owned()).collect(),
            categories: Vec::new(),
        }
    }

    #[test]
    fn names_without_conflict_are_accepted() {
        let requested = names("widgets", "Widget", &["wd"]);
        let acceptance = accept(&requested, &Names::default(), &[names("gadgets", "Gadget", &["gd"])]);
        assert_eq!(acceptance, Acceptance { names: requested, conflict: None });
    }

    #[test]
    fn only_names_in_use_are_rejected() {
        let requested = names("widgets", "Widget", &["gd"]);
        let acceptance = accept(&requested, &Names::default(), &[names("gadgets", "Gadget", &["gd"])]);
        assert_eq!(acceptance.conflict, Some(("ShortNamesConflict", "\"gd\" is already in use".to_owned())));
        assert_eq!((acceptance.names.plural.as_str(), acceptance.names.short_names.len()), ("widgets", 0));
        let acceptance =
            accept(&names("others", "Gadget", &[]), &Names::default(), &[names("gadgets", "Gadget", &[])]);
        assert_eq!(acceptance.conflict.unwrap().0, "ListKindConflict");
    }
}
