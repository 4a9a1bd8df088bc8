//! The field errors of one object, as many as a response can hold.

use super::FieldError;

/// Errors that a response lists.
const MAX_ERRORS: usize = 1000;
/// Bytes of their texts.
const MAX_BYTES: usize = 1 << 20;

/// The field errors of one object, in the order in which they were found.
///
/// A client can send millions of invalid fields in one request. kube-apiserver lists every error; here the list ends after 1,000 errors or
/// 1 MiB of text, and the response says that it is not complete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldErrors {
    /// At most one more than is listed, so that a list which is full stays so when it becomes part of another.
    list: Vec<FieldError>,
    bytes: usize,
}

impl FieldErrors {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds an error, unless the list is full.
    pub(crate) fn push(&mut self, error: FieldError) {
        if !self.is_full() {
            self.bytes += error.len();
            self.list.push(error);
        }
    }

    /// Whether further errors are dropped. Loops may end then.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() > MAX_ERRORS || self.bytes > MAX_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, FieldError> {
        self.list.iter()
    }

    /// The errors to show.
    pub(super) fn listed(&self) -> &[FieldError] {
        &self.list[..self.list.len().min(MAX_ERRORS)]
    }

    /// The note that errors are missing.
    pub(super) fn note(&self) -> Option<String> {
        self.is_full().then(|| format!("too many errors: only the first {} are listed", self.listed().len()))
    }

    /// Keeps the first `len` errors.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.bytes -= self.list.drain(len.min(self.list.len())..).map(|error| error.len()).sum::<usize>();
    }
}

impl Extend<FieldError> for FieldErrors {
    fn extend<I: IntoIterator<Item = FieldError>>(&mut self, errors: I) {
        for error in errors {
            if self.is_full() {
                return;
            }
            self.push(error);
        }
    }
}

impl FromIterator<FieldError> for FieldErrors {
    fn from_iter<I: IntoIterator<Item = FieldError>>(errors: I) -> Self {
        let mut list = Self::new();
        list.extend(errors);
        list
    }
}

impl<const N: usize> From<[FieldError; N]> for FieldErrors {
    fn from(errors: [FieldError; N]) -> Self {
        errors.into_iter().collect()
    }
}

impl IntoIterator for FieldErrors {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'e> IntoIterator for &'e FieldErrors {
    type Item = &'e FieldError;
    type IntoIter = std::slice::Iter<'e, FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;
    use crate::verbs::error::RequestError;

    fn error(n: usize) -> FieldError {
        FieldError::required(format!("f[{n}]"), "")
    }

    #[test]
    fn a_list_ends_and_says_so() {
        let some: FieldErrors = (0..MAX_ERRORS).map(error).collect();
        assert_eq!((some.listed().len(), some.note()), (MAX_ERRORS, None));
        let many: FieldErrors = (0..10 * MAX_ERRORS).map(error).collect();
        let mut outer = FieldErrors::new();
        outer.extend(many);
        assert_eq!(outer.listed().len(), MAX_ERRORS);
        assert_eq!(outer.note().unwrap(), "too many errors: only the first 1000 are listed");
    }

    #[test]
    fn a_response_is_bounded_whatever_its_errors_contain() {
        // Each character of the value takes seven bytes in the response, and each error is listed twice.
        let errors: FieldErrors =
            (0..100_000).map(|n| FieldError::invalid(format!("f[{n}]"), "\u{1}".repeat(200), "no")).collect();
        let error = RequestError::InvalidOptions { kind: "ListOptions", errors };
        let response = Status::from(&error).to_json();
        assert!(response.len() < 8 * MAX_BYTES, "{} bytes", response.len());
    }

    #[test]
    fn long_errors_fill_a_list_sooner() {
        let mut asked = 0;
        let long = std::iter::repeat_with(|| {
            asked += 1;
            FieldError::invalid("f", "x".repeat(MAX_BYTES / 4), "no")
        });
        let list: FieldErrors = long.take(1000).collect();
        assert!(list.is_full() && list.len() <= 5, "{}", list.len());
        assert!(asked <= 6, "{asked} errors were made for a list of {}", list.len());
    }
}
