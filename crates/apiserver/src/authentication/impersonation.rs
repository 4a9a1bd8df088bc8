//! Impersonation: a caller acts as another user. Without roles, every caller may impersonate everybody.

use std::collections::BTreeMap;

use http::HeaderMap;

use super::{AUTHENTICATED, User};

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
const ANONYMOUS: &str = "system:anonymous";
const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Headers that name a group, a uid or an extra, but no user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("requested groups, uid or extra without impersonating a user")]
pub(crate) struct WithoutUser;

/// The user that the headers of a request name, or `caller` if they name none.
pub(crate) fn impersonate(headers: &HeaderMap, caller: User) -> Result<User, WithoutUser> {
    let texts = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.filter(|value| !value.is_empty()).map(str::to_owned).collect()
    };
    let (mut groups, uid, extra) = (texts(GROUP), texts(UID).into_iter().next(), extra(headers));
    let Some(name) = texts(USER).into_iter().next() else {
        let named = !groups.is_empty() || uid.is_some() || !extra.is_empty();
        return if named { Err(WithoutUser) } else { Ok(caller) };
    };
    let account = name.strip_prefix(SERVICE_ACCOUNT).and_then(|rest| rest.split_once(':'));
    if let Some((namespace, _)) = account.filter(|_| groups.is_empty()) {
        groups.extend(["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]);
    }
    let everyone = if name == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
    if !groups.iter().any(|group| group == AUTHENTICATED || group == UNAUTHENTICATED) {
        groups.push(everyone.to_owned());
    }
    Ok(User { name, uid: uid.unwrap_or_default(), groups, extra })
}

/// The values of `Impersonate-Extra-KEY`. Keys are in lower case and may be percent-encoded.
fn extra(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut extra = BTreeMap::<String, Vec<String>>::new();
    for (name, value) in headers {
        let (Some(key), Ok(value)) = (name.as_str().strip_prefix(EXTRA), value.to_str()) else { continue };
        let key = percent_encoding::percent_decode_str(key).decode_utf8_lossy().into_owned();
        extra.entry(key).or_default().push(value.to_owned());
    }
    extra
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_user(headers: &[(&'static str, &str)]) -> Result<User, WithoutUser> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        impersonate(&map, User::admin())
    }

    #[test]
    fn a_request_without_headers_is_of_its_caller() {
        assert_eq!(as_user(&[]), Ok(User::admin()));
        assert_eq!(as_user(&[(GROUP, "g")]), Err(WithoutUser));
        assert_eq!(as_user(&[(UID, "u")]), Err(WithoutUser));
        assert_eq!(as_user(&[("impersonate-extra-scope", "s")]), Err(WithoutUser));
    }

    #[test]
    fn a_user_has_the_named_groups_and_extras() {
        let headers = [
            (USER, "jane"),
            (UID, "u"),
            (GROUP, "a"),
            (GROUP, "b"),
            ("impersonate-extra-example.com%2fscope", "x"),
            ("impersonate-extra-example.com%2fscope", "y"),
        ];
        let user = as_user(&headers).unwrap();
        assert_eq!((&*user.name, &*user.uid), ("jane", "u"));
        assert_eq!(user.groups, ["a", "b", "system:authenticated"]);
        assert_eq!(user.extra["example.com/scope"], ["x", "y"]);
    }

    #[test]
    fn service_accounts_and_anonymous_users_have_their_groups() {
        let account = as_user(&[(USER, "system:serviceaccount:shop:cart")]).unwrap();
        let groups = ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"];
        assert_eq!(account.groups, groups);
        assert_eq!(as_user(&[(USER, ANONYMOUS)]).unwrap().groups, [UNAUTHENTICATED]);
        assert_eq!(as_user(&[(USER, "u"), (GROUP, AUTHENTICATED)]).unwrap().groups, [AUTHENTICATED]);
    }
}
