//! The response to several commands in one request: one reply for each, or one for all; and the
//! reply of a script with its wait for replicas.
//!
//! The first byte selects which of both, and the status.

use edgelatch_proto::error::{FailureKind, RefusalKind};
use edgelatch_proto::protocol::exchange::{Answer, Exchange, Step};
use edgelatch_proto::protocol::gateway::{GatewayCapabilities, PipelineOutcome, Request, Response};
use edgelatch_proto::protocol::reply::RespValue;

use crate::kit::{ECHO, converse, echo, gateway, inspect, recorded, replicated, response};
use crate::strict;

const STATUSES: [u16; 8] = [200, 299, 307, 400, 401, 404, 429, 500];

pub(crate) fn run(input: &[u8]) {
    let Some((flags, body)) = input.split_first() else { return };
    let response = response(STATUSES[usize::from(flags >> 1 & 7)], body);
    if flags & 1 == 0 { several(&response) } else { with_replicas(&response) }
}

fn several(response: &Response) {
    let gateway = gateway(false);
    let calls = [inspect(254), inspect(255)];
    let mut capabilities = GatewayCapabilities::default();
    let requests =
        calls.each_ref().map(|call| match Exchange::new(&gateway, call.clone(), &capabilities).1 {
            Step::Send(request) => request,
            Step::Done(answer) => panic!("nothing is sent: {answer:?}"),
        });
    let joined = Request::several(&requests[0], requests[1..].iter());
    assert!(joined.url.ends_with("example/pipeline"));
    let commands = strict::elements(&joined.body).expect("a list");
    assert_eq!(commands, requests.each_ref().map(|request| request.body.as_str()));

    let text = std::str::from_utf8(&response.body).ok();
    let each = text.and_then(strict::elements).filter(|bodies| bodies.len() == calls.len());
    match capabilities.pipeline_outcome(Ok(response.clone()), calls.len()) {
        PipelineOutcome::Each(answers) => {
            let each = each.expect("a list of as many answers");
            assert_eq!(answers.len(), each.len());
            for ((answer, body), call) in answers.iter().zip(each).zip(&calls) {
                assert_eq!((answer.status, &answer.body[..]), (response.status, body.as_bytes()));
                own_answer(answer, call);
            }
            assert!(capabilities.shares(), "what works is used");
        }
        other => {
            assert_eq!(each, None, "{other:?}");
            assert_one_for_all(&other, response);
        }
    }
}

/// A call's reply belongs to that call.
fn own_answer(answer: &Response, call: &edgelatch_proto::protocol::script::ScriptCall) {
    let (end, _) = converse(&gateway(false), call, answer, |_| {});
    if let Answer::Reply(reply) = end {
        let text = std::str::from_utf8(&answer.body).unwrap();
        let Some(Ok(cells)) = strict::upstash(text) else { panic!("{reply:?} out of {text}") };
        assert_eq!(cells.last(), Some(&RespValue::Text(echo(call).to_owned())));
        assert!((200..300).contains(&answer.status));
    }
}

fn assert_one_for_all(answers: &PipelineOutcome, response: &Response) {
    let status = response.status;
    match answers {
        // Each call gets the same outcome if the token was refused or the response is a web page.
        PipelineOutcome::All(Ok(_)) => {
            let body = response.body.trim_ascii_start().to_ascii_lowercase();
            let is_page = body.starts_with(b"<!doctype html") || body.starts_with(b"<html");
            assert!(status == 401 || (200..300).contains(&status) && is_page, "{status}");
        }
        PipelineOutcome::Unsupported => {
            let parsed = std::str::from_utf8(&response.body).ok().and_then(strict::upstash);
            let unknown = matches!(parsed, Some(Err(text)) if {
                let text = text.to_lowercase();
                text.contains("unknown command") || text.contains("command is not available")
            });
            assert!(unknown || [404, 405, 501].contains(&status), "{status}");
        }
        PipelineOutcome::All(Err(kind)) => {
            assert_ne!(*kind, FailureKind::NotSent, "it was sent");
            assert!(![401, 404].contains(&status));
        }
        PipelineOutcome::Each(_) => panic!("to each its own is none for all"),
    }
}

fn with_replicas(response: &Response) {
    let call = replicated(255);
    let (answer, requests) = converse(&gateway(false), &call, response, |request| {
        let commands = strict::elements(&request.body).expect("a list");
        assert!(
            commands.len() == 2 && commands[1].starts_with(r#"["WAIT","1""#),
            "{}",
            request.body
        );
    });
    assert!((1..=3).contains(&requests));
    let text = std::str::from_utf8(&response.body).ok();
    let two = text.and_then(strict::elements).filter(|two| two.len() == 2);
    let two = two.and_then(|two| Some((strict::upstash(two[0])?, strict::upstash(two[1])?)));
    match (answer, two) {
        (Answer::Reply(reply), Some((Ok(cells), replicas))) => {
            assert!((200..300).contains(&response.status));
            assert_eq!(cells.last(), Some(&RespValue::Text(echo(&call).to_owned())));
            // A cell that is no number is not a count; and no replica is counted that did not
            // acknowledge.
            let count = match replicas.as_deref() {
                Ok([RespValue::Int(count)]) => u32::try_from(*count).ok(),
                Ok([RespValue::Text(count)]) => count.parse().ok(),
                _ => reply.acknowledged.filter(|count| *count == 0),
            };
            assert_eq!(reply.acknowledged, count);
        }
        (Answer::Reply(reply), two) => panic!("{reply:?} out of {two:?}"),
        // The gateway is known to lack the wait if it has no such path.
        (Answer::Refused(refusal), None) if refusal.kind() == RefusalKind::Unsupported => {
            let unknown =
                String::from_utf8_lossy(&response.body).to_lowercase().contains("unknown");
            assert!(unknown || [404, 405, 501].contains(&response.status));
        }
        _ => {}
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let reply = |echo: &str| format!(r#"{{"result":[1,"12",3,4,"{echo}"]}}"#);
    let mine = reply(ECHO);
    let mut bodies = vec![
        format!("[{},{mine}]", reply("00000000000000fe")),
        format!("[{mine},{mine}]"),
        format!("[ {mine} , {{\"error\":\"WRONGTYPE x\"}} ] "),
        format!(r#"[{mine},{{"result":1}}]"#),
        format!(r#"[{mine},{{"result":"0"}}]"#),
        format!(r#"[{mine},{{"error":"ERR WAIT cannot be used with replica instances"}}]"#),
        format!(r#"[{mine},{{"error":"UNBLOCKED force unblock"}}]"#),
        format!("[{mine}]"),
        format!("[{mine},{mine},{mine}]"),
        format!("[{mine},{mine}]]"),
        "[]".to_owned(),
        r#"{"error":"ERR unknown command 'PIPELINE'"}"#.to_owned(),
        r#"{"error":"Unauthorized"}"#.to_owned(),
    ];
    bodies.extend(recorded(false).into_iter().map(|(_, body)| body));
    let seeds = bodies
        .iter()
        .flat_map(|body| [[&[0], body.as_bytes()].concat(), [&[1], body.as_bytes()].concat()]);
    seeds.collect()
}
