//! The checked options of `edgelatch run`.

use std::ffi::OsString;
use std::time::Duration;

use edgelatch::AcquireOptions;
use edgelatch::timing::LeaseTime;

use crate::args::{HeldKind, RunArgs};
use crate::exit::{Exit, Failure};
use crate::wait::Wait;

/// The checked options of `run`.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) kind: HeldKind,
    pub(super) permits: u32,
    pub(super) name: String,
    pub(super) wait: Wait,
    pub(super) lease: Duration,
    pub(super) grace: Duration,
    pub(super) busy_code: u8,
    pub(super) is_verbose: bool,
    pub(super) command: Vec<OsString>,
}

impl Plan {
    pub(super) fn new(args: RunArgs) -> Result<Self, Failure> {
        if args.permits.is_some() && args.kind != HeldKind::Semaphore {
            let message = "--permits needs --kind semaphore";
            return Err(Failure::new(Exit::Usage, message));
        }
        Ok(Self {
            kind: args.kind,
            permits: args.permits.unwrap_or(1),
            name: args.name,
            wait: args.wait.into(),
            lease: args.lease,
            grace: args.grace,
            busy_code: args.conflict_exit_code,
            is_verbose: args.verbose,
            command: args.command,
        })
    }

    /// The options of the acquisition.
    pub(super) fn options(&self) -> AcquireOptions {
        let options = AcquireOptions::new();
        // A lease of the default length is renewed by the client itself, together with others.
        let is_default = LeaseTime::new(self.lease).is_ok_and(|lease| lease == LeaseTime::DEFAULT);
        self.wait.apply(if is_default { options.renewed() } else { options.lease(self.lease) })
    }

    /// The object of the wait, for people.
    pub(super) fn subject(&self) -> String {
        match self.kind {
            HeldKind::Lock | HeldKind::Fair => format!("the lock {:?}", self.name),
            HeldKind::Semaphore if self.permits == 1 => format!("a permit of {:?}", self.name),
            HeldKind::Semaphore => format!("{} permits of {:?}", self.permits, self.name),
        }
    }

    /// The reason of a refusal, for people.
    pub(super) fn obstacle(&self) -> String {
        match self.kind {
            HeldKind::Lock | HeldKind::Fair => format!("another client holds {}", self.subject()),
            HeldKind::Semaphore => format!("too few permits of {:?} are available", self.name),
        }
    }

    /// The message about a semaphore that does not exist.
    pub(super) fn no_semaphore(&self) -> String {
        let name = &self.name;
        format!("there is no semaphore {name:?}; create it with `edgelatch semaphore set`")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    fn plan(words: &[&str]) -> Result<Plan, Failure> {
        let words = [&["edgelatch", "run"], words, &["job", "--", "true"]].concat();
        let Command::Run(args) = Args::parse_from(words).command else { panic!("another command") };
        Plan::new(args)
    }

    #[test]
    fn without_flags_a_lock_is_waited_for_half_a_minute() {
        let plan = plan(&[]).unwrap();
        assert_eq!(plan.wait, Wait::UpTo(Duration::from_secs(30)));
        assert_eq!((plan.kind, plan.busy_code), (HeldKind::Lock, 75));
    }

    #[test]
    fn each_flag_of_a_wait_is_kept() {
        assert_eq!(plan(&["-n"]).unwrap().wait, Wait::Once);
        assert_eq!(plan(&["--forever"]).unwrap().wait, Wait::Forever);
        assert_eq!(plan(&["--wait", "2m"]).unwrap().wait, Wait::UpTo(Duration::from_secs(120)));
    }

    #[test]
    fn only_a_semaphore_has_permits() {
        assert_eq!(plan(&["--permits", "2"]).unwrap_err().code, Exit::Usage.code());
        assert_eq!(plan(&["--permits", "2", "--kind", "semaphore"]).unwrap().permits, 2);
        assert_eq!(plan(&["--kind", "semaphore"]).unwrap().permits, 1);
    }

    #[test]
    fn messages_name_the_object_of_the_wait() {
        let lock = plan(&["--kind", "fair"]).unwrap();
        assert_eq!(lock.obstacle(), "another client holds the lock \"job\"");
        let permit = plan(&["--kind", "semaphore"]).unwrap();
        assert_eq!(permit.subject(), "a permit of \"job\"");
        assert_eq!(permit.obstacle(), "too few permits of \"job\" are available");
    }
}
