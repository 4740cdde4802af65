//! The scripts of edgelatch, among the commands that clients send.

use std::collections::HashMap;
use std::sync::LazyLock;

use edgelatch_proto::protocol::script::{Script, scripts};
use redis::{Cmd, Value};

use crate::command::{from_words, words};

/// The scripts by the word that identifies them in a command: the digest, or the whole text, each
/// with and without the line for key locking.
static KNOWN: LazyLock<HashMap<String, &'static Script>> = LazyLock::new(|| {
    let named = scripts::ALL.into_iter().flat_map(|script| {
        [true, false].into_iter().flat_map(move |key_locking| {
            let digest = script.sha1(key_locking).to_owned();
            [(digest, script), (script.source(key_locking), script)]
        })
    });
    named.collect()
});

/// The length of the longest text in [`KNOWN`]: a longer one, which is not hashed, is none of them.
static LONGEST: LazyLock<usize> =
    LazyLock::new(|| KNOWN.keys().map(String::len).max().unwrap_or_default());

/// Returns the script that `EVALSHA` or `EVAL` names; `None` if it is not one of edgelatch's.
pub(crate) fn script(verb: &str, text: &str) -> Option<&'static Script> {
    let is_verb = verb.eq_ignore_ascii_case(if is_digest(text) { "EVALSHA" } else { "EVAL" });
    if is_verb && text.len() <= *LONGEST { KNOWN.get(text).copied() } else { None }
}

/// Returns the `EVAL` to send instead of an `EVALSHA` of edgelatch's scripts to which Redis replied
/// that it does not know the script, as after a start of Redis. `None` for any other command or
/// reply.
pub(crate) fn with_text(command: &Cmd, reply: &Value) -> Option<Cmd> {
    if !matches!(reply, Value::ServerError(error) if error.code() == "NOSCRIPT") {
        return None;
    }
    let mut head = words(command).map_while(|word| str::from_utf8(word).ok());
    let (verb, digest) = (head.next()?, head.next()?);
    let script = script(verb, digest).filter(|_| is_digest(digest))?;
    let source = script.source(digest == script.sha1(true));
    from_words([b"EVAL", source.as_bytes()].into_iter().chain(words(command).skip(2))).ok()
}

/// The scripts that on an object at its limits take Redis longer than about a millisecond, and how
/// many times as long: the table `blocks-scripts` of docs/performance.md.
const LONG: [(&str, usize); 3] =
    [("fair_acquire", 4), ("group_acquire", 2), ("semaphore_inspect", 2)];
/// How many times as long it takes to clear a semaphore, the place of the operation's name in the
/// command, and that name.
const CLEAR: (usize, usize, &str) = (4, 12, "clear");

/// Returns how many ordinary commands take Redis as long as this command at most, apart from its
/// words and names.
pub(crate) fn time_of(command: &Cmd) -> usize {
    let mut head = words(command).map_while(|word| str::from_utf8(word).ok());
    let (Some(verb), Some(text)) = (head.next(), head.next()) else { return 1 };
    let Some(script) = script(verb, text) else { return 1 };
    let (times, place, operation) = CLEAR;
    let is_clear = || words(command).nth(place) == Some(operation.as_bytes());
    if script.name == "semaphore_change" && is_clear() {
        return times;
    }
    LONG.iter().find(|(name, _)| *name == script.name).map_or(1, |(_, times)| *times)
}

fn is_digest(text: &str) -> bool {
    text.len() == 40
}

#[cfg(test)]
mod tests {
    use edgelatch_proto::protocol::script::scripts::LATCH_INSPECT;
    use redis::parse_redis_value;

    use super::*;

    #[test]
    fn a_script_is_known_by_digest_and_text_and_no_other_is() {
        for known in scripts::ALL {
            for key_locking in [true, false] {
                let (digest, source) = (known.sha1(key_locking), known.source(key_locking));
                assert_eq!(script("EVALSHA", digest), Some(known));
                assert_eq!(script("eval", &source), Some(known));
                assert_eq!(script("EVAL", digest), None);
                assert_eq!(script("EVALSHA", &source), None);
                assert_eq!(script("EVALSHA", &digest.to_uppercase()), None);
                assert_eq!(script("EVAL_RO", &source), None);
                assert_eq!(script("EVAL", &(source.clone() + "\n")), None);
                assert_eq!(script("EVAL", source.trim_end()), None);
            }
        }
        assert_eq!(script("EVAL", "return 1"), None);
        assert_eq!(script("EVALSHA", &"0".repeat(40)), None);
    }

    #[test]
    fn only_an_unknown_script_of_edgelatch_is_sent_as_text() {
        let reply = |text: &str| parse_redis_value(text.as_bytes()).unwrap();
        let unknown = reply("-NOSCRIPT No matching script\r\n");
        let packed = |words: &[&str]| from_words(words).unwrap().get_packed_command();
        let resent = |words: &[&str], reply: &Value| {
            with_text(&from_words(words).unwrap(), reply)
                .map(|command| command.get_packed_command())
        };
        for key_locking in [true, false] {
            let digest = LATCH_INSPECT.sha1(key_locking);
            let text = resent(&["evalsha", digest, "1", "gate", "a", ""], &unknown);
            let source = LATCH_INSPECT.source(key_locking);
            assert_eq!(text, Some(packed(&["EVAL", &source, "1", "gate", "a", ""])));
            for other in ["-ERR no\r\n", "+NOSCRIPT\r\n", "$-1\r\n"] {
                assert_eq!(resent(&["EVALSHA", digest, "0"], &reply(other)), None);
            }
            assert_eq!(resent(&["EVAL", &source, "0"], &unknown), None);
            assert_eq!(resent(&["GET", digest], &unknown), None);
        }
        assert_eq!(resent(&["EVALSHA", &"0".repeat(40), "0"], &unknown), None);
        assert_eq!(resent(&["EVALSHA"], &unknown), None);
    }

    #[test]
    fn a_slow_script_counts_as_several_commands() {
        let time = |words: &[&str]| time_of(&from_words(words).unwrap());
        let time_of_script = |name: &str, rest: &[&str]| {
            let script = scripts::ALL.into_iter().find(|script| script.name == name).unwrap();
            time(&[&["EVALSHA", script.sha1(false)], rest].concat())
        };
        for (name, times) in LONG {
            assert_eq!(time_of_script(name, &["1"]), times);
        }
        let change = ["4", "record", "name", "held", "channel", "id", "", "0", "P", "60000"];
        assert_eq!(time_of_script("semaphore_change", &[&change[..], &["clear"]].concat()), 4);
        assert_eq!(time_of_script("semaphore_change", &[&change[..], &["drain"]].concat()), 1);
        assert_eq!(time_of_script("lock_acquire", &[]), 1);
        assert_eq!(time(&["GET", "clear"]), 1);
        assert_eq!(time(&["GET"]), 1);
    }
}
