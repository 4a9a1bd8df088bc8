//! The names of the logs that the informers of a process use.

use kube_informer_persist::BelongsTo;
use kube_informer_wire::sync::lock;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

/// The logs that informers of this process use.
///
/// 1. Informers that want the same name have numbered logs.
/// 2. Each has the log that belongs to it, if there is one. The order in which informers are built matters only for those whose
///    logs have the same pairs: each of these can use either log.
/// 3. The others have the lowest numbers that are free, in the order in which they were built. They replace logs that belong to
///    none of the informers: an informer whose transform changed replaces its own.
/// 4. Numbers are assigned when the first of them opens its log. An informer that is built later has no part in the choice, and
///    may find that its log was replaced.
#[derive(Default)]
pub(super) struct Names(Mutex<Reserved>);

#[derive(Default)]
struct Reserved {
    /// The users of each wanted name, in the order in which they were built.
    users: HashMap<String, Vec<User>>,
    next_id: u64,
}

struct User {
    id: u64,
    belongs_to: BelongsTo,
    /// The number of its log, counting from 1, once it is assigned.
    number: Option<usize>,
}

/// The name of a log, which no other log of this process has until it is dropped.
pub(super) struct ReservedName {
    names: Arc<Names>,
    wanted: String,
    id: u64,
}

impl Names {
    /// Reserves a name, or that name with a number, for a state that belongs to `belongs_to`.
    pub(super) fn reserve(self: &Arc<Self>, wanted: String, belongs_to: BelongsTo) -> Arc<ReservedName> {
        let mut reserved = lock(&self.0);
        let id = reserved.next_id;
        reserved.next_id += 1;
        reserved.users.entry(wanted.clone()).or_default().push(User { id, belongs_to, number: None });
        drop(reserved);
        Arc::new(ReservedName { names: Arc::clone(self), wanted, id })
    }
}

impl ReservedName {
    /// Returns the name. `saved` reads what the log with a name belongs to; `None` if there is no such log.
    pub(super) fn resolve(&self, saved: impl Fn(&str) -> Option<BelongsTo>) -> String {
        // Read without the lock.
        let known = lock(&self.names.0).users.get(&self.wanted).map_or(0, Vec::len);
        let mut logs = Vec::new();
        loop {
            let log = saved(&numbered(&self.wanted, logs.len() + 1));
            if log.is_none() && logs.len() >= known {
                break;
            }
            logs.push(log);
        }
        let mut reserved = lock(&self.names.0);
        let users = reserved.users.get_mut(&self.wanted).map_or(&mut [][..], Vec::as_mut_slice);
        assign(users, &logs);
        let number = users.iter().find(|user| user.id == self.id).and_then(|user| user.number);
        drop(reserved);
        numbered(&self.wanted, number.unwrap_or(1))
    }
}

fn numbered(wanted: &str, number: usize) -> String {
    if number == 1 { wanted.to_owned() } else { format!("{wanted}/{number}") }
}

/// Assigns numbers to the users that have none. `logs` has what each log belongs to, beginning with number 1.
fn assign(users: &mut [User], logs: &[Option<BelongsTo>]) {
    for at in 0..users.len() {
        let is_own = |number: &usize| logs[number - 1].as_ref() == Some(&users[at].belongs_to);
        let own = (1..=logs.len()).filter(is_own).find(|number| is_free(users, *number));
        users[at].number = users[at].number.or(own);
    }
    for at in 0..users.len() {
        let free = (1..).find(|number| is_free(users, *number));
        users[at].number = users[at].number.or(free);
    }
}

fn is_free(users: &[User], number: usize) -> bool {
    users.iter().all(|user| user.number != Some(number))
}

impl Drop for ReservedName {
    fn drop(&mut self) {
        let mut reserved = lock(&self.names.0);
        if let Some(users) = reserved.users.get_mut(&self.wanted) {
            users.retain(|user| user.id != self.id);
            if users.is_empty() {
                reserved.users.remove(&self.wanted);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(transform: &str) -> BelongsTo {
        BelongsTo::new().with("transform", transform)
    }

    fn reserve(names: &Arc<Names>, transforms: &[&str]) -> Vec<Arc<ReservedName>> {
        transforms.iter().map(|transform| names.reserve("pods".to_owned(), of(transform))).collect()
    }

    /// The names of logs on a disk with these logs: `pods`, `pods/2` and so on.
    fn resolve(reserved: &[Arc<ReservedName>], saved: &[&str]) -> Vec<String> {
        let saved = |name: &str| {
            let number = name.strip_prefix("pods/").map_or(1, |number| number.parse().unwrap());
            saved.get(number - 1_usize).map(|transform| of(transform))
        };
        reserved.iter().map(|name| name.resolve(saved)).collect()
    }

    #[test]
    fn a_name_in_use_gets_a_number_and_is_free_once_it_is_dropped() {
        let names = Arc::new(Names::default());
        let mut reserved = reserve(&names, &["a", "a", "a"]);
        assert_eq!(resolve(&reserved, &[]), ["pods", "pods/2", "pods/3"]);
        reserved.remove(1);
        reserved.extend(reserve(&names, &["a"]));
        assert_eq!(resolve(&reserved, &["a", "a", "a"]), ["pods", "pods/3", "pods/2"]);
        drop(reserved);
        assert_eq!(resolve(&reserve(&names, &["a"]), &[]), ["pods"]);
        assert!(lock(&names.0).users.is_empty());
    }

    #[test]
    fn each_has_the_log_that_belongs_to_it_in_any_order() {
        for order in [["a", "b", "c"], ["c", "b", "a"], ["b", "a", "c"]] {
            let names = Arc::new(Names::default());
            let mut reserved = reserve(&names, &order);
            reserved.sort_by_key(|name| {
                lock(&names.0).users["pods"][name.id as usize].belongs_to.pairs().to_vec()
            });
            assert_eq!(resolve(&reserved, &["b", "c", "a"]), ["pods/3", "pods", "pods/2"], "{order:?}");
        }
    }

    #[test]
    fn a_log_that_belongs_to_no_informer_is_replaced() {
        let resolved = |transforms: &[&str], saved: &[&str]| {
            resolve(&reserve(&Arc::new(Names::default()), transforms), saved)
        };
        assert_eq!(
            resolved(&["new"], &["a"]),
            ["pods"],
            "what it drops from now on does not stay on the disk"
        );
        assert_eq!(resolved(&["new", "a"], &["a", "b"]), ["pods/2", "pods"]);
        assert_eq!(resolved(&["new", "b", "a"], &["a", "b"]), ["pods/3", "pods/2", "pods"]);
        assert_eq!(resolved(&["b"], &["a", "b"]), ["pods/2"]);
    }
}
