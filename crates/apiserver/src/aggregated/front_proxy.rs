//! The front proxy: who has shown one certificate and says in headers for whom it speaks.

use axum::http::HeaderMap;

use crate::access::User;

/// How a front proxy is recognised, and how it names users.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FrontProxy {
    /// The names that its certificate may have; any if there are none.
    allowed_names: Vec<String>,
    username_headers: Vec<String>,
    uid_headers: Vec<String>,
    group_headers: Vec<String>,
    extra_prefixes: Vec<String>,
}

impl FrontProxy {
    /// Reads the lists of the `ConfigMap`, each a JSON array of texts.
    pub(super) fn parse<'a>(text: impl Fn(&str) -> &'a str) -> Result<Self, String> {
        let list = |key: &str| -> Result<Vec<String>, String> {
            match text(key) {
                "" => Ok(Vec::new()),
                text => serde_json::from_str(text).map_err(|error| {
                    format!("{key}: {text:?} is not a JSON array of texts: {error}")
                }),
            }
        };
        let headers = |key: &str| -> Result<Vec<String>, String> {
            // The map of headers has them in lower case.
            let names = list(key)?;
            Ok(names.iter().map(|name| name.to_ascii_lowercase()).collect())
        };
        Ok(Self {
            allowed_names: list("requestheader-allowed-names")?,
            username_headers: headers("requestheader-username-headers")?,
            uid_headers: headers("requestheader-uid-headers")?,
            group_headers: headers("requestheader-group-headers")?,
            extra_prefixes: headers("requestheader-extra-headers-prefix")?,
        })
    }

    /// Whether a certificate of this name may be a front proxy's.
    pub(super) fn may_be(&self, name: &str) -> bool {
        self.allowed_names.is_empty() || self.allowed_names.iter().any(|allowed| allowed == name)
    }

    /// For whom the front proxy speaks; nobody if it names no user.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let first = |names: &[String]| {
            let mut values = names.iter().filter_map(|name| text_of(headers.get(name)?));
            values.find(|value| !value.is_empty()).map(str::to_owned)
        };
        let mut user = User {
            name: first(&self.username_headers)?,
            uid: first(&self.uid_headers).unwrap_or_default(),
            ..User::default()
        };
        for name in &self.group_headers {
            let groups = headers.get_all(name).iter().filter_map(text_of);
            user.groups.extend(groups.map(ToOwned::to_owned));
        }
        for (name, value) in headers {
            let mut prefixes = self.extra_prefixes.iter();
            let key = prefixes.find_map(|prefix| name.as_str().strip_prefix(prefix.as_str()));
            if let (Some(key), Some(value)) = (key, text_of(value)) {
                let values = user.extra.entry(decode(key)).or_default();
                values.push(value.to_owned());
            }
        }
        Some(user)
    }
}

fn text_of(value: &axum::http::HeaderValue) -> Option<&str> {
    std::str::from_utf8(value.as_bytes()).ok()
}

/// Names of headers cannot hold everything: the rest is written with percent signs. What is not written so stays as it is.
fn decode(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        rest = others;
        let digits = others.get(..2).filter(|_| *first == b'%');
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            None => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(key: &str) -> &'static str {
        match key {
            "requestheader-allowed-names" => r#"["front-proxy-client"]"#,
            "requestheader-username-headers" => r#"["X-Remote-User"]"#,
            "requestheader-group-headers" => r#"["X-Remote-Group"]"#,
            "requestheader-extra-headers-prefix" => r#"["X-Remote-Extra-"]"#,
            _ => "",
        }
    }

    #[test]
    fn users_are_named_in_headers() {
        let proxy = FrontProxy::parse(text).unwrap();
        let mut headers = HeaderMap::new();
        assert_eq!(proxy.user(&headers), None);
        for (name, value) in [
            ("x-remote-user", "ann"),
            ("x-remote-group", "a"),
            ("x-remote-group", "b"),
            ("x-remote-extra-example.org%2fscopes", "one"),
            ("x-remote-extra-example.org%2fscopes", "two"),
            ("x-remote-extra-bad%zz", "three"),
            ("x-other", "four"),
        ] {
            headers.append(name, value.parse().unwrap());
        }
        let user = proxy.user(&headers).unwrap();
        assert_eq!(user.name, "ann");
        assert_eq!(user.groups, ["a", "b"]);
        assert_eq!(user.extra["example.org/scopes"], ["one", "two"]);
        assert_eq!(user.extra["bad%zz"], ["three"]);
        assert_eq!(user.extra.len(), 2);
    }

    #[test]
    fn only_allowed_names_are_taken() {
        let proxy = FrontProxy::parse(text).unwrap();
        assert!(proxy.may_be("front-proxy-client"));
        assert!(!proxy.may_be("ann"));
        assert!(FrontProxy::default().may_be("ann"));
        let error = FrontProxy::parse(|_| "x").unwrap_err();
        assert!(error.starts_with("requestheader-allowed-names: \"x\" is not a JSON array"));
    }
}
