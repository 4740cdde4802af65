//! The live view on a terminal.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use tokio::sync::mpsc;
use tokio::{select, time};

use super::screen::Screen;
use super::{News, Snapshot};
use crate::clock;
use crate::exit::Failure;
use crate::signals::{Signal, Signals};

/// The time between two frames.
const FRAME: Duration = Duration::from_millis(100);

/// Shows snapshots until a key or a signal ends it. Returns the exit code.
pub(super) async fn run(
    first: Snapshot,
    mut news: mpsc::Receiver<News>,
    signals: &mut Signals,
) -> Result<u8, Failure> {
    let mut terminal = ratatui::try_init()?;
    let code = show(&mut terminal, Screen::new(first), &mut news, signals).await;
    ratatui::restore();
    Ok(code?)
}

async fn show(
    terminal: &mut DefaultTerminal,
    mut screen: Screen,
    news: &mut mpsc::Receiver<News>,
    signals: &mut Signals,
) -> io::Result<u8> {
    loop {
        while let Ok(result) = news.try_recv() {
            screen.on_news(result);
        }
        let now = clock::now();
        terminal.draw(|frame| screen.draw(frame, now))?;
        while event::poll(Duration::ZERO)? {
            if let Some(code) = end(&event::read()?) {
                return Ok(code);
            }
        }
        select! {
            signal = signals.end() => return Ok(signal.exit_code()),
            () = time::sleep(FRAME) => {}
        }
    }
}

/// Returns the exit code if the event ends the view. A terminal in raw mode sends no signal for a
/// key.
fn end(event: &Event) -> Option<u8> {
    let key = event.as_key_press_event()?;
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Some(0),
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            Some(Signal::Interrupt.exit_code())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn keys_end_the_view() {
        let key = |code, modifiers| end(&Event::Key(KeyEvent::new(code, modifiers)));
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), Some(0));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(130));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
        assert_eq!(end(&Event::Resize(1, 1)), None);
    }
}
