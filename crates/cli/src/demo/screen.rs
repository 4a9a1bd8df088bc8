//! The demo on a terminal.

mod draw;

use super::{
    keys::{Wish, wish},
    sample::Observer,
    switches::Switches,
};
use ratatui::crossterm::event;
use std::time::Duration;
use tokio::sync::mpsc;

const EVERY: Duration = Duration::from_millis(250);
/// Key presses waiting to be heard; more are lost, which a person can repeat.
const KEYS: usize = 16;
/// Journal lines that fit on the tallest screens.
const LINES: usize = 100;

/// The terminal goes back to what it was, however this ends.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Draws until somebody quits.
pub(crate) async fn show(mut observer: Observer, mut switches: Switches) -> anyhow::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let _restore = Restore;
    let mut wishes = wishes();
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        let sample = observer.sample(LINES);
        terminal.draw(|frame| draw::draw(frame, &sample))?;
        tokio::select! {
            _ = ticks.tick() => {}
            wish = wishes.recv() => match wish {
                Some(Wish::Turn(switch)) => switches.turn(switch).await,
                Some(Wish::Redraw) => {}
                Some(Wish::Quit) | None => return Ok(()),
            },
        }
    }
}

/// Reads the keyboard in a thread of its own, which ends with the process.
fn wishes() -> mpsc::Receiver<Wish> {
    let (sender, receiver) = mpsc::channel(KEYS);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            let Some(wish) = wish(&event) else { continue };
            if sender.blocking_send(wish).is_err() {
                return;
            }
        }
    });
    receiver
}
