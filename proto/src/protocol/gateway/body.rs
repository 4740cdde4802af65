//! Parses the body of a response strictly: any unexpected content makes it invalid.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use hifijson::num::LexWrite as _;
use hifijson::str::LexAlloc as _;
use hifijson::token::Lex as _;
use hifijson::{Error, Expect, SliceLexer};

use crate::protocol::reply::RespValue;

/// `{"result": [flat]}`, `{"result": one}` or `{"error": text}`; further fields are ignored.
pub(super) enum Body {
    Result(Vec<RespValue>),
    Error(String),
}

/// The deepest nesting of ignored fields.
const DEPTH_MAX: u8 = 127;

impl Body {
    /// Parses a body from its first byte to its last. Numbers must be integers.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        SliceLexer::new(body).exactly_one(SliceLexer::ws_peek, Self::one).ok()
    }

    /// Parses a list of two bodies.
    pub(super) fn read_two(body: &[u8]) -> Option<[Self; 2]> {
        match Self::elements(body)?.as_slice() {
            [first, second] => Some([Self::read(first)?, Self::read(second)?]),
            _ => None,
        }
    }

    /// Splits a list into the texts of its elements.
    pub(super) fn elements(body: &[u8]) -> Option<Vec<&[u8]>> {
        let mut all = Vec::new();
        let list = |next, lexer: &mut SliceLexer<'_>| {
            lexer.expect(|_| Some(next), b'[').ok_or(Expect::Value)?;
            lexer.seq(b']', SliceLexer::ws_peek, |next, lexer| {
                let begin = body.len() - lexer.as_slice().len();
                skip(next, lexer, DEPTH_MAX)?;
                let end = body.len() - lexer.as_slice().len();
                all.push(body.get(begin..end).unwrap_or_default());
                Ok::<_, Error>(())
            })
        };
        SliceLexer::new(body).exactly_one(SliceLexer::ws_peek, list).ok()?;
        Some(all)
    }

    /// Parses Webdis' form of a body: `{verb: [flat]}`, `{verb: one}`, or `{verb: [false, text]}`
    /// for an error.
    pub(super) fn read_of(verb: &str, body: &[u8]) -> Option<Self> {
        let mut answer = None;
        let read = |next, lexer: &mut SliceLexer<'_>| {
            fields(next, lexer, &mut |name: &str, next, lexer| {
                // The object has one field.
                if name != verb || answer.is_some() {
                    return Err(Expect::Eof.into());
                }
                answer = Some(marked(next, lexer)?);
                Ok(())
            })
        };
        SliceLexer::new(body).exactly_one(SliceLexer::ws_peek, read).ok()?;
        answer
    }

    fn one(next: u8, lexer: &mut SliceLexer<'_>) -> Result<Self, Error> {
        let mut answer = None;
        let mut field = |name: &str, next, lexer: &mut SliceLexer<'_>| {
            let part = match name {
                "result" => Self::Result(cells(next, lexer)?),
                "error" => Self::Error(text(next, lexer)?.into()),
                _ => return skip(next, lexer, DEPTH_MAX),
            };
            // A repeated field, or both fields: the response was tampered with.
            if answer.replace(part).is_some() { Err(Expect::Eof.into()) } else { Ok(()) }
        };
        fields(next, lexer, &mut field)?;
        Ok(answer.ok_or(Expect::Value)?)
    }
}

fn fields(
    next: u8,
    lexer: &mut SliceLexer<'_>,
    field: &mut dyn FnMut(&str, u8, &mut SliceLexer<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    lexer.expect(|_| Some(next), b'{').ok_or(Expect::Value)?;
    lexer.seq(b'}', SliceLexer::ws_peek, |next, lexer| {
        let name = text(next, lexer)?;
        lexer.expect(SliceLexer::ws_peek, b':').ok_or(Expect::Colon)?;
        field(&name, lexer.ws_peek().ok_or(Expect::Value)?, lexer)
    })
}

fn cells(next: u8, lexer: &mut SliceLexer<'_>) -> Result<Vec<RespValue>, Error> {
    let mut cells = Vec::new();
    if lexer.expect(|_| Some(next), b'[').is_none() {
        cells.push(cell(next, lexer)?);
        return Ok(cells);
    }
    lexer.seq(b']', SliceLexer::ws_peek, |next, lexer| {
        cells.push(cell(next, lexer)?);
        Ok::<_, Error>(())
    })?;
    Ok(cells)
}

/// Parses cells, or an error, which begins with `false`.
fn marked(next: u8, lexer: &mut SliceLexer<'_>) -> Result<Body, Error> {
    let mut mark = None;
    let mut cells = Vec::new();
    if lexer.expect(|_| Some(next), b'[').is_none() {
        cells.push(cell(next, lexer)?);
        return Ok(Body::Result(cells));
    }
    lexer.seq(b']', SliceLexer::ws_peek, |next, lexer| {
        match next {
            b'f' | b't' if mark.is_none() && cells.is_empty() => {
                mark = Some(lexer.null_or_bool().flatten().ok_or(Expect::Value)?);
            }
            _ => cells.push(cell(next, lexer)?),
        }
        Ok::<_, Error>(())
    })?;
    if mark != Some(false) {
        return Ok(Body::Result(cells));
    }
    match cells.pop() {
        Some(RespValue::Text(text)) if cells.is_empty() => Ok(Body::Error(text)),
        _ => Err(Expect::Value.into()),
    }
}

fn cell(next: u8, lexer: &mut SliceLexer<'_>) -> Result<RespValue, Error> {
    Ok(match next {
        b'"' => RespValue::Text(text(next, lexer)?.into()),
        _ => RespValue::Int(integer(lexer)?),
    })
}

fn integer(lexer: &mut SliceLexer<'_>) -> Result<i64, Error> {
    let (digits, _) = lexer.num_string().validated()?;
    Ok(digits.parse().map_err(|_| Expect::Value)?)
}

fn text<'a>(next: u8, lexer: &mut SliceLexer<'a>) -> Result<Cow<'a, str>, Error> {
    lexer.expect(|_| Some(next), b'"').ok_or(Expect::String)?;
    Ok(lexer.str_string()?)
}

/// Skips a value up to a depth, since the stack is finite.
fn skip(next: u8, lexer: &mut SliceLexer<'_>, depth: u8) -> Result<(), Error> {
    let deeper = || depth.checked_sub(1).ok_or(Error::Depth);
    match next {
        b'"' => text(next, lexer).map(drop),
        b'[' => lexer
            .discarded()
            .seq(b']', SliceLexer::ws_peek, |next, lexer| skip(next, lexer, deeper()?)),
        b'{' => fields(next, lexer, &mut |_, next, lexer| skip(next, lexer, deeper()?)),
        b'-' | b'0'..=b'9' => Ok(lexer.num_string().validated().map(drop)?),
        _ => Ok(lexer.null_or_bool().map(drop).ok_or(Expect::Value)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webdis_mark_comes_first_and_false_precedes_one_text() {
        let read =
            |body: &str| Body::read_of("EVAL", [r#"{"EVAL":"#, body, "}"].concat().as_bytes());
        for result in [r#"[true,1,"a"]"#, r#"[1,"a"]"#] {
            let Some(Body::Result(cells)) = read(result) else { panic!("{result}") };
            assert_eq!(cells, [RespValue::Int(1), RespValue::Text("a".into())]);
        }
        let Some(Body::Error(text)) = read(r#"[false,"ERR no"]"#) else { panic!("an error") };
        assert_eq!(text, "ERR no");
        for neither in ["[1,true]", r#"["a",false]"#, "[false]", "[false,1]", r#"[false,"a",1]"#] {
            assert!(read(neither).is_none(), "{neither}");
        }
        for marked_twice in [r#"[false,false,"a"]"#, r#"[true,false,"a"]"#, "[true,true,1]"] {
            assert!(read(marked_twice).is_none(), "{marked_twice}");
        }
    }
}
