//! Random votes of one node of a red lock, on a real Redis and on the model, compared after each.

use edgelatch_proto::name::LockName;
use edgelatch_proto::protocol::calls::{LockCalls, Member};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::protocol::script::{Publish, ScriptCall};
use proptest::collection::vec;
use proptest::prelude::*;

use super::coverage::run_all;
use super::pair::Pair;
use super::steps::Aloud;
use crate::scripts::red_lock_tokens::{TOKEN_KEY, acquire_for, raise_for};
use test_support::calls::{announced_lock, bound, request};
use test_support::script_model::Value;

/// All codes of a vote, and of the forced release that ends it.
const VERDICTS: [(&str, &[Code]); 3] = [
    ("lock_acquire", &[Code::Done, Code::AlreadyYours, Code::No, Code::Late, Code::TokenRange]),
    ("lock_raise", &[Code::Done, Code::Late, Code::Lost, Code::TokenAhead]),
    ("lock_force_release", &[Code::Done, Code::No]),
];
/// The token that a voter without a grant claims to have.
const NEVER: u64 = 9;

#[derive(Clone, Debug)]
enum Step {
    /// With a proposal by a clock that is this far ahead, if any.
    Acquire {
        who: u8,
        ahead: Option<i64>,
    },
    /// By a voter that knew such a clock, to a token larger than its grant by `by`.
    Raise {
        who: u8,
        ahead: Option<i64>,
        by: u64,
    },
    Clear {
        id: u64,
    },
    Token {
        value: u64,
    },
    Touch {
        of: usize,
        away: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let who = 1..4_u8;
    let ahead = || {
        let late = -40_000_000;
        proptest::sample::select(vec![None, Some(0), Some(900), Some(8_000), Some(late)])
    };
    let by = proptest::sample::select(vec![1, 1_000, 5_000_000, 120_000_000_u64]);
    let value = proptest::sample::select(vec![1, 5_000_000_000_000_000, (1 << 53) - 1]);
    prop_oneof![
        8 => (who.clone(), ahead()).prop_map(|(who, ahead)| Step::Acquire { who, ahead }),
        8 => (who, ahead(), by).prop_map(|(who, ahead, by)| Step::Raise { who, ahead, by }),
        2 => (1..99_u64).prop_map(|id| Step::Clear { id }),
        1 => value.prop_map(|value| Step::Token { value }),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(of, away)| Step::Touch { of, away }),
    ]
}

#[test]
fn random_votes_do_to_a_node_what_they_do_to_the_model() {
    let channel = "redisson_lock__channel:{job}".to_owned();
    let given = (any::<bool>(), Aloud::any(), vec(step(), 1..40));
    run_all(&VERDICTS, &[channel], &given, async |redis, (fenced, aloud, steps), replies| {
        let member = Member { name: LockName::parse("job").unwrap(), fenced };
        let node = LockCalls::of_several(member, Vec::new(), aloud.publish);
        let mut votes = Votes {
            pair: Pair::new(redis).await,
            publish: aloud.publish,
            node,
            grants: [NEVER; 3],
        };
        for step in &steps {
            replies.extend(votes.take(step).await);
        }
    });
}

/// The objects of the steps.
struct Votes<'a> {
    pair: Pair<'a>,
    publish: Publish,
    node: LockCalls,
    /// The newest token of each voter.
    grants: [u64; 3],
}

impl Votes<'_> {
    async fn take(&mut self, step: &Step) -> Option<(&'static str, Code)> {
        let what = format!("{step:?}");
        let call = match step {
            Step::Acquire { who, ahead } => {
                acquire_for(*who, self.node.clone(), self.clock(*ahead))
            }
            Step::Raise { who, ahead, by } => self.raise(*who, *ahead, *by),
            Step::Clear { id } => {
                let bound = bound(self.pair.now() + 600_000, 90_000);
                announced_lock("job", self.publish).force_release(request(*id), bound)
            }
            Step::Token { value } => {
                self.pair.write(TOKEN_KEY, Value::Text(value.to_string()), None).await;
                self.pair.compare_keys(&what).await;
                return None;
            }
            Step::Touch { of, away } => {
                self.pair.touch(*of, *away).await;
                self.pair.compare_keys(&what).await;
                return None;
            }
        };
        let reply = self.pair.call(&call, &what).await;
        if let Step::Acquire { who, .. } | Step::Raise { who, .. } = step
            && matches!(reply.code, Code::Done | Code::AlreadyYours)
        {
            self.grants[usize::from(*who) - 1] = reply.value.parse().unwrap();
        }
        Some((call.script().name, reply.code))
    }

    fn clock(&self, ahead: Option<i64>) -> Option<u64> {
        ahead.map(|ms| self.pair.now().saturating_add_signed(ms))
    }

    fn raise(&self, who: u8, ahead: Option<i64>, by: u64) -> ScriptCall {
        let token = self.grants[usize::from(who) - 1];
        // No vote raises a token beyond the largest one.
        let larger = (token + by).min((1 << 53) - 1);
        let value = token.min(larger - 1).to_string();
        let (code, ms, server_ms) = (Code::Done, 30_000, self.pair.now());
        let granted = Reply { code, value, ms, server_ms, acknowledged: None };
        raise_for(who, self.node.clone(), self.clock(ahead), &granted, larger)
    }
}
