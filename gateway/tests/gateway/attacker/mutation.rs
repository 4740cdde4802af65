//! Mutates legal calls.

use edgelatch_proto::protocol::script::scripts;
use fastrand::Rng;
use serde_json::{Value, json};

use super::call::Call;
use super::victims::JAVA;

/// Words that a script or a check could misinterpret.
const WORDS: [&str; 42] = [
    "",
    "0",
    "1",
    "-1",
    "-0",
    "+1",
    "01",
    "1.0",
    "1e3",
    "1e308",
    "-1e308",
    "0x10",
    " 1",
    "1 ",
    "NaN",
    "nan",
    "inf",
    "-inf",
    "99",
    "100",
    "100000",
    "86400000",
    "86400001",
    "2147483647",
    "-2147483648",
    "9007199254740991",
    "9007199254740992",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "set",
    "del",
    "claim",
    "add",
    "clear",
    "free",
    "lease",
    "delete",
    "read",
    "write",
    "x\u{0}y",
    "é",
];

/// Names and keys that a mutation can insert into a call.
pub(crate) struct Material<'a> {
    /// Names of every kind of object, below the token's prefixes and outside of them.
    pub(crate) names: &'a [String],
    /// The keys that exist.
    pub(crate) keys: &'a [String],
}

/// Changes a call at random.
pub(crate) fn mutate(call: &mut Call, material: &Material<'_>, rng: &mut Rng) {
    if *call.script == scripts::GUARD_WRITE && rng.u8(..4) == 0 {
        // Replaces its value, if it has one.
        call.args.get_mut(9).into_iter().for_each(|arg| *arg = "x".repeat(70_000));
        return;
    }
    let keys = call.keys.len();
    match rng.u8(..18) {
        0 => rename(words_mut(call), material, rng),
        // A key of the same form, of another object.
        1 => rename(pick_mut(&mut call.keys, rng).into_iter().collect(), material, rng),
        2 => {
            if let Some(key) = pick_mut(&mut call.keys, rng) {
                *key = any_key(material, rng);
            }
        }
        3 => call.keys.insert(rng.usize(..=keys), any_key(material, rng)),
        4 => drop(remove(&mut call.keys, rng)),
        5 => swap(&mut call.keys, rng),
        6 => {
            let key = call.keys.last().cloned().unwrap_or_default();
            call.keys.extend(vec![key; [1, 2, 300][rng.usize(..3)]]);
        }
        7 | 8 => {
            let word = any_word(material, rng);
            if let Some(arg) = pick_mut(&mut call.args, rng) {
                *arg = word;
            }
        }
        9 => call.args.push(any_word(material, rng)),
        10 => drop(remove(&mut call.args, rng)),
        11 => swap(&mut call.args, rng),
        12 => call.script = scripts::ALL[rng.usize(..scripts::ALL.len())],
        13 => digits(call, rng),
        _ => nudge(call, rng),
    }
}

/// Changes a number by one, or by a factor of two.
fn nudge(call: &mut Call, rng: &mut Rng) {
    let numbers = call.args.iter_mut().filter_map(|arg| Some((arg.parse::<u64>().ok()?, arg)));
    let mut numbers: Vec<_> = numbers.collect();
    if let Some((number, arg)) = pick_mut(&mut numbers, rng) {
        let other =
            [number.wrapping_add(1), number.wrapping_sub(1), *number / 2, number.wrapping_mul(2)];
        **arg = other[rng.usize(..other.len())].to_string();
    }
}

/// Replaces a name in these words of a call.
fn rename(words: Vec<&mut String>, material: &Material<'_>, rng: &mut Rng) {
    let found = material.names.iter().filter(|name| words.iter().any(|word| word.contains(*name)));
    // The longest one, since other names may be parts of it.
    if let Some(from) = found.max_by_key(|name| name.len()).cloned() {
        let to = &material.names[rng.usize(..material.names.len())];
        let form =
            |name: &str| if name.contains('{') { name.to_owned() } else { format!("{{{name}}}") };
        for word in words {
            *word = match word.replace(&form(&from), "\u{1}") {
                spelt if spelt.contains('\u{1}') => spelt.replace('\u{1}', &form(to)),
                bare => bare.replace(&from, to),
            };
        }
    }
}

/// Changes one random digit.
fn digits(call: &mut Call, rng: &mut Rng) {
    let mut with = words_mut(call);
    with.retain(|word| word.bytes().any(|byte| byte.is_ascii_hexdigit()));
    if let Some(word) = pick_mut(&mut with, rng) {
        let places: Vec<usize> =
            word.match_indices(|c: char| c.is_ascii_hexdigit()).map(|(place, _)| place).collect();
        let place = places[rng.usize(..places.len())];
        word.replace_range(place..=place, &rng.u8(..10).to_string());
    }
}

/// The keys and arguments of a call.
fn words_mut(call: &mut Call) -> Vec<&mut String> {
    call.keys.iter_mut().chain(&mut call.args).collect()
}

fn any_key(material: &Material<'_>, rng: &mut Rng) -> String {
    let name = &material.names[rng.usize(..material.names.len())];
    match rng.u8(..8) {
        0..4 if !material.keys.is_empty() => {
            material.keys[rng.usize(..material.keys.len())].clone()
        }
        4 => name.clone(),
        5 => format!(
            "el:{{{name}}}:{}",
            ["token", "held", "epoch", "want", "fence", "beat"][rng.usize(..6)]
        ),
        6 => format!("redisson_lock_{}:{{{name}}}", ["token", "queue", "timeout"][rng.usize(..3)]),
        _ => any_word(material, rng),
    }
}

fn any_word(material: &Material<'_>, rng: &mut Rng) -> String {
    match rng.u8(..12) {
        0 => material.names[rng.usize(..material.names.len())].clone(),
        1 => JAVA.to_owned(),
        2 => format!("{JAVA}:write"),
        3 => "x".repeat([23, 513, 5000, 70_000][rng.usize(..4)]),
        4 => format!(
            "redisson_lock__channel:{{{}}}",
            material.names[rng.usize(..material.names.len())]
        ),
        _ => WORDS[rng.usize(..WORDS.len())].to_owned(),
    }
}

fn pick_mut<'w, T>(words: &'w mut [T], rng: &mut Rng) -> Option<&'w mut T> {
    if words.is_empty() { None } else { words.get_mut(rng.usize(..words.len())) }
}

fn remove(words: &mut Vec<String>, rng: &mut Rng) -> Option<String> {
    (!words.is_empty()).then(|| words.remove(rng.usize(..words.len())))
}

fn swap(words: &mut [String], rng: &mut Rng) {
    if !words.is_empty() {
        words.swap(rng.usize(..words.len()), rng.usize(..words.len()));
    }
}

/// Returns a call as a command, sometimes in an unusual form.
pub(crate) fn command(call: &Call, rng: &mut Rng) -> Value {
    let mut words = call.command();
    match rng.u8(..40) {
        0 => words[..2].clone_from_slice(&[json!("EVAL"), json!(call.script.source(false))]),
        1 => words[..2].clone_from_slice(&[json!("EVAL"), json!(call.script.source(false) + " ")]),
        2 => words[0] = json!("evalsha"),
        3 => words[0] = Value::from(["EVALSHA_RO", "FCALL", "EVAL"][rng.usize(..3)]),
        4 => words[1] = json!(call.script.sha1(false).to_uppercase()),
        5 => words[2] = Value::from(["0", "-1", "01", "1", "99999999999999999999"][rng.usize(..5)]),
        6 => {
            // Numbers as JSON numbers, which keep their spelling.
            for word in &mut words {
                let number = word.as_str().and_then(|text| text.parse::<u64>().ok());
                *word = number.map_or_else(|| word.take(), Value::from);
            }
        }
        7 => words = vec![json!("DEL"), json!(call.keys.last())],
        8 => words = ["WAIT", ["1", "9", "-1"][rng.usize(..3)], "1"].map(Value::from).into(),
        _ => {}
    }
    Value::from(words)
}
