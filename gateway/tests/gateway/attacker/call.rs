//! The library's calls as lists of words, with placeholders for the values that differ between
//! calls.

use edgelatch::Publish;
use edgelatch_proto::protocol::scope::ObjectKind;
use edgelatch_proto::protocol::script::{Script, scripts};
use fastrand::Rng;
use serde_json::{Value, json};
use test_support::calls::{field, owner, request};
use test_support::every_call::{self, LEASE, NOT_AFTER, OWNERS, PEER_SKEW, REQUESTS, TOKEN};

/// One call of a script.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) script: &'static Script,
    pub(crate) keys: Vec<String>,
    pub(crate) args: Vec<String>,
}

impl Call {
    /// Returns the call as a command in JSON.
    pub(crate) fn command(&self) -> Vec<Value> {
        let head = ["EVALSHA", self.script.sha1(false)].map(str::to_owned);
        let words = head.into_iter().chain([self.keys.len().to_string()]);
        words.chain(self.keys.iter().chain(&self.args).cloned()).map(|word| json!(word)).collect()
    }

    /// Replaces a text in all keys and arguments.
    pub(crate) fn replace(&mut self, from: &str, to: &str) {
        for word in self.keys.iter_mut().chain(&mut self.args) {
            *word = word.replace(from, to);
        }
    }
}

/// The values of a call other than its names.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    /// The owner, its previous owner, and its owner on the other side of a read-write lock.
    pub(crate) owners: [String; 3],
    pub(crate) request: String,
    pub(crate) lease: u64,
    /// In milliseconds; `None` leaves the bound out.
    pub(crate) not_after: Option<u64>,
    pub(crate) token: u64,
    pub(crate) peer_skew: u64,
}

/// Returns a random owner.
pub(crate) fn new_owner(rng: &mut Rng) -> String {
    let mut hex = format!("{:032x}", rng.u128(..));
    hex.replace_range(12..13, "8");
    hex.replace_range(16..17, "8");
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    format!("{}:{}", parts.join("-"), rng.u32(..))
}

pub(crate) fn new_request(rng: &mut Rng) -> String {
    format!("{:016x}", rng.u64(..))
}

/// A call that the library makes, on some names.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    /// The kind of object; `None` for a call on objects of every kind.
    pub(crate) kind: Option<ObjectKind>,
    /// The number of names that the call uses.
    pub(crate) width: usize,
    call: Call,
}

impl Template {
    /// Returns every call that the library makes on objects with the first name, and with both.
    pub(crate) fn all(one: &str, two: &str) -> Vec<Self> {
        let calls = every_call::every_call(one, two, Publish::Plain).into_iter();
        let template = |known: every_call::Known| {
            let (keys, args) = known.words();
            let words = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
            let call = Call { script: known.call.script(), keys: words(keys), args: words(args) };
            Self { kind: known.kind, width: known.names.len(), call }
        };
        let mut all: Vec<Self> = calls.map(template).collect();
        let raises: Vec<Self> = all.iter().filter_map(Self::raise).collect();
        all.extend(raises);
        all
    }

    pub(crate) fn script(&self) -> &'static Script {
        self.call.script
    }

    /// Returns the call that raises the token of a grant, for the plain `lock_acquire`. Only the
    /// machine of a red lock makes it.
    fn raise(&self) -> Option<Self> {
        let is_plain = *self.call.script == scripts::LOCK_ACQUIRE && self.call.args.len() == 8;
        let mut args = self.call.args.get(..5).filter(|_| is_plain)?.to_vec();
        args.extend([TOKEN.to_string(), "86400000".to_owned()]);
        let call = Call { script: &scripts::LOCK_RAISE, args, ..self.call.clone() };
        Some(Self { call, ..self.clone() })
    }

    /// Returns the call with these values.
    pub(crate) fn fill(&self, values: &Values) -> Call {
        let mut call = self.call.clone();
        for (number, owner_text) in OWNERS.into_iter().zip(&values.owners) {
            call.replace(&field(&owner(number)), owner_text);
        }
        for number in REQUESTS {
            call.replace(&format!("{number:016x}"), &values.request);
        }
        let not_after = values.not_after.map_or_else(String::new, |time| time.to_string());
        for arg in &mut call.args {
            *arg = match arg.as_str() {
                word if word == LEASE.to_string() => values.lease.to_string(),
                word if word == NOT_AFTER.to_string() => not_after.clone(),
                word if word == TOKEN.to_string() => values.token.to_string(),
                word if word == PEER_SKEW.to_string() => values.peer_skew.to_string(),
                word if is_id(word) => permit(&values.owners[0], word),
                _ => continue,
            };
        }
        call
    }
}

fn is_id(word: &str) -> bool {
    word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the permit id of this owner for one of a template. It is the same in every template.
fn permit(owner: &str, template: &str) -> String {
    let digits: String = owner.chars().filter(char::is_ascii_hexdigit).take(28).collect();
    let last = match &template[28..] {
        "0f0f" => "0000",
        "a0a0" => "0001",
        last => last,
    };
    digits + last
}

#[test]
fn a_request_is_spelt_as_the_library_spells_it() {
    for number in REQUESTS {
        let call = test_support::calls::lock("x").inspect(request(number), None);
        assert_eq!(call.args()[0], format!("{number:016x}"));
    }
}
