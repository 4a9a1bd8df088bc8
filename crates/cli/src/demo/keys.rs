//! Keys of the live view.

use super::actions::Action;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The keys, as the last line shows them.
pub(crate) const HELP: &str = " w cut watches  e expire history  s stall  f fail writes  +/- scale  q quit";

/// The effect of a key press or a resize.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Quit,
    Do(Action),
    /// Draw again after a resize.
    Redraw,
}

/// The command of a terminal event, if it has one.
pub(crate) fn command(event: &Event) -> Option<Command> {
    match event {
        Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) => pressed(*code, *modifiers),
        Event::Resize(..) => Some(Command::Redraw),
        _ => None,
    }
}

fn pressed(code: KeyCode, modifiers: KeyModifiers) -> Option<Command> {
    let command = match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Command::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Command::Quit,
        KeyCode::Char('w') => Command::Do(Action::CutWatches),
        KeyCode::Char('e') => Command::Do(Action::ExpireHistory),
        KeyCode::Char('s') => Command::Do(Action::StallHandler),
        KeyCode::Char('f') => Command::Do(Action::FailWrites),
        KeyCode::Char('+' | '=') => Command::Do(Action::Scale(3)),
        KeyCode::Char('-') => Command::Do(Action::Scale(-3)),
        _ => return None,
    };
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_c_always_quits() {
        let key = |code, modifiers| command(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Command::Quit));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), Some(Command::Quit));
        assert_eq!(command(&Event::Resize(100, 40)), Some(Command::Redraw));
    }
}
