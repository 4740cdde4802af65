//! Parses commands in the address, such as `/set/key/value?EX=100`.

use std::borrow::Cow;

use axum::http::Uri;
use percent_encoding::percent_decode_str;
use redis::Cmd;

use crate::command::{MalformedCommand, from_words};

/// The query parameter with the token. It is never part of the command.
const TOKEN: &[u8] = b"_token";

/// Returns a command. Its words are the segments of the path, then the body unless it is empty,
/// then the parameters of the query.
///
/// `POST /set/key?EX=100` with the body `value` is `SET key value EX 100`. An empty segment is an
/// empty word; segments, parameters and the body may be any bytes.
pub(crate) fn command(uri: &Uri, body: &[u8]) -> Result<Cmd, MalformedCommand> {
    let path = uri.path();
    let segments = path.strip_prefix('/').unwrap_or(path).split('/').map(decoded);
    let value = (!body.is_empty()).then_some(Cow::Borrowed(body));
    let options = parameters(uri).filter(|(name, _)| decoded(name) != TOKEN);
    let options = options
        .flat_map(|(name, value)| [Some(option(name)), value.map(option)].into_iter().flatten());
    from_words(segments.chain(value).chain(options))
}

/// Returns the token in the query. A `+` is not decoded, since tokens contain no spaces.
pub(crate) fn token(uri: &Uri) -> Option<Cow<'_, [u8]>> {
    parameters(uri)
        .find(|(name, _)| decoded(name) == TOKEN)
        .map(|(_, value)| decoded(value.unwrap_or_default()))
}

fn parameters(uri: &Uri) -> impl Iterator<Item = (&str, Option<&str>)> {
    let parameters = uri.query().unwrap_or_default().split('&');
    parameters.filter(|parameter| !parameter.is_empty()).map(|parameter| {
        let pair = parameter.split_once('=');
        pair.map_or((parameter, None), |(name, value)| (name, Some(value)))
    })
}

fn decoded(text: &str) -> Cow<'_, [u8]> {
    percent_decode_str(text).into()
}

/// Decodes a part of the query, where `+` is a space, as forms and `URLSearchParams` encode it.
fn option(text: &str) -> Cow<'_, [u8]> {
    match text.contains('+') {
        true => Cow::Owned(percent_decode_str(&text.replace('+', " ")).collect()),
        false => decoded(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::words;

    fn split(address: &str, body: &str) -> Vec<String> {
        let uri = address.parse().unwrap();
        let command = command(&uri, body.as_bytes()).unwrap();
        words(&command).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    #[test]
    fn segments_then_the_body_then_the_parameters() {
        assert_eq!(split("/set/foo/bar", ""), ["set", "foo", "bar"]);
        assert_eq!(split("/set/foo?EX=100", "b/a&r"), ["set", "foo", "b/a&r", "EX", "100"]);
        assert_eq!(
            split("/set/foo/bar?NX&EX=100&GET=", "").join(" "),
            "set foo bar NX EX 100 GET "
        );
        assert_eq!(split("/set//bar/", ""), ["set", "", "bar", ""]);
        assert_eq!(split("http://h/get/foo", ""), ["get", "foo"]);
    }

    #[test]
    fn escapes_are_any_bytes_and_a_plus_is_a_space_in_the_query_only() {
        assert_eq!(split("/echo/a%2Fb%20c+d%3F", ""), ["echo", "a/b c+d?"]);
        assert_eq!(split("/scan/0?MATCH=a+b%2B%26&x%3Dy", "")[2..], ["MATCH", "a b+&", "x=y"]);
        let uri = "/echo/%ff%00".parse().unwrap();
        let command = command(&uri, b"\xfe").unwrap();
        assert_eq!(words(&command).collect::<Vec<_>>()[1..], [&b"\xff\0"[..], b"\xfe"]);
        // A `%` without two hexadecimal digits is kept.
        assert_eq!(split("/echo/100%", ""), ["echo", "100%"]);
    }

    #[test]
    fn the_token_is_no_part_of_the_command() {
        let uri = "/get/k?a=b&_token=s%2Be+c&%5Ftoken=other&_token".parse().unwrap();
        assert_eq!(&*token(&uri).unwrap(), b"s+e+c");
        assert_eq!(words(&command(&uri, b"").unwrap()).count(), 4);
        assert_eq!(token(&"/get/_token?token=x".parse().unwrap()), None);
    }

    #[test]
    fn a_command_without_a_name_is_none() {
        for address in ["/", "//set/k/v", "/?set=k"] {
            let uri = address.parse().unwrap();
            assert_eq!(command(&uri, b"PING").unwrap_err(), MalformedCommand::NoName, "{address}");
        }
    }
}
