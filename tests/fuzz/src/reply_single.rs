//! The body of one response, in either dialect: decoded as another library decodes it, or not at
//! all.
//!
//! The first byte selects the dialect and the status.

use edgelatch_proto::protocol::exchange::Answer;
use edgelatch_proto::protocol::reply::{Reply, RespValue};

use crate::kit::{converse, echo, gateway, inspect, recorded, response};
use crate::strict;

const STATUSES: [u16; 4] = [200, 201, 400, 500];

pub(crate) fn run(input: &[u8]) {
    let Some((flags, body)) = input.split_first() else { return };
    let (webdis, status) = (flags & 1 == 1, STATUSES[usize::from(flags >> 1 & 3)]);
    let (gateway, call) = (gateway(webdis), inspect(255));

    let (answer, requests) = converse(&gateway, &call, &response(status, body), |_| {});
    assert!((1..=3).contains(&requests), "{requests} requests");

    // Webdis has a verb for the hash and one for the source; the hash is sent first.
    let read = |text: &str| {
        if webdis { strict::webdis("EVALSHA", text) } else { strict::upstash(text) }
    };
    let parsed = std::str::from_utf8(body).ok().and_then(read);
    let counts = if webdis { status == 200 } else { (200..300).contains(&status) };
    match (&answer, parsed) {
        (Answer::Reply(reply), Some(Ok(cells))) => {
            assert!(counts, "a reply at {status}");
            assert_reply(reply, &cells, echo(&call));
        }
        (Answer::Reply(reply), parsed) => panic!("{reply:?} out of {parsed:?}"),
        (answer, Some(Ok(cells))) => {
            let reply = Reply::read(&cells, call.request);
            assert!(!counts || reply.is_none(), "{reply:?} is {answer:?}");
            assert!(matches!(answer, Answer::Failed(_)), "{answer:?}");
        }
        // Two verbs: an error that requests the source does not have the verb of the second
        // request.
        (Answer::Refused(refusal), None) => {
            let empty = webdis && requests == 1 && body.is_empty();
            assert!(requests > 1 || empty, "{refusal:?} out of nothing");
        }
        (Answer::Failed(_), None) | (Answer::Failed(_) | Answer::Refused(_), Some(Err(_))) => {}
    }
    assert_eq!(counts && is_reply(body, webdis, echo(&call)), matches!(answer, Answer::Reply(_)));
}

/// The frame of `proto/src/protocol/README.md`, implemented again.
fn assert_reply(reply: &Reply, cells: &[RespValue], echo: &str) {
    let [code, RespValue::Text(value), ms, server_ms, RespValue::Text(echoed)] = cells else {
        panic!("{cells:?} is a reply")
    };
    assert_eq!(echoed, echo);
    assert_eq!(Some(reply.code as i64), number(code));
    assert_eq!((&reply.value, Some(reply.ms)), (value, number(ms)));
    assert_eq!(i64::try_from(reply.server_ms).ok(), number(server_ms));
}

/// Whether the body contains a reply, by the same frame.
fn is_reply(body: &[u8], webdis: bool, echo: &str) -> bool {
    let Ok(text) = std::str::from_utf8(body) else { return false };
    let parsed = if webdis { strict::webdis("EVALSHA", text) } else { strict::upstash(text) };
    let Some(Ok(cells)) = parsed else { return false };
    let [code, RespValue::Text(_), ms, server_ms, RespValue::Text(echoed)] = cells.as_slice()
    else {
        return false;
    };
    echoed == echo
        && number(code).is_some_and(|code| (-11..=3).contains(&code))
        && number(ms).is_some()
        && number(server_ms).is_some_and(|ms| ms >= 0)
}

fn number(cell: &RespValue) -> Option<i64> {
    match cell {
        RespValue::Int(number) => Some(*number),
        RespValue::Text(text) => text.parse().ok(),
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let results = [false, true]
        .map(|webdis| recorded(webdis).into_iter().map(move |(_, body)| (webdis, body)));
    let results = results
        .into_iter()
        .flatten()
        .map(|(webdis, body)| [&[u8::from(webdis)], body.as_bytes()].concat());
    // As in JSONTestSuite: cases on which JSON parsers disagree.
    let odd = [
        r#"{"result":[1,"12",3,4,"00000000000000ff"]}"#,
        r#"{"result":[1,"12",3,4,"00000000000000ff"],"result":[0,"12",3,4,"00000000000000ff"]}"#,
        r#"{"result":[1,"12",3,4,"00000000000000ff"],"error":"ERR no"}"#,
        r#"{"result":[1,"12",3,4,"00000000000000ff"],"x":{"y":[[],{},null,true,1e999,-0,"\ud83d\ude00"]}}"#,
        r#"{"result":[1,"12",3,4,"00000000000000ff"]} x"#,
        r#"{"result":[1,"12",3,4,"00000000000000ff",]}"#,
        r#"{"result":[01,"12",3,4,"00000000000000ff"]}"#,
        r#"{"result":[1.0,"12",3,4,"00000000000000ff"]}"#,
        r#"{"result":[1e0,"12",-0,9223372036854775808,"00000000000000ff"]}"#,
        r#"{"result":["1","12","-3","9223372036854775807","00000000000000ff"]}"#,
        r#"{"result":[1,"\ud800",3,4,"00000000000000ff"]}"#,
        r#"{"result":[1,null,3,4,"00000000000000ff"]}"#,
        r#"{"result":null}"#,
        "\u{feff}{\"result\":1}",
        "{'result':1}",
        "[]",
        "{}",
        "",
    ];
    let verbs = [
        r#"{"EVALSHA":[1,"12",3,4,"00000000000000ff"]}"#,
        r#"{"EVALSHA":[false,"NOSCRIPT x"]}"#,
        r#"{"EVALSHA":[true,"OK"]}"#,
    ];
    let odd = odd.map(|body| (0, body)).into_iter().chain(verbs.map(|body| (1, body)));
    results.chain(odd.map(|(flag, body)| [&[flag], body.as_bytes()].concat())).collect()
}
