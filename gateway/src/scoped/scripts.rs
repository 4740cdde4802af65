//! The scripts that a scoped token may run.

use std::collections::HashMap;
use std::sync::LazyLock;

use edgelatch_proto::protocol::script::{Script, scripts};

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

/// Returns the script that `EVALSHA` or `EVAL` names; `None` if it is not one of edgelatch's.
pub(super) fn script(verb: &str, text: &str) -> Option<&'static Script> {
    let is_verb = verb.eq_ignore_ascii_case(if is_digest(text) { "EVALSHA" } else { "EVAL" });
    KNOWN.get(text).copied().filter(|_| is_verb)
}

fn is_digest(text: &str) -> bool {
    text.len() == 40
}

#[cfg(test)]
mod tests {
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
}
