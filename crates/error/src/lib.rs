//! How an error is printed: with all its causes, each once, on one line.
//!
//! An error's `Display` names its own layer only, and its `source` has the rest. Whoever shows one to people, in a log, a
//! status or on a terminal, shows [`Causes`] of it.

use std::error::Error;
use std::fmt;

/// An error and all its causes: `cannot read a.conf: Permission denied (os error 13)`.
///
/// Errors of other libraries may quote their cause; what an error above has said already is left out.
#[derive(Clone, Copy)]
pub struct Causes<'a>(pub &'a (dyn Error + 'a));

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printed = text_of(self.0);
        for cause in causes_of(self.0) {
            let text = text_of(cause);
            if !printed.contains(&text) {
                printed.push_str(": ");
                printed.push_str(&text);
            }
        }
        f.write_str(&printed)
    }
}

impl fmt::Debug for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An error's own layer. The client of Kubernetes quotes an answer once more, as it is in memory.
fn text_of(error: &dyn Error) -> String {
    const QUOTED: &str = " (Status { ";
    let mut text = error.to_string();
    if let Some(start) = text.find(QUOTED) {
        text.truncate(start);
    }
    text
}

fn causes_of<'a>(error: &'a (dyn Error + 'a)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error for each text, each the cause of the one before.
    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    #[track_caller]
    fn check(texts: &[&'static str], expected: &str) {
        let layers = texts.iter().rev();
        let error = layers.fold(None, |cause, text| Some(Box::new(Layer(text, cause))));
        let error = error.expect("a text");
        assert_eq!(Causes(&*error).to_string(), expected);
    }

    #[test]
    fn an_answer_of_kubernetes_is_not_quoted_twice() {
        let text =
            "ApiError: pods is forbidden: Forbidden (Status { status: Some(Failure), code: 403 })";
        check(&[text], "ApiError: pods is forbidden: Forbidden");
    }

    #[test]
    fn every_cause_is_printed() {
        check(&["a failed"], "a failed");
        check(&["a failed", "b failed", "c"], "a failed: b failed: c");
    }

    #[test]
    fn what_is_quoted_is_printed_once() {
        check(&["a: b failed", "b failed"], "a: b failed");
        check(&["a: c", "b", "c"], "a: c: b");
        check(&["a", "b: c", "c"], "a: b: c");
    }
}
