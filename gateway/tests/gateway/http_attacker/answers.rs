//! Parses responses strictly, as a proxy in front of the gateway does.

use serde_json::Value;

/// One response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Whether it may have a body; one to `HEAD` may not.
    pub(crate) has_body: bool,
    /// Whether the body is RESP2.
    pub(crate) is_resp2: bool,
}

/// Parses all responses in `bytes`, or returns why one is malformed. `has_body` says for each
/// request whether its response has a body.
pub(crate) fn read(bytes: &[u8], has_body: &[bool]) -> Result<Vec<Answer>, String> {
    let mut rest = bytes;
    let mut answers = Vec::new();
    while !rest.is_empty() {
        let has_body = has_body.get(answers.len()).copied().ok_or("more answers than requests")?;
        let (answer, behind) = one(rest, has_body)?;
        answers.push(answer);
        rest = behind;
    }
    Ok(answers)
}

fn one(bytes: &[u8], has_body: bool) -> Result<(Answer, &[u8]), String> {
    let end =
        bytes.windows(4).position(|part| part == b"\r\n\r\n").ok_or("a head without an end")?;
    let head = str::from_utf8(&bytes[..end]).map_err(|_| "a head that is no text")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.")).unwrap_or_default();
    let status = status.get(2..5).and_then(|status| status.parse().ok()).ok_or("no status line")?;
    let (mut length, mut is_resp2) = (None, false);
    for line in lines {
        let (name, value) = line.split_once(": ").ok_or("no header")?;
        if name.contains(|c: char| !c.is_ascii_graphic()) || value.contains(char::is_control) {
            return Err(format!("a header of other characters: {line:?}"));
        }
        match name.to_ascii_lowercase().as_str() {
            "content-length" if length.is_some() => return Err("two lengths".to_owned()),
            "content-length" => length = value.parse().ok(),
            "content-type" => is_resp2 = value == "application/octet-stream",
            "transfer-encoding" => return Err("no answer to a command is chunked".to_owned()),
            _ => {}
        }
    }
    let length = if has_body && status != 204 { length.ok_or("no length")? } else { 0 };
    let body = bytes.get(end + 4..end + 4 + length).ok_or("a body that is cut")?;
    Ok((Answer { status, body: body.to_vec(), has_body, is_resp2 }, &bytes[end + 4 + length..]))
}

impl Answer {
    /// Whether the response is a valid one: an error has a text in JSON, or no body if hyper itself
    /// refused the head.
    pub(crate) fn is_fine(&self) -> bool {
        let is_empty = self.body.is_empty() && matches!(self.status, 204 | 400 | 414 | 431 | 501);
        let text = || serde_json::from_slice::<Value>(&self.body).ok();
        let is_error = |body: &Value| body["error"].is_string();
        match self.status {
            _ if !self.has_body => self.body.is_empty(),
            200 | 400 if self.is_resp2 => self.body.ends_with(b"\r\n"),
            200 => text().is_some(),
            400..600 => is_empty || text().is_some_and(|body| is_error(&body)),
            _ => is_empty,
        }
    }
}
