//! Labels that Mesos gives to a container: any text, made into what labels may be.

use tortie_api::meta::Metadata;

use crate::config::NetworkConfig;

const NAMESPACE: &str = "projectcalico.org/namespace";

/// Gives an endpoint the labels of the configuration. One of them says the namespace.
pub(crate) fn of_mesos(config: &NetworkConfig, metadata: &mut Metadata) {
    for label in config.mesos_labels() {
        let value = sanitized(&label.value);
        if label.key == NAMESPACE {
            metadata.namespace = value;
        } else {
            metadata.labels.insert(sanitized(&label.key), value);
        }
    }
}

/// A text with only what labels may have: `/` becomes `.`, other letters `-`, and a run of `.` and `-` with a `.` in it
/// one `.`; neither is left at the ends.
fn sanitized(text: &str) -> String {
    let mut plain = String::new();
    for letter in text.chars() {
        match letter {
            '/' => plain.push('.'),
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '.' | '-' => plain.push(letter),
            // One for a whole run of what cannot be.
            _ if plain.ends_with(MARK) => {}
            _ => plain.push(MARK),
        }
    }
    let plain = plain.replace(MARK, "-");
    let mut out = String::new();
    let mut rest = plain.as_str();
    while let Some(start) = rest.find(['.', '-']) {
        out.push_str(&rest[..start]);
        let run = &rest[start..];
        let end = run.find(|c| c != '.' && c != '-').unwrap_or(run.len());
        let run = &run[..end];
        out.push_str(if run.contains('.') { "." } else { run });
        rest = &rest[start + end..];
    }
    out.push_str(rest);
    out.trim_matches(['.', '-']).to_owned()
}

/// Stands for what cannot be until a run of it is over.
const MARK: char = '\u{1}';

#[cfg(test)]
mod tests {
    use super::sanitized;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(sanitized(text), expected, "{text}");
    }

    #[test]
    fn any_text_becomes_what_labels_may_be() {
        check("plain_1", "plain_1");
        check("a/b", "a.b");
        check("a b", "a-b");
        check("a  é b", "a-b");
        check("a--b", "a--b");
        check("a-.-b", "a.b");
        check("a..b", "a.b");
        check("-.a.-", "a");
        check("", "");
        check("$$$", "");
        check("a\u{1}\u{1}b", "a-b");
    }
}
