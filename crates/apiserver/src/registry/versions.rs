//! The order of preference of versions.

/// Sorts the preferred version first: stable ones, then beta, then alpha, higher numbers before lower; versions with other
/// names come last, by name.
pub(crate) fn precedence(version: &str) -> impl Ord + use<> {
    use std::cmp::Reverse;
    match parse(version) {
        Some((major, stage, minor)) => (0, Reverse(stage), Reverse(major), Reverse(minor), String::new()),
        None => (1, Reverse(0), Reverse(0), Reverse(0), version.to_owned()),
    }
}

/// Major number, stage (alpha 0, beta 1, stable 2) and number within the stage.
fn parse(version: &str) -> Option<(u64, u8, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(digits);
    let major = major.parse().ok()?;
    if rest.is_empty() {
        return Some((major, 2, 0));
    }
    let (stage, minor) = match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
        (Some(minor), _) => (0, minor),
        (_, Some(minor)) => (1, minor),
        _ => return None,
    };
    Some((major, stage, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::precedence;

    #[test]
    fn stable_before_beta_before_alpha_before_the_rest() {
        let mut versions =
            ["foo10", "v1", "v3beta1", "v11alpha2", "v12alpha1", "v2", "v11beta2", "foo1", "v10", "v10beta3"];
        versions.sort_by_key(|v| precedence(v));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
        );
    }
}
