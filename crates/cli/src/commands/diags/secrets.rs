//! Removes secrets from texts of any kind: settings, environments, YAML, JSON, BIRD's configuration, command lines, logs.
//!
//! Too much is removed rather than too little; names stay, so that it can be seen that there was something.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// What stands in a secret's place.
pub(super) const REMOVED: &str = "<removed>";

/// Each has the secret as its group `secret`.
const PATTERNS: [&str; 6] = [
    // Certificates are no secret, keys are.
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?P<secret>(?s:.*?))-----END",
    // `PASSWORD=x`, `password: x`, `"token": "x"`, `password "x";`, `--etcd-password x`, `client-key-data: x`.
    r#"(?im)[a-z0-9_.-]*(?:password|passwd|passphrase|secret|token|api_?key|private_?key|key-data|credential)[a-z0-9_-]*["']?\s*[:=\s]\s*(?P<secret>"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s,;}\]"']+)"#,
    // Headers of HTTP.
    r"(?i)authorization:\s*(?P<secret>[^\r\n]+)",
    r"(?i)\bbearer\s+(?P<secret>[A-Za-z0-9._~+/=-]{8,})",
    // `https://user:password@host`
    r"://[^/\s:@]*:(?P<secret>[^/\s@]+)@",
    // Tokens of service accounts, wherever they stand.
    r"(?P<secret>\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+)",
];

static COMPILED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let compiled = PATTERNS.iter().map(|pattern| Regex::new(pattern));
    compiled
        .collect::<Result<_, _>>()
        .expect("the patterns are right, as a test shows")
});

/// The text without what looks like a secret.
pub(super) fn remove(text: &str) -> String {
    let mut text = text.to_owned();
    for pattern in COMPILED.iter() {
        if !pattern.is_match(&text) {
            continue;
        }
        let replaced = pattern.replace_all(&text, |found: &Captures<'_>| {
            let (Some(all), Some(secret)) = (found.get(0), found.name("secret")) else {
                return REMOVED.to_owned();
            };
            let before = &all.as_str()[..secret.start() - all.start()];
            let after = &all.as_str()[secret.end() - all.start()..];
            format!("{before}{REMOVED}{after}")
        });
        text = replaced.into_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(remove(text), expected, "{text}");
        assert_eq!(remove(expected), expected, "once more");
    }

    #[test]
    fn secrets_go_in_whatever_form_they_are_written() {
        check("ETCD_PASSWORD=hunter2 x", "ETCD_PASSWORD=<removed> x");
        check("  password: hunter2\nb: c", "  password: <removed>\nb: c");
        check(
            r#"{"token": "abc", "a": 1}"#,
            r#"{"token": <removed>, "a": 1}"#,
        );
        check(r#"  password "a \" b";"#, "  password <removed>;");
        check("--etcd-password hunter2", "--etcd-password <removed>");
        check("client-key-data: TFMwd", "client-key-data: <removed>");
        check("https://u:p@h:1/", "https://u:<removed>@h:1/");
        check("Authorization: Basic YTpi", "Authorization: <removed>");
        check("'Bearer abcdefghijkl'", "'Bearer <removed>'");
        check(
            "-----BEGIN EC PRIVATE KEY-----\nab\ncd\n-----END EC PRIVATE KEY-----",
            "-----BEGIN EC PRIVATE KEY-----<removed>-----END EC PRIVATE KEY-----",
        );
        check(
            "x eyJhbGciOiJSUzI1NiJ9x.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2ln y",
            "x <removed> y",
        );
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "chain cali-tw-cali1 { jump cali-pri-kns.shop }",
            "https://h:2379/ and a:b@c",
            "ip saddr 10.0.0.1 drop",
            "-----BEGIN CERTIFICATE-----\nab\n-----END CERTIFICATE-----",
        ] {
            assert_eq!(remove(text), text);
        }
    }
}
