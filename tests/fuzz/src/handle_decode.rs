//! References to holds that come from outside: the id of a permit, the token of a grant, and the
//! reply about a state.
//!
//! A lease has no serialised form: these are read in its place.

use edgelatch_proto::machine::{
    Acquire, Input, LockState, Machine as _, Output, PermitsState, SemaphoreState, parse_number,
};
use edgelatch_proto::name::{FencingToken, PermitId};
use edgelatch_proto::protocol::calls::{GrantNotice, Message, WakePolicy};
use edgelatch_proto::protocol::reply::{Code, Reply};
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::LeaseTime;

use crate::kit::{acquisition, entropy, lock};

pub(crate) fn run(input: &[u8]) {
    published(input);
    let Ok(text) = std::str::from_utf8(input) else { return };
    permit(text);
    token(text);
    state(text);
}

/// An id has one spelling, all of it is significant, and no message shows it.
fn permit(text: &str) {
    let is_id = text.len() == 32 && text.bytes().all(|byte| b"0123456789abcdef".contains(&byte));
    match PermitId::parse(text) {
        Ok(id) => {
            assert!(is_id, "{text:?} is accepted");
            assert_eq!(id.to_text(), text);
            assert_eq!(format!("{id:?}"), "PermitId(..)");
        }
        Err(error) => {
            assert!(!is_id, "{text:?} is refused");
            assert_eq!(error.option(), "permitId");
            let is_digits = text.len() > 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(!is_digits || !error.to_string().contains(text), "it tells what it was");
        }
    }
}

/// A grant has a token in its one spelling; otherwise it is not a grant.
fn token(text: &str) {
    let now = Instant::from_millis(0, 0);
    let spec = acquisition(lock("x"), LeaseTime::DEFAULT);
    let mut machine = Acquire::new(spec, entropy(1), None, now);
    let Output::Call { call, .. } = machine.poll(now) else { panic!("it begins by asking") };
    let reply =
        Reply { code: Code::Done, value: text.into(), ms: 1, server_ms: 1, acknowledged: None };
    machine.handle(Input::Reply { call, reply }, now);
    let max = FencingToken::MAX.as_u64();
    let wanted = text
        .parse()
        .ok()
        .filter(|number: &u64| (1..=max).contains(number) && number.to_string() == text);
    match machine.poll(now) {
        Output::Done(Ok(grant)) => assert_eq!(Some(grant.token.as_u64()), wanted),
        // A hold that may exist is released.
        Output::Call { script, .. } => {
            assert_eq!((script.script().name, wanted), ("lock_release", None));
        }
        other => panic!("{other:?}"),
    }
}

/// Numbers separated by commas.
fn state(text: &str) {
    let reply =
        Reply { code: Code::Done, value: text.into(), ms: 7, server_ms: 1, acknowledged: None };
    let numbers: Option<Vec<i64>> = text.split(',').take(5).map(|part| part.parse().ok()).collect();
    let five = numbers.filter(|all| all.len() >= 3).map(|mut all| {
        all.resize(5, 0);
        all
    });
    let natural = |number: i64| u64::try_from(number).unwrap_or(0);
    match (LockState::read(&reply), &five) {
        (Ok(state), Some(all)) => {
            assert_eq!((state.last_token, state.hold_count), (natural(all[0]), natural(all[1])));
            assert_eq!((state.is_held, state.is_locked), (all[2] == 1, true));
        }
        (Err(_), None) => {}
        (read, claims) => panic!("{read:?} out of {claims:?}"),
    }
    match (SemaphoreState::read(&reply), PermitsState::read(&reply), &five) {
        (Ok(plain), Ok(with_ids), Some(all)) => {
            assert_eq!(
                (plain.available, plain.leases, plain.held),
                (all[3], natural(all[1]), natural(all[4]))
            );
            assert_eq!((with_ids.available, with_ids.total), (all[3], all[4]));
        }
        (Err(_), Err(_), None) => {}
        (plain, with_ids, claims) => panic!("{plain:?} and {with_ids:?} out of {claims:?}"),
    }
    assert_eq!(parse_number(&reply).ok(), text.parse().ok());
}

/// A message is only a hint: whatever was published, the client acquires nothing without a request.
fn published(payload: &[u8]) {
    let message = Message::read(payload);
    for wakes in [WakePolicy::One, WakePolicy::Permits(2), WakePolicy::All] {
        let Some(taken) = GrantNotice::read(message, wakes) else { continue };
        if let Some(lease) = taken.lease {
            assert!(LeaseTime::new(lease).is_ok(), "{lease:?}");
            assert!(message.number >= 100_000, "Redisson's own numbers are small");
        } else {
            assert_eq!(message.number, 0);
        }
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "000102030405060708090a0b0c0d0e0f",
        "000102030405060708090A0B0C0D0E0F",
        "+00102030405060708090a0b0c0d0e0f",
        "1700000000000000",
        "9007199254740991",
        "9007199254740992",
        "0",
        "01",
        "+1",
        "-1",
        "1e3",
        "",
        "1,2,1",
        "1,2,1,4,5",
        "1,2",
        "-1,-2,0,-4,-5",
        "1,2,x",
        "9223372036854775808,1,1",
        "30000012",
        "86400000999",
        "0000",
        "\"30000012\"",
        "18446744073709551616000",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
