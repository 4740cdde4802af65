//! The variables from which programs read a gateway's address and token.

use alloc::string::String;

use super::Gateway;
use crate::error::InvalidOption;

/// The variables' names in the documentation of Upstash and of Vercel KV.
const URL: [&str; 2] = ["UPSTASH_REDIS_REST_URL", "KV_REST_API_URL"];
const TOKEN: [&str; 2] = ["UPSTASH_REDIS_REST_TOKEN", "KV_REST_API_TOKEN"];

impl Gateway {
    /// Creates a gateway that speaks Upstash's REST protocol from the variables
    /// `UPSTASH_REDIS_REST_URL` and `UPSTASH_REDIS_REST_TOKEN`; `KV_REST_API_URL` and
    /// `KV_REST_API_TOKEN` replace the ones that are not set or empty.
    ///
    /// `read` returns the value of a variable, for example `|name| std::env::var(name).ok()`, or a
    /// Worker's binding. The values are checked as by [`upstash`](Self::upstash).
    ///
    /// # Errors
    /// [`InvalidOption`] names the variable that is missing or invalid, and what to set.
    pub fn from_variables(
        mut read: impl FnMut(&str) -> Option<String>,
    ) -> Result<Self, InvalidOption> {
        let (url_name, url) = first(&mut read, URL, "the provider's REST URL")?;
        let (token_name, token) = first(&mut read, TOKEN, "the provider's REST token")?;
        Self::upstash(&url, &token).map_err(|error| {
            let name = if error.option() == "url" { url_name } else { token_name };
            InvalidOption::new(name, error.accepted())
        })
    }
}

/// Returns the first variable with a value that is not blank.
fn first(
    mut read: impl FnMut(&str) -> Option<String>,
    names: [&'static str; 2],
    value: &str,
) -> Result<(&'static str, String), InvalidOption> {
    let values = names.into_iter().filter_map(|name| Some((name, read(name)?)));
    values.into_iter().find(|(_, value)| !value.trim().is_empty()).ok_or_else(|| {
        let [name, other] = names;
        InvalidOption::missing(
            name,
            [value, " in the environment, in this variable or in `", other, "`"].concat(),
        )
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn gateway(variables: &[(&str, &str)]) -> Result<Gateway, InvalidOption> {
        let of = |name: &str| variables.iter().find(|(other, _)| *other == name);
        Gateway::from_variables(|name| of(name).map(|(_, value)| (*value).into()))
    }

    #[test]
    fn the_first_variable_that_is_not_blank_counts() {
        let [url, token] = ["https://a.example", "t"];
        for variables in [
            [(URL[0], url), (TOKEN[0], token), (URL[1], "x")],
            [(URL[0], " "), (URL[1], url), (TOKEN[1], token)],
            [(URL[0], url), (TOKEN[0], ""), (TOKEN[1], token)],
        ] {
            assert_eq!(gateway(&variables).unwrap().host(), "a.example");
        }
    }

    #[test]
    fn a_missing_variable_is_named_with_what_to_set() {
        let [url, token] = ["https://a.example", "t"];
        for (variables, name, other) in [
            (vec![], URL[0], URL[1]),
            (vec![(URL[0], "")], URL[0], URL[1]),
            (vec![(TOKEN[0], token)], URL[0], URL[1]),
            (vec![(URL[0], url)], TOKEN[0], TOKEN[1]),
            (vec![(URL[1], url), (TOKEN[0], "\n")], TOKEN[0], TOKEN[1]),
        ] {
            let error = gateway(&variables).unwrap_err();
            assert_eq!(error.option(), name);
            let message = error.message();
            assert!(message.contains("is not set: expected the provider's REST"), "{message}");
            assert!(message.contains(other), "{message}");
            assert!(alloc::format!("{error:?}").contains(&message), "{error:?}");
        }
    }

    #[test]
    fn an_invalid_value_is_reported_under_the_name_of_its_variable() {
        let error = gateway(&[(URL[1], "redis://a"), (TOKEN[0], "t")]).unwrap_err();
        assert_eq!(error.option(), URL[1]);
        assert!(error.message().contains("not of Redis itself"), "{error}");
        let error = gateway(&[(URL[0], "https://a"), (TOKEN[0], "two words")]).unwrap_err();
        assert_eq!(error.option(), TOKEN[0]);
        assert!(!error.message().contains("two words"), "{error}");
    }
}
