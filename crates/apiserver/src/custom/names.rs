//! Acceptance of the names that a CRD requests.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;

use super::definition::Names;

/// The accepted names of a CRD.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Acceptance {
    /// The requested names, except that a name in use by another CRD keeps its previous value.
    pub(crate) names: Names,
    /// The reason and message of the condition, for the last name in use by another CRD.
    pub(crate) conflict: Option<(&'static str, String)>,
}

/// The accepted names of all CRDs, by group and name.
///
/// A lookup takes the same time however many CRDs there are.
#[derive(Debug, Default)]
pub(crate) struct AcceptedNames {
    by_definition: HashMap<String, Names>,
    /// CRDs that did not get all names they request.
    rejected: BTreeSet<String>,
    /// The CRDs with a name, by group and name. Names of resources and of kinds do not conflict with each other.
    users: HashMap<(String, Scope, String), BTreeSet<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Scope {
    /// Plural, singular and short names.
    Resources,
    /// The kinds of objects and lists.
    Kinds,
}

impl AcceptedNames {
    /// Replaces what is known about a CRD with its stored state; `None` if it was removed.
    pub(crate) fn update(&mut self, definition: &str, json: Option<&[u8]>) {
        let status = json.map(|json| serde_json::from_slice::<Stored>(json).unwrap_or_default().status);
        let rejected = status.as_ref().is_some_and(|status| !status.has_all_names());
        if rejected {
            self.rejected.insert(definition.to_owned());
        } else {
            self.rejected.remove(definition);
        }
        self.set(definition, status.map(|status| status.accepted_names));
    }

    /// The other CRDs of the group that did not get all names they request.
    pub(crate) fn rejected_beside(&self, definition: &str) -> Vec<String> {
        let group = group_of(definition);
        let others = self.rejected.iter().filter(|other| *other != definition && group_of(other) == group);
        others.cloned().collect()
    }

    fn set(&mut self, definition: &str, names: Option<Names>) {
        let group = group_of(definition);
        if let Some(old) = self.by_definition.remove(definition) {
            for (scope, name) in uses(&old) {
                let key = (group.to_owned(), scope, name.to_owned());
                if let Some(users) = self.users.get_mut(&key) {
                    users.remove(definition);
                    if users.is_empty() {
                        self.users.remove(&key);
                    }
                }
            }
        }
        let Some(names) = names else { return };
        for (scope, name) in uses(&names) {
            let key = (group.to_owned(), scope, name.to_owned());
            self.users.entry(key).or_default().insert(definition.to_owned());
        }
        self.by_definition.insert(definition.to_owned(), names);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether another CRD of the group has the name.
    fn in_use(&self, definition: &str, scope: Scope, name: &str) -> bool {
        let users = self.users.get(&(group_of(definition).to_owned(), scope, name.to_owned()));
        users.into_iter().flatten().take(2).any(|user| user != definition)
    }

    /// Compares the requested names of a CRD with those of the others in its group.
    pub(crate) fn accept(&self, definition: &str, requested: &Names, previous: &Names) -> Acceptance {
        let resources = |name: &str| self.in_use(definition, Scope::Resources, name);
        let kinds = |name: &str| self.in_use(definition, Scope::Kinds, name);
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
            Some(short) => {
                result.conflict = Some(("ShortNamesConflict", format!("{short:?} is already in use")));
            }
            None => names.short_names.clone_from(&requested.short_names),
        }
        names.categories.clone_from(&requested.categories);
        result
    }
}

/// The group in the name of a CRD.
pub(crate) fn group_of(definition: &str) -> &str {
    definition.split_once('.').map_or("", |(_, group)| group)
}

/// The names that a CRD uses.
fn uses(names: &Names) -> impl Iterator<Item = (Scope, &str)> {
    let resources = [&names.plural, &names.singular].into_iter().chain(&names.short_names);
    let kinds = [&names.kind, &names.list_kind];
    let resources = resources.map(|name| (Scope::Resources, name.as_str()));
    let all = resources.chain(kinds.into_iter().map(|name| (Scope::Kinds, name.as_str())));
    all.filter(|(_, name)| !name.is_empty())
}

/// The part of a stored CRD that concerns its names.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Stored {
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    accepted_names: Names,
    conditions: Vec<Condition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl Status {
    fn has_all_names(&self) -> bool {
        self.conditions.iter().any(|c| c.kind == "NamesAccepted" && c.status == "True")
    }
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

    fn accepted(others: &[(&str, Names)]) -> AcceptedNames {
        let mut accepted = AcceptedNames::default();
        for (definition, names) in others {
            accepted.set(definition, Some(names.clone()));
        }
        accepted
    }

    fn gadgets() -> AcceptedNames {
        accepted(&[("gadgets.example.com", names("gadgets", "Gadget", &["gd"]))])
    }

    #[test]
    fn names_without_conflict_are_accepted() {
        let requested = names("widgets", "Widget", &["wd"]);
        let acceptance = gadgets().accept("widgets.example.com", &requested, &Names::default());
        assert_eq!(acceptance, Acceptance { names: requested, conflict: None });
    }

    #[test]
    fn only_names_in_use_are_rejected() {
        let requested = names("widgets", "Widget", &["gd"]);
        let acceptance = gadgets().accept("widgets.example.com", &requested, &Names::default());
        assert_eq!(acceptance.conflict, Some(("ShortNamesConflict", "\"gd\" is already in use".to_owned())));
        assert_eq!((acceptance.names.plural.as_str(), acceptance.names.short_names.len()), ("widgets", 0));
        let same_kind = names("others", "Gadget", &[]);
        let acceptance = gadgets().accept("others.example.com", &same_kind, &Names::default());
        assert_eq!(acceptance.conflict.unwrap().0, "ListKindConflict");
        let other_group = gadgets().accept("others.example.org", &same_kind, &Names::default());
        assert_eq!(other_group.conflict, None);
    }

    #[test]
    fn a_removed_definition_frees_its_names() {
        let mut accepted = gadgets();
        let requested = names("gadgets", "Gadget", &["gd"]);
        assert_eq!(
            accepted.accept("gadgets.example.com", &requested, &Names::default()).conflict,
            None,
            "its own"
        );
        assert!(accepted.accept("x.example.com", &requested, &Names::default()).conflict.is_some());
        accepted.set("gadgets.example.com", None);
        assert_eq!(accepted.accept("x.example.com", &requested, &Names::default()).conflict, None);
        assert!(accepted.users.is_empty());
    }
}
