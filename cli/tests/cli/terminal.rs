//! The program on a terminal: a pseudo-terminal of the test's own.
//!
//! The program is started as the leader of a session with the terminal, as by a terminal emulator.

use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use test_support::test_env::until;
use tokio::time::Instant;

use crate::support::{Env, PROGRAM, TIME_LIMIT};

/// A terminal with programs.
struct Terminal {
    child: Child,
    keyboard: File,
    output: Receiver<Vec<u8>>,
    shown: String,
}

impl Terminal {
    /// Starts a shell script on a terminal, with the variables of the program.
    fn start(env: &Env, script: &str) -> Self {
        let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&pty).unwrap();
        unlockpt(&pty).unwrap();
        let size = Winsize { ws_row: 20, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&pty, size).unwrap();
        let path = ptsname(&pty, Vec::new()).unwrap().into_string().unwrap();
        // A session leader without a terminal gets the first one that it opens.
        let script = format!("exec <{path} >{path} 2>&1; {script}");
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", &script]).env("TERM", "xterm");
        for (name, value) in env.command(&[]).as_std().get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let keyboard = File::from(pty);
        let output = read(keyboard.try_clone().unwrap());
        Self { child, keyboard, output, shown: String::new() }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the terminal has shown a text.
    async fn until_shown(&mut self, text: &str) {
        self.until_shows(text, |shown| shown.contains(text)).await;
    }

    async fn until_shows(&mut self, what: &str, shows: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + TIME_LIMIT;
        while !shows(&self.shown) {
            let bytes = self.next(deadline).await;
            let bytes = bytes.unwrap_or_else(|| panic!("{what:?} is missing: {:?}", self.shown));
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
    }

    /// Reads on a thread, so that the gateway of the test goes on.
    async fn next(&mut self, deadline: Instant) -> Option<Vec<u8>> {
        loop {
            match self.output.try_recv() {
                Ok(bytes) => return Some(bytes),
                Err(mpsc::TryRecvError::Disconnected) => return None,
                Err(mpsc::TryRecvError::Empty) => {}
            }
            assert!(Instant::now() < deadline, "{:?}", self.shown);
            tokio::task::yield_now().await;
        }
    }

    /// Waits until a script has shown two process ids as `ids=1,2.`; returns them.
    async fn ids(&mut self) -> [Pid; 2] {
        let ids = |shown: &str| Some(shown.split_once("ids=")?.1.split_once('.')?.0.to_owned());
        self.until_shows("ids=", |shown| ids(shown).is_some()).await;
        let ids = ids(&self.shown).unwrap();
        let (one, two) = ids.split_once(',').unwrap();
        [one, two].map(|id| Pid::from_raw(id.parse().unwrap()).unwrap())
    }

    /// Waits for the end of the script; returns everything that the terminal has shown.
    async fn end(mut self) -> String {
        let deadline = Instant::now() + TIME_LIMIT;
        while let Some(bytes) = self.next(deadline).await {
            self.shown.push_str(&String::from_utf8_lossy(&bytes));
        }
        self.child.wait().unwrap();
        std::mem::take(&mut self.shown)
    }
}

/// The state of a process, as a letter.
fn state(process: Pid) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Reads a terminal until its last program has ended.
fn read(mut terminal: File) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            match terminal.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
                Ok(length) if sender.send(buffer[..length].to_vec()).is_err() => break,
                Ok(_) => {}
            }
        }
    });
    receiver
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The end of a script: prints the exit code of the program.
const CODE: &str = "; echo code=$?";

fn program(args: &str) -> String {
    format!("{PROGRAM} {args}")
}

#[tokio::test]
async fn watch_shows_the_lock_until_a_key_ends_it() {
    let env = Env::start().await;
    let mut holder = env.spawn(&["run", "job", "--", "sh", "-c", "echo ready; read line"]);
    holder.until_line("ready").await;
    let mut terminal = Terminal::start(&env, &(program("watch job") + CODE));
    // The view moves the cursor over blanks.
    for word in ["job", "held", "Holder", "Remaining", "Fencing", "quit"] {
        terminal.until_shown(word).await;
    }
    terminal.press("q");
    assert!(terminal.end().await.contains("code=0"));
    holder.end().await.assert(1, "");
}

#[tokio::test]
async fn the_command_reads_from_the_terminal() {
    let env = Env::start().await;
    let run = program("run job -- sh -c 'echo ready; read line; echo got $line'");
    let mut terminal = Terminal::start(&env, &(run + CODE));
    terminal.until_shown("ready").await;
    terminal.press("hello\n");
    let shown = terminal.end().await;
    assert!(shown.contains("got hello") && shown.contains("code=0"), "{shown:?}");
}

#[tokio::test]
async fn ctrl_c_ends_the_command_and_the_lock_is_released() {
    let env = Env::start().await;
    let run = program("run -v job -- sh -c 'echo ready; exec sleep 1000'");
    let mut terminal = Terminal::start(&env, &format!("trap : INT; {run}{CODE}"));
    terminal.until_shown("ready").await;
    terminal.press("\x03");
    let shown = terminal.end().await;
    assert!(shown.contains("released") && shown.contains("code=130"), "{shown:?}");
    assert!(!env.exists("job").await);
}

#[tokio::test]
async fn the_wait_is_shown_until_it_ends() {
    let env = Env::start().await;
    let mut holder = env.spawn(&["run", "job", "--", "sh", "-c", "echo ready; read line"]);
    holder.until_line("ready").await;
    let run = program("run --forever job -- echo never");
    let mut terminal = Terminal::start(&env, &format!("trap : INT; {run}{CODE}"));
    terminal.until_shown("waiting for the lock \"job\"").await;
    terminal.press("\x03");
    let shown = terminal.end().await;
    assert!(shown.contains("cancelled") && shown.contains("code=130"), "{shown:?}");
    assert!(!shown.contains("never"), "{shown:?}");
    holder.end().await.assert(1, "");
}

#[tokio::test]
async fn ctrl_c_reaches_the_command_once() {
    let env = Env::start().await;
    let work = r#"trap "echo int" INT; trap "exit 4" QUIT; echo ready; while :; do sleep 1000 & wait $!; done"#;
    let run = program(&format!("run job -- sh -c '{work}'"));
    // The shell of the terminal is in the same group and must survive the keys.
    let mut terminal = Terminal::start(&env, &format!("trap : INT QUIT; {run}{CODE}"));
    terminal.until_shown("ready").await;
    terminal.press("\x03");
    terminal.until_shown("int").await;
    terminal.press("\x1c");
    let shown = terminal.end().await;
    assert!(shown.contains("code=4"), "{shown:?}");
    assert_eq!(shown.matches("int").count(), 1, "{shown:?}");
    assert!(!env.exists("job").await);
}

/// On a busy machine the program may notice the keys only after the command has ended.
#[tokio::test]
async fn keys_that_the_command_was_sent_do_not_end_the_release() {
    let env = Env::start().await;
    let work = r#"trap "echo int" INT; trap "exit 4" QUIT; echo ids=$PPID,$$.; while :; do sleep 1000 & wait $!; done"#;
    let run = program(&format!("run -v --lease 1h job -- sh -c '{work}'"));
    let mut terminal = Terminal::start(&env, &format!("trap : INT QUIT; {run}{CODE}"));
    let [run, command] = terminal.ids().await;
    kill_process(run, Signal::STOP).unwrap();
    terminal.press("\x03");
    terminal.until_shown("^Cint").await;
    terminal.press("\x1c");
    // The program has not read the exit code of the command.
    until(async || state(command) == Some('Z')).await;
    kill_process(run, Signal::CONT).unwrap();
    let shown = terminal.end().await;
    assert!(shown.contains("released") && shown.contains("code=4"), "{shown:?}");
    assert!(!env.exists("job").await);
}
