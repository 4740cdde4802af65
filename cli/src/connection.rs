//! The gateway, from flags and the environment.

use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs, io};

use edgelatch::Gateway;
use edgelatch::timing::AttemptTime;

use crate::args::ConnectionArgs;
use crate::exit::{Exit, Failure};

/// The variables of the URL and of the token that flags replace.
const URL: &str = "UPSTASH_REDIS_REST_URL";
const TOKEN: &str = "UPSTASH_REDIS_REST_TOKEN";

/// Returns the gateway that the flags and the environment describe.
pub(crate) fn gateway(args: ConnectionArgs) -> Result<Gateway, Failure> {
    resolve(args, |name| env::var(name).ok(), |path| fs::read_to_string(path))
}

fn resolve(
    args: ConnectionArgs,
    variable: impl Fn(&str) -> Option<String>,
    read: impl FnOnce(&PathBuf) -> io::Result<String>,
) -> Result<Gateway, Failure> {
    let token = match (args.token, &args.token_file) {
        (Some(token), _) => Some(token),
        (None, Some(path)) => Some(read(path).map_err(|error| {
            Failure::new(Exit::Usage, format!("cannot read the token file {path:?}: {error}"))
        })?),
        (None, None) => None,
    };
    let of_flags = |name: &str| match name {
        URL => args.url.clone(),
        TOKEN => token.clone(),
        _ => None,
    };
    let gateway = Gateway::from_variables(|name| of_flags(name).or_else(|| variable(name)));
    let gateway = gateway.map_err(|error| {
        let hint = if error.option().ends_with("_URL") { "--url" } else { "--token-file" };
        Failure::new(Exit::Usage, format!("{}; or use {hint}", error.message()))
    })?;
    Ok(gateway.request_timeout(args.request_timeout.0))
}

/// The time for one attempt of a request, as an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt(AttemptTime);

/// Parses a time for one attempt of a request.
pub(crate) fn attempt(text: &str) -> Result<Attempt, String> {
    checked(text, "50ms to 60s", |time| AttemptTime::new(time).ok()).map(Attempt)
}

/// Parses a duration in whole milliseconds. `accepted` describes the values for which `check`
/// returns a value.
pub(crate) fn checked<T>(
    text: &str,
    accepted: &str,
    check: impl FnOnce(Duration) -> Option<T>,
) -> Result<T, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    check(time).ok_or_else(|| format!("expected {accepted} in whole milliseconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> ConnectionArgs {
        let request_timeout = attempt("5s").unwrap();
        ConnectionArgs { url: None, token_file: None, token: None, request_timeout }
    }

    fn variable(name: &str) -> Option<String> {
        match name {
            URL => Some("https://from-the-environment.example".to_owned()),
            TOKEN => Some("secret-of-the-environment".to_owned()),
            _ => None,
        }
    }

    fn no_file(_: &PathBuf) -> io::Result<String> {
        panic!("no file is read")
    }

    #[test]
    fn flags_replace_the_environment() {
        let gateway = resolve(args(), variable, no_file).unwrap();
        assert_eq!(gateway.host(), "from-the-environment.example");
        let url = Some("https://from-a-flag.example".to_owned());
        let gateway = resolve(ConnectionArgs { url, ..args() }, variable, no_file).unwrap();
        assert_eq!(gateway.host(), "from-a-flag.example");
    }

    #[test]
    fn a_missing_gateway_is_an_error_that_names_the_variable_and_the_flag() {
        let error = resolve(args(), |_| None, no_file).unwrap_err();
        assert_eq!(error.code, Exit::Usage.code());
        assert!(error.message.contains(URL) && error.message.contains("--url"), "{error:?}");
    }

    #[test]
    fn no_error_contains_the_token() {
        let wrong = |name: &str| (name == URL).then(|| "https://a.example".to_owned());
        let token = Some("a secret\nwith a line".to_owned());
        let error = resolve(ConnectionArgs { token, ..args() }, wrong, no_file).unwrap_err();
        assert!(!error.message.contains("secret"), "{error:?}");
        let path = Some(PathBuf::from("/missing"));
        let missing = |_: &PathBuf| Err(io::Error::from(io::ErrorKind::NotFound));
        let error = resolve(ConnectionArgs { token_file: path, ..args() }, wrong, missing);
        assert!(error.unwrap_err().message.contains("/missing"));
    }

    #[test]
    fn the_token_of_a_file_may_end_with_a_line_feed() {
        let path = Some(PathBuf::from("token"));
        let url = |name: &str| (name == URL).then(|| "https://a.example".to_owned());
        let read = |_: &PathBuf| Ok("secret\n".to_owned());
        resolve(ConnectionArgs { token_file: path, ..args() }, url, read).unwrap();
    }
}
