//! A caller's own script, which runs only while a lease is held.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::{IdempotentCall, Target};
use crate::error::InvalidOption;
use crate::name::{FencingToken, OwnerId};
use crate::protocol::key;
use crate::protocol::script::{Publish, scripts};
use crate::protocol::slot::slot;

/// A caller's script, with its keys and arguments.
///
/// It is the body of a function: `KEYS` and `ARGV` are its own, counted from 1, and its return
/// value is the result. The result is converted to JSON: numbers, strings, lists, tables with
/// names; `nil` and `false` become `null`, a status such as `OK` a string. The writes of a script
/// that fails are not undone, since Redis undoes nothing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct UserScript {
    text: Arc<str>,
    keys: Vec<String>,
    args: Vec<String>,
    once: bool,
}

/// Omits text, keys and arguments.
impl core::fmt::Debug for UserScript {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("UserScript(..)")
    }
}

impl UserScript {
    /// The longest text, in bytes.
    pub const TEXT_MAX: usize = 65_536;

    /// The largest number of keys and arguments together.
    pub const WORDS_MAX: usize = 4_000;

    /// The largest result, in bytes of its JSON. A larger one is reported as a failure of a script
    /// that has run.
    pub const RESULT_MAX: usize = 30_000;

    /// Creates a script that Redis executes once, however often it is sent.
    ///
    /// # Errors
    /// [`InvalidOption`] when the text is empty or too long, or when there are too many keys and
    /// arguments.
    pub fn new(text: &str, keys: Vec<String>, args: Vec<String>) -> Result<Self, InvalidOption> {
        if text.trim().is_empty() || text.len() > Self::TEXT_MAX {
            return Err(InvalidOption::new("script", "1 to 65536 bytes of Lua"));
        }
        if keys.len() + args.len() > Self::WORDS_MAX {
            return Err(InvalidOption::new("keys", "at most 4000 keys and arguments together"));
        }
        Ok(Self { text: text.into(), keys, args, once: true })
    }

    /// Marks a script that does no harm when it runs twice. Nothing is recorded, which saves Redis
    /// two writes; every copy of the request may be executed.
    #[must_use]
    pub fn repeatable(self) -> Self {
        Self { once: false, ..self }
    }
}

impl Target {
    /// Builds the request that runs `script` while `owner` holds this object by the grant of
    /// `token`, and is refused otherwise.
    ///
    /// In a Redis Cluster the script's keys must be in the slot of the object's name, as
    /// `{invoice:42}:total` is in that of `invoice:42`. This rule applies to every Redis, so
    /// that a program does not break when its Redis becomes a cluster.
    ///
    /// # Errors
    /// [`InvalidOption`] for a key in another slot, or if the object is not a lock: holders of
    /// permits do not exclude each other.
    pub fn eval(
        &self,
        owner: OwnerId,
        token: FencingToken,
        script: &UserScript,
    ) -> Result<IdempotentCall, InvalidOption> {
        let Some(hold) = self.hold(owner) else {
            return Err(InvalidOption::new("lease", "one of a lock"));
        };
        let home = slot(self.name().as_str());
        for (place, key) in (1..).zip(&script.keys) {
            let elsewhere = slot(key);
            if elsewhere != home {
                let place: u64 = place;
                let accepted = [
                    "keys in slot ",
                    &u64::from(home).to_string(),
                    " of a Redis Cluster, where the lock is: key ",
                    &place.to_string(),
                    " is in slot ",
                    &u64::from(elsewhere).to_string(),
                ]
                .concat();
                return Err(InvalidOption::new("keys", accepted));
            }
        }
        let mut keys = vec![key::latch(self.name(), owner)];
        keys.extend_from_slice(&hold.keys);
        keys.extend_from_slice(&script.keys);
        let call =
            IdempotentCall::new(&scripts::EVAL, self.name().clone(), Publish::default(), keys)
                .with_own(Arc::clone(&script.text))
                .arg(token.to_text())
                .arg(if script.once { "1" } else { "0" })
                .arg((UserScript::RESULT_MAX as u64).to_string())
                .arg(hold.value)
                .arg((hold.keys.len() as u64).to_string())
                .arg((hold.fields.len() as u64).to_string());
        Ok(hold.fields.iter().chain(&script.args).fold(call, IdempotentCall::arg))
    }

    /// The fields in Redis that prove that `owner` holds this; `None` for permits, and for a fair
    /// read-write lock, whose holds are no fields.
    fn hold(&self, owner: OwnerId) -> Option<Hold> {
        let of = |keys, field| Some(Hold { keys, fields: vec![field], value: "1".into() });
        let name = || vec![key::lock(self.name())];
        match self {
            Self::Lock(calls) => {
                let keys = calls.members().map(|member| key::lock(&member.name)).collect();
                of(keys, owner.to_text())
            }
            Self::Fair(_) | Self::Read(_) => of(name(), owner.to_text()),
            Self::Write(_) => of(name(), key::write_field(owner)),
            Self::Group(calls) => {
                let fields = calls.fields().to_vec();
                Some(Hold { keys: name(), fields, value: owner.to_text() })
            }
            Self::Semaphore(_) | Self::Permits(_) | Self::FairReadWrite(_) => None,
        }
    }
}

/// The fields that each of these hashes contains while the object is held, and their value.
struct Hold {
    keys: Vec<String>,
    fields: Vec<String>,
    value: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::LockName;
    use crate::protocol::calls::LockCalls;
    use alloc::format;

    fn eval(lock: &str, keys: &[&str]) -> Result<IdempotentCall, InvalidOption> {
        let target = Target::Lock(LockCalls::new(LockName::parse(lock).unwrap(), Publish::Plain));
        let keys = keys.iter().map(ToString::to_string).collect();
        let script = UserScript::new("return 1", keys, Vec::new()).unwrap();
        target.eval(OwnerId::new([0; 16], 1), FencingToken::MAX, &script)
    }

    #[test]
    fn a_key_in_another_slot_is_refused_by_its_number() {
        assert!(eval("invoice:42", &[]).is_ok());
        assert!(eval("invoice:42", &["{invoice:42}:total", "invoice:42"]).is_ok());
        assert!(eval("a{b}", &["{b}c"]).is_ok());
        let error = eval("foo", &["foo", "bar"]).unwrap_err();
        assert_eq!(error.option(), "keys");
        assert!(error.accepted().ends_with("key 2 is in slot 5061"), "{error}");
        assert!(error.accepted().contains("slot 12182"), "{error}");
    }

    #[test]
    fn a_script_without_text_or_with_too_many_words_is_refused() {
        let words = |count| vec![String::new(); count];
        for text in ["", " \n", &"-".repeat(65_537)] {
            assert_eq!(UserScript::new(text, words(0), words(0)).unwrap_err().option(), "script");
        }
        assert!(UserScript::new("return 1", words(2_000), words(2_000)).is_ok());
        assert_eq!(
            UserScript::new("return 1", words(1), words(4_000)).unwrap_err().option(),
            "keys"
        );
    }

    #[test]
    fn neither_text_nor_value_shows() {
        let script = UserScript::new("return 'secret'", Vec::new(), Vec::new()).unwrap();
        assert_eq!(format!("{script:?}"), "UserScript(..)");
    }
}
