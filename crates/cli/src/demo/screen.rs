//! The live view of the demo.

mod draw;

use super::{
    actions::Actions,
    keys::{Command, command},
    sample::Observer,
};
use ratatui::crossterm::event;
use std::time::Duration;
use tokio::sync::mpsc;

const EVERY: Duration = Duration::from_millis(250);
/// Pending key presses; further ones are dropped.
const KEYS: usize = 16;
/// Journal lines that fit on the tallest screens.
const LINES: usize = 100;

/// Restores the terminal when dropped.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Draws until the user quits.
pub(crate) async fn show(mut observer: Observer, mut actions: Actions) -> anyhow::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let _restore = Restore;
    let mut commands = commands();
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        let sample = observer.sample(LINES);
        terminal.draw(|frame| draw::draw(frame, &sample))?;
        tokio::select! {
            _ = ticks.tick() => {}
            command = commands.recv() => match command {
                Some(Command::Do(action)) => actions.run(action).await,
                Some(Command::Redraw) => {}
                Some(Command::Quit) | None => return Ok(()),
            },
        }
    }
}

/// Reads the keyboard in a thread, which ends with the process.
fn commands() -> mpsc::Receiver<Command> {
    let (sender, receiver) = mpsc::channel(KEYS);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            let Some(command) = command(&event) else { continue };
            if sender.blocking_send(command).is_err() {
                return;
            }
        }
    });
    receiver
}
