//! How errors look.

use std::fmt::Write as _;

use tortie_api::Problems;
use tortie_error::Causes;
use tortie_store::Error;

use crate::input::Origin;

/// An error with its causes on one line, and the problems of an invalid object on lines of their own.
pub(crate) fn error(error: &anyhow::Error) -> String {
    if let Some(Error::Invalid { key, problems }) = error.downcast_ref::<Error>() {
        return problem_lines(&format!("Error: {key}"), problems);
    }
    format!("Error: {}", causes(error))
}

/// An error with its causes on one line.
pub(crate) fn causes(error: &anyhow::Error) -> String {
    Causes(&**error).to_string()
}

/// One line per problem, each after the place, with the caret of a selector below it.
pub(crate) fn problem_lines(place: &str, problems: &Problems) -> String {
    lines(problems, |_| place.to_owned())
}

/// The same for an object of a file, with the line of each field.
pub(crate) fn problem_lines_of(origin: &Origin, object: &str, problems: &Problems) -> String {
    lines(problems, |field| {
        format!("{}: {object}", origin.place_of(field))
    })
}

fn lines(problems: &Problems, place: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    for problem in problems {
        if !text.is_empty() {
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = write!(text, "{}: {problem}", place(&problem.field));
        for line in problem.detail.iter().flat_map(|detail| detail.lines()) {
            let _ = write!(text, "\n    {line}");
        }
    }
    text
}

/// A store's error with its causes, about an object that the place names already.
pub(crate) fn store_error(place: &str, error: &Error) -> String {
    match error {
        Error::Invalid { problems, .. } => return problem_lines(place, problems),
        Error::Unsupported { reason, .. } => return format!("{place}: {reason}"),
        _ => {}
    }
    format!("{place}: {}", Causes(error))
}
