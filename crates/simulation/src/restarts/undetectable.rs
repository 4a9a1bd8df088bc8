//! The rule that excludes restores which no client can detect.

use crate::{history::EpochVersion, selection::Part, truth::TruthState};

impl TruthState {
    /// Whether a process that resumes at a saved state cannot detect that the server was restored since, and has passed the
    /// version of that state:
    ///
    /// - the history of the server still has the version, so that the watch is accepted, and
    /// - the saved object with the highest version is on the server as it was saved, or newer, or the watch delivers its
    ///   delete; or no object was saved.
    ///
    /// A server that is behind the version is detected, and a state that is older than `resume_within` is not resumed.
    pub(super) fn is_undetectable(&self, state: EpochVersion, part: &Part) -> bool {
        let (epoch, version) = (self.history.epoch(), state.1);
        if !self.is_undone(state) || self.history.version < version || version < self.history.compacted {
            return false;
        }
        let saved = self.history.at(state.0, version).into_iter().flat_map(|saved| saved.values());
        let Some(newest) = saved.filter(|write| part.includes(write)).max_by_key(|write| write.version)
        else {
            return true;
        };
        let delete_follows = || {
            let at_version = self.history.at(epoch, version).and_then(|state| state.get(&newest.key));
            at_version.is_some_and(|write| write.uid == newest.uid)
        };
        match self.history.current().get(&newest.key) {
            None => delete_follows(),
            Some(current) if current.uid == newest.uid => current.version >= newest.version,
            Some(current) => current.version > newest.version && delete_follows(),
        }
    }
}
