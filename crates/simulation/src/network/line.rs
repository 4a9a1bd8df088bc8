//! An answer that is under way, as the network sees it.

use super::{State, request::status};
use crate::{
    log::Log,
    totals::Fault,
    trouble::{Blow, Trap},
    truth::ClientId,
};
use std::time::Duration;

/// An answer that is under way.
#[derive(Debug)]
pub(super) struct Line {
    client: ClientId,
    generation: u64,
    /// The history that it shows.
    pub(super) epoch: u32,
    watch: bool,
    /// A streaming list that is not yet complete.
    pub(super) initial: bool,
    /// The server has had its last word.
    pub(super) over: bool,
    fate: Option<Fate>,
    stalled: bool,
    /// After so many bytes it breaks.
    break_after: Option<u64>,
    /// After so many bytes it stops, as if that were all.
    stop_after: Option<u64>,
    pub(super) garble: Option<bool>,
    pub(super) slow: Option<Duration>,
    pub(super) trickle: bool,
    /// It begins with what was sent before.
    pub(super) repeats: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It ends after what is being said.
    End,
    /// It ends in the middle of a word.
    Stop,
    Break,
    Error(u16, &'static str),
}

/// What happens to an answer now.
pub(super) enum Now {
    /// Nothing.
    Go,
    /// Nothing will ever come.
    Never,
    Break,
    /// It is over, as if all had been said.
    Stop,
    /// It is over after what is being said.
    End,
    /// The server gives up and says why.
    LastWord(String),
}

/// Bytes that stand for one part of an answer.
const PART: usize = 173;

impl Line {
    pub(super) fn new(
        client: ClientId,
        generation: u64,
        epoch: u32,
        watch: bool,
        streaming: bool,
        trap: Option<Trap>,
    ) -> Self {
        let bytes = |parts: usize| Some((parts * PART) as u64);
        Self {
            client,
            generation,
            epoch,
            watch,
            initial: streaming,
            over: false,
            fate: None,
            stalled: false,
            break_after: if let Some(Trap::BreakAfter(parts)) = trap { bytes(parts) } else { None },
            stop_after: if let Some(Trap::Malformed(parts)) = trap { bytes(parts) } else { None },
            garble: None,
            slow: None,
            trickle: trap == Some(Trap::Trickle),
            repeats: matches!(trap, Some(Trap::Duplicate(_))),
        }
    }

    /// Whether it shows changes to a client, as far as anybody can tell.
    pub(super) fn is_live(&self, client: ClientId) -> bool {
        self.client == client && self.watch && !self.initial && self.is_open()
    }

    fn is_open(&self) -> bool {
        !self.over && !self.stalled && self.fate.is_none()
    }

    /// Whether a blow means anything to it.
    pub(super) fn fits(&self, blow: Blow) -> bool {
        let for_all = matches!(blow, Blow::Break | Blow::Truncate | Blow::Stall | Blow::Slow(_));
        self.is_open() && (self.watch || for_all) && blow != Blow::Bookmark
    }

    pub(super) fn strike(&mut self, blow: Blow, log: &Log) {
        let fault = match blow {
            Blow::Cut => {
                self.fate = Some(Fate::End);
                Fault::Cut
            }
            Blow::Truncate => {
                self.fate = Some(Fate::Stop);
                Fault::Truncated
            }
            Blow::Break => {
                self.fate = Some(Fate::Break);
                Fault::Broken
            }
            Blow::Stall => {
                self.stalled = true;
                Fault::Stalled
            }
            Blow::Expire => {
                self.fate = Some(Fate::Error(410, "Expired"));
                Fault::ExpiredInStream
            }
            Blow::Error => {
                self.fate = Some(Fate::Error(500, "InternalError"));
                Fault::ErrorInStream
            }
            Blow::Slow(millis) => {
                self.slow = Some(Duration::from_millis(millis));
                Fault::SlowReader
            }
            Blow::Garble { version } => {
                // Counted when it strikes.
                self.garble = Some(version);
                return;
            }
            // The server has its own times for them.
            Blow::Bookmark => return,
        };
        log.strike(fault);
    }
}

impl State {
    /// What happens to an answer of which so many bytes have arrived.
    pub(super) fn now(&mut self, id: u64, arrived: u64, log: &Log) -> Now {
        let generation = self.generation;
        let Some(line) = self.lines.get_mut(&id) else { return Now::Break };
        if line.stalled {
            return Now::Never;
        }
        if line.generation != generation {
            log.strike(Fault::Broken);
            return Now::Break;
        }
        if line.break_after.is_some_and(|after| arrived >= after) {
            log.strike(Fault::Broken);
            return Now::Break;
        }
        if line.stop_after.is_some_and(|after| arrived >= after) {
            log.strike(Fault::Malformed);
            return Now::Stop;
        }
        match line.fate {
            None => Now::Go,
            Some(Fate::Break) => Now::Break,
            Some(Fate::Stop) => Now::Stop,
            Some(Fate::End) => Now::End,
            Some(Fate::Error(code, reason)) => {
                line.fate = Some(Fate::End);
                Now::LastWord(format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", status(code, reason)))
            }
        }
    }

    /// How many bytes may still arrive before something happens.
    pub(super) fn room(&self, id: u64, arrived: u64) -> u64 {
        let line = self.lines.get(&id);
        let bounds = line.into_iter().flat_map(|line| [line.break_after, line.stop_after]).flatten();
        bounds.map(|bound| bound.saturating_sub(arrived)).min().unwrap_or(u64::MAX)
    }
}
