//! Booleans that are written as text, in the dialects of those who write them.

/// A boolean as Go's `strconv.ParseBool` reads it: what Kubernetes' API, stored objects and the controllers' variables have.
pub fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A boolean as Felix and the start of a node read it, in any case: all of Go's words and a few of YAML's.
pub fn felix_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "y" | "t" => Some(true),
        "false" | "0" | "no" | "n" | "f" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{felix_bool, go_bool};

    #[track_caller]
    fn check(text: &str, go: Option<bool>, felix: Option<bool>) {
        assert_eq!((go_bool(text), felix_bool(text)), (go, felix), "{text:?}");
    }

    #[test]
    fn the_dialects_differ_in_yes_and_in_case() {
        for (word, value) in [("true", true), ("True", true), ("1", true), ("F", false)] {
            check(word, Some(value), Some(value));
        }
        check("tRUE", None, Some(true));
        check("yes", None, Some(true));
        check("N", None, Some(false));
        for word in ["", "on", " true", "enabled", "2"] {
            check(word, None, None);
        }
    }
}
