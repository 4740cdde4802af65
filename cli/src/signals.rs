//! The signals that the program handles.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::Signal as Number;
use tokio::signal::unix::{self, SignalKind};

use crate::platform;

/// A signal that is forwarded to the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    HangUp,
    Interrupt,
    Quit,
    Terminate,
    User1,
    User2,
}

impl Signal {
    const ALL: [Self; 6] =
        [Self::HangUp, Self::Interrupt, Self::Quit, Self::Terminate, Self::User1, Self::User2];

    pub(crate) const fn number(self) -> Number {
        match self {
            Self::HangUp => Number::HUP,
            Self::Interrupt => Number::INT,
            Self::Quit => Number::QUIT,
            Self::Terminate => Number::TERM,
            Self::User1 => Number::USR1,
            Self::User2 => Number::USR2,
        }
    }

    /// Whether the signal asks a program to end.
    pub(crate) const fn is_end(self) -> bool {
        !matches!(self, Self::User1 | Self::User2)
    }

    /// Whether a terminal sends the signal for a key, to all programs in the foreground.
    pub(crate) const fn is_key(self) -> bool {
        matches!(self, Self::Interrupt | Self::Quit)
    }

    /// The exit code of a program that this signal has ended, as shells report it.
    pub(crate) fn exit_code(self) -> u8 {
        u8::try_from(128 + self.number().as_raw()).unwrap_or(u8::MAX)
    }
}

/// The handlers of all signals, except those that were ignored when the program was started:
/// `nohup` ignores the hang-up for the command too.
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let handled =
            Signal::ALL.into_iter().filter(|signal| !platform::is_ignored(signal.number()));
        let handler = |signal: Signal| {
            let handler = unix::signal(SignalKind::from_raw(signal.number().as_raw()))?;
            Ok((signal, handler))
        };
        handled.map(handler).collect::<io::Result<_>>().map(Self)
    }

    /// Waits for the next signal. Dropping the future loses none.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|cx| {
            for (signal, handler) in &mut self.0 {
                if handler.poll_recv(cx).is_ready() {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Forgets the signals that have arrived.
    pub(crate) async fn forget(&mut self) {
        poll_fn(|cx| {
            for (_, handler) in &mut self.0 {
                while handler.poll_recv(cx).is_ready() {}
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Waits for the next signal that asks the program to end.
    pub(crate) async fn end(&mut self) -> Signal {
        loop {
            let signal = self.next().await;
            if signal.is_end() {
                return signal;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_those_of_shells() {
        assert_eq!(Signal::Interrupt.exit_code(), 130);
        assert_eq!(Signal::Terminate.exit_code(), 143);
    }
}
