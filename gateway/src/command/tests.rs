//! Checks the parser of commands, also against `serde_json`.

use serde_json::value::RawValue;

use super::*;

fn texts(command: &Cmd) -> Vec<String> {
    words(command).map(|word| String::from_utf8(word.to_vec()).unwrap()).collect()
}

fn parsed(json: &str) -> Vec<String> {
    texts(&parse(json, usize::MAX).unwrap().unwrap())
}

#[test]
fn every_kind_of_argument_arrives_as_it_was_written() {
    let json = r#"["SET", "a\"b\né", "", "\"", 9007199254740993, 12345678901234567890123,
                   -1.50, 1e21, true, false, null]"#;
    let expected = [
        "SET",
        "a\"b\né",
        "",
        "\"",
        "9007199254740993",
        "12345678901234567890123",
        "-1.50",
        "1e21",
        "true",
        "false",
        "null",
    ];
    assert_eq!(parsed(json), expected);
}

#[test]
fn a_malformed_command_is_refused_with_its_reason() {
    for (json, problem) in [
        ("{}", MalformedCommand::Array),
        ("\"PING\"", MalformedCommand::Array),
        ("[\"PING\"", MalformedCommand::Array),
        ("[\"PING\"] x", MalformedCommand::Array),
        ("", MalformedCommand::Array),
        ("[]", MalformedCommand::NoName),
        ("[\"\"]", MalformedCommand::NoName),
        ("[\"SET\",[]]", MalformedCommand::Argument),
        ("[\"SET\",{\"a\":1}]", MalformedCommand::Argument),
        ("[\"SET\",\"\\ud800\"]", MalformedCommand::Argument),
    ] {
        assert_eq!(parse(json, 2).unwrap_err(), problem, "{json}");
    }
    for (json, number) in [("[]", Some(0)), ("[[1],[2]]", Some(2)), ("[[],[],{}]", None)] {
        let list = parse_list(json, 2, usize::MAX).unwrap();
        assert_eq!(list.map(|commands| commands.len()), number, "{json}");
    }
    for json in ["{}", "[[],[]", "[[]] x", "[[],]"] {
        let refused = parse_list(json, 2, usize::MAX).unwrap_err();
        assert_eq!(refused, MalformedCommand::ArrayOfArrays, "{json}");
    }
    for (json, problem) in [
        ("[[1],0]", MalformedCommand::Array),
        ("[[1],{\"a\":\"}\",\"b\":\"é\"}]", MalformedCommand::Array),
        ("[[1],[]]", MalformedCommand::NoName),
        ("[[1,[]],[]]", MalformedCommand::Argument),
        ("[[],[1,[]]]", MalformedCommand::NoName),
    ] {
        assert_eq!(parse_list(json, 2, usize::MAX).unwrap_err(), problem, "{json}");
    }
}

#[test]
fn a_command_has_no_more_words_than_its_client_may_send() {
    let json = format!("[{}0]", "0,".repeat(99));
    assert_eq!(words(&parse(&json, 100).unwrap().unwrap()).count(), 100);
    assert!(parse(&json, 99).unwrap().is_none());
    let list = parse_list(&format!("[[1],{json},[2]]"), 3, 99).unwrap().unwrap();
    assert_eq!(list.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
}

/// The text after the elements that a client may send is no JSON, so it cannot have been read.
#[test]
fn nothing_is_read_behind_the_elements_that_a_client_may_send() {
    assert!(parse("[0,0,0,\u{1}", 2).unwrap().is_none());
    assert!(parse_list("[[],[],[],\u{1}", 2, usize::MAX).unwrap().is_none());
}

#[test]
fn nothing_is_read_behind_a_value_that_is_nested_too_deeply() {
    for nested in ["[", "{"] {
        let refused = parse(&format!("[{nested}\u{1}"), usize::MAX).unwrap_err();
        assert_eq!(refused, MalformedCommand::Argument);
        let refused = parse_list(&format!("[[1],[{nested}\u{1}"), 2, usize::MAX).unwrap_err();
        assert_eq!(refused, MalformedCommand::Argument);
        let refused = parse_list(&format!("[{{\"a\":{nested}\u{1}"), 2, usize::MAX).unwrap_err();
        assert_eq!(refused, MalformedCommand::Array);
    }
}

/// Parses a command by `serde_json` alone.
fn by_serde_json(json: &str) -> Result<Vec<String>, MalformedCommand> {
    let values: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| MalformedCommand::Array)?;
    let word = |value: &RawValue| match value.get().as_bytes() {
        [b'"', ..] => serde_json::from_str(value.get()).map_err(|_| MalformedCommand::Argument),
        [b'[' | b'{', ..] => Err(MalformedCommand::Argument),
        _ => Ok(value.get().to_owned()),
    };
    let words: Vec<String> = values.into_iter().map(word).collect::<Result<_, _>>()?;
    match words.first() {
        Some(name) if !name.is_empty() => Ok(words),
        _ => Err(MalformedCommand::NoName),
    }
}

/// Both parsers read every text of a few pieces in the same way: each piece begins, continues
/// or ends a value, and the long one crosses the blocks in which a string is read.
#[test]
fn a_text_is_read_as_serde_json_reads_it() {
    let long = "0123456789".repeat(4);
    let pieces = [
        "", "\"", "\\", "\\\"", "\\n", "\\u", "\\u0041", "\\ud83d", "\\ude00", "\\uD8", "00e9",
        "é", "\u{1}", "\n", " ", ",", "0", "-", "1.5e+3", "true", "nul", "]", "x", &long,
    ];
    let mut accepted = 0;
    for first in pieces {
        for second in pieces {
            for third in pieces {
                for quote in ["", "\""] {
                    let json = format!("[{quote}{first}{second}{third}{quote}]");
                    let found = parse(&json, usize::MAX);
                    let found = found.map(|command| texts(&command.unwrap()));
                    accepted += usize::from(found.is_ok());
                    assert_eq!(found, by_serde_json(&json), "{json}");
                }
            }
        }
    }
    assert!(accepted > 4_000, "{accepted}");
}

#[test]
fn long_strings_arrive_as_serde_json_reads_them() {
    for escape in ["\\n", "\\u0061", "\\u00e9", "\\u20ac", "\\ud83d\\ude00", "é", "x"] {
        for between in 0..=40 {
            let json =
                format!("[1,\"{}\"]", format!("{}{escape}", "y".repeat(between)).repeat(3_000));
            assert_eq!(parsed(&json), by_serde_json(&json).unwrap(), "{escape} {between}");
        }
    }
}

/// Parses a list of commands by `serde_json` alone.
fn list_by_serde_json(json: &str) -> Result<Vec<Vec<String>>, MalformedCommand> {
    let commands: Vec<&RawValue> =
        serde_json::from_str(json).map_err(|_| MalformedCommand::ArrayOfArrays)?;
    commands.into_iter().map(|command| by_serde_json(command.get())).collect()
}

/// Both parsers read every list of a few pieces in the same way. The reason of a refusal may be
/// another one, since this parser does not read nested values to their end.
#[test]
fn a_list_is_read_as_serde_json_reads_it() {
    let pieces = [
        "",
        "[",
        "]",
        ",",
        " ",
        "1",
        "[1]",
        "[\"a\\n\",2],",
        "[]",
        "{}",
        "{\"a\":1}",
        "\"]\"",
        "x",
    ];
    let mut accepted = 0;
    for first in pieces {
        for second in pieces {
            for third in pieces {
                for fourth in pieces {
                    let json = format!("[{first}{second}{third}{fourth}]");
                    let found = parse_list(&json, usize::MAX, usize::MAX);
                    let found = found.map(|list| {
                        list.unwrap().iter().map(|one| texts(one.as_ref().unwrap())).collect()
                    });
                    accepted += usize::from(found.is_ok());
                    assert_eq!(found.ok(), list_by_serde_json(&json).ok(), "{json}");
                }
            }
        }
    }
    assert!(accepted > 100, "{accepted}");
}

#[test]
fn an_escape_has_four_hexadecimal_digits() {
    for place in 0..4 {
        for byte in 1..=0x7f_u8 {
            let mut escape = *b"\\u00e9";
            escape[2 + place] = byte;
            let json = format!("[\"x{}y\"]", str::from_utf8(&escape).unwrap());
            let found = parse(&json, usize::MAX).map(|command| texts(&command.unwrap()));
            assert_eq!(found, by_serde_json(&json), "{json}");
        }
    }
}
