//! Base64: the credentials for a Webdis, and the names of a group's values.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use edgelatch_proto::protocol::calls::{GroupCalls, Target};
use edgelatch_proto::protocol::exchange::{Exchange, Step};
use edgelatch_proto::protocol::gateway::{Gateway, GatewayCapabilities};
use edgelatch_proto::protocol::script::Publish;
use edgelatch_proto::time::Instant;
use edgelatch_proto::timing::{LeaseTime, PeerSkew};
use highway::{HighwayHash as _, HighwayHasher, Key};

use crate::kit::{field, granted, inspect, name};

/// Redisson's key.
const KEY: Key = Key([
    0x9e37_79b9_7f4a_7c15,
    0xf39c_c060_5ced_c834,
    0x1082_276b_f3a2_7251,
    0xf86c_6a11_d0c1_8e95,
]);

pub(crate) fn run(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input) {
        password(text);
    }
    value(input);
}

fn password(text: &str) {
    let credentials = text.trim();
    let fits = credentials.contains(':')
        && credentials.len() <= 1024
        && !credentials.chars().any(char::is_control);
    let Ok(gateway) = Gateway::webdis("https://gateway.example", text) else {
        assert!(!fits && !credentials.is_empty(), "{text:?} is refused");
        return;
    };
    assert!(fits || credentials.is_empty(), "{text:?} is accepted");
    let Step::Send(request) =
        Exchange::new(&gateway, inspect(1), &GatewayCapabilities::default()).1
    else {
        panic!("nothing is sent")
    };
    let sent = request.authorization.map(|header| {
        let encoded = header.strip_prefix("Basic ").expect("a scheme").to_owned();
        STANDARD.decode(encoded).expect("padded base64, with nothing behind it")
    });
    assert_eq!(sent.unwrap_or_default(), credentials.as_bytes());
}

fn value(value: &[u8]) {
    let group = GroupCalls::new(name("group"), [value], PeerSkew::DEFAULT, Publish::Plain).unwrap();
    assert_eq!(group.number_of(value), Some(1));
    let target = Target::Group(group);
    let grant = granted(target.clone(), LeaseTime::DEFAULT, Instant::from_millis(0, 0));
    let call = target.release(inspect(1).request, grant.bound, grant.owner);
    let [high, low] = HighwayHasher::new(KEY).hash128(value);
    // Redisson writes the two halves one after the other, big-endian.
    let hash = [high.to_be_bytes(), low.to_be_bytes()].concat();
    let wanted = STANDARD_NO_PAD.encode(hash);
    let written = call.args().contains(&wanted);
    assert!(written, "{wanted} is not in {:?}", &call.args()[4..]);
    assert!(call.args().contains(&field(grant.owner)));
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "",
        " ",
        "user:password",
        "u:",
        ":p",
        "é:ü",
        "user:pass:word",
        " a:b\n",
        "no colon",
        "a:\tb",
    ];
    let lengths = (0..70_u8).map(|length| (0..length).map(|byte| byte.wrapping_mul(37)).collect());
    texts.iter().map(|text| text.as_bytes().to_vec()).chain(lengths).collect()
}
