//! Keys of the live view.

use super::switches::Switch;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// The keys, as the last line shows them.
pub(crate) const HELP: &str = " w cut watches  e expire history  s stall  f fail writes  +/- scale  q quit";

/// What a key press asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Quit,
    Turn(Switch),
    /// Nothing but to draw again, as after a resize.
    Redraw,
}

/// What is asked for, if anything.
pub(crate) fn wish(event: &Event) -> Option<Wish> {
    match event {
        Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) => pressed(*code, *modifiers),
        Event::Resize(..) => Some(Wish::Redraw),
        _ => None,
    }
}

fn pressed(code: KeyCode, modifiers: KeyModifiers) -> Option<Wish> {
    let wish = match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Wish::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Wish::Quit,
        KeyCode::Char('w') => Wish::Turn(Switch::CutWatches),
        KeyCode::Char('e') => Wish::Turn(Switch::ExpireHistory),
        KeyCode::Char('s') => Wish::Turn(Switch::StallHandler),
        KeyCode::Char('f') => Wish::Turn(Switch::FailWrites),
        KeyCode::Char('+' | '=') => Wish::Turn(Switch::Scale(3)),
        KeyCode::Char('-') => Wish::Turn(Switch::Scale(-3)),
        _ => return None,
    };
    Some(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_c_always_quits() {
        let key = |code, modifiers| wish(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Wish::Quit));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), Some(Wish::Quit));
        assert_eq!(wish(&Event::Resize(100, 40)), Some(Wish::Redraw));
    }
}
