//! Which of the names a definition asks for it gets.

use super::definition::Names;

/// What the names of a definition come to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Acceptance {
    /// Those it has: what it asks for, and where that is taken what it had before.
    pub(crate) names: Names,
    /// The last name that is taken: reason and message of the condition.
    pub(crate) conflict: Option<(&'static str, String)>,
}

/// Compares what is asked for with what other definitions of the group have.
pub(crate) fn accept(asked: &Names, had: &Names, others: &[Names]) -> Acceptance {
    let resources = |name: &str| {
        others
            .iter()
            .any(|o| o.plural == name || o.singular == name || o.short_names.iter().any(|s| s == name))
    };
    let kinds = |name: &str| others.iter().any(|o| o.kind == name || o.list_kind == name);
    let mut result = Acceptance { names: had.clone(), conflict: None };
    let names = &mut result.names;
    let mut claim = |reason, taken: bool, asked: &str, place: &mut String| {
        if taken {
            result.conflict = Some((reason, format!("{asked:?} is already in use")));
        } else {
            asked.clone_into(place);
        }
    };
    claim("PluralConflict", resources(&asked.plural), &asked.plural, &mut names.plural);
    claim("SingularConflict", resources(&asked.singular), &asked.singular, &mut names.singular);
    claim("KindConflict", kinds(&asked.kind), &asked.kind, &mut names.kind);
    claim("ListKindConflict", kinds(&asked.list_kind), &asked.list_kind, &mut names.list_kind);
    match asked.short_names.iter().find(|s| resources(s)) {
        Some(short) => result.conflict = Some(("ShortNamesConflict", format!("{short:?} is already in use"))),
        None => names.short_names.clone_from(&asked.short_names),
    }
    names.categories.clone_from(&asked.categories);
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
    fn free_names_are_accepted_whole() {
        let asked = names("widgets", "Widget", &["wd"]);
        let got = accept(&asked, &Names::default(), &[names("gadgets", "Gadget", &["gd"])]);
        assert_eq!(got, Acceptance { names: asked, conflict: None });
    }

    #[test]
    fn a_taken_name_is_refused_and_the_others_are_not() {
        let asked = names("widgets", "Widget", &["gd"]);
        let got = accept(&asked, &Names::default(), &[names("gadgets", "Gadget", &["gd"])]);
        assert_eq!(got.conflict, Some(("ShortNamesConflict", "\"gd\" is already in use".to_owned())));
        assert_eq!((got.names.plural.as_str(), got.names.short_names.len()), ("widgets", 0));
        let got =
            accept(&names("others", "Gadget", &[]), &Names::default(), &[names("gadgets", "Gadget", &[])]);
        assert_eq!(got.conflict.unwrap().0, "ListKindConflict");
    }
}
