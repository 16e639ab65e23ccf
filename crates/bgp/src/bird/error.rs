//! What can go wrong between us and BIRD.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The result of something that BIRD is needed for.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why BIRD did not do what it was asked, or what it said cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody listens on the socket, or it may not be opened.
    #[error("BIRD cannot be reached through its socket {}", .socket.display())]
    Unreachable {
        socket: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The connection broke before an answer was complete.
    #[error("BIRD ended the connection instead of answering `{command}`")]
    Lost {
        command: String,
        #[source]
        source: io::Error,
    },
    /// It is too busy, or stuck.
    #[error("BIRD did not answer `{command}` within {:.1} s", .after.as_secs_f64())]
    Silent { command: String, after: Duration },
    /// The answer is longer than what is read.
    #[error("BIRD's answer to `{command}` is longer than {limit} bytes")]
    TooLong { command: String, limit: usize },
    /// What listens on the socket does not speak BIRD's protocol.
    #[error("BIRD's answer to `{command}` is not in the form of its protocol: `{line}`")]
    Malformed { command: String, line: String },
    /// BIRD says no.
    #[error("BIRD refused `{command}`: {code:04} {message}")]
    Refused {
        command: String,
        code: u16,
        message: String,
    },
    /// An answer in the right form, but not one to this command.
    #[error("BIRD answered `{command}` with {code:04} `{message}`; expected {expected}")]
    Unexpected {
        command: String,
        code: u16,
        message: String,
        expected: &'static str,
    },
    /// Such a command cannot be written.
    #[error("`{value}` cannot be part of a command to BIRD: {reason}")]
    Unspeakable { value: String, reason: &'static str },
    /// BIRD's parser has an objection; what was in force stays.
    #[error("BIRD refuses the new configuration: {0}")]
    Config(Problem),
    /// A file or folder cannot be used.
    #[error("cannot {action} {}", .path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The program cannot be run.
    #[error("cannot run {}", .program.display())]
    Program {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    /// It ended before it listened on its socket.
    #[error("BIRD ended while it started: {reason}")]
    Ended { reason: String },
    /// Somebody else's BIRD has the socket.
    #[error(
        "the BIRD behind {} reads {}, not {}; give one of them another socket", .socket.display(), .theirs.display(), .ours.display()
    )]
    Foreign {
        socket: PathBuf,
        theirs: PathBuf,
        ours: PathBuf,
    },
    /// It cannot be watched.
    #[error("the process of the BIRD behind {} cannot be seen from here; run both in one process namespace, or do not have it supervised", .socket.display())]
    Hidden { socket: PathBuf },
}

/// What BIRD's parser has to object to in a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file and the place in it, where BIRD told them.
    pub place: Option<Place>,
    pub message: String,
}

/// A place in a configuration file; lines and columns begin with 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub file: PathBuf,
    pub line: u32,
    pub column: Option<u32>,
}

impl Error {
    /// There is no BIRD, or none that answers.
    pub fn is_absence(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Lost { .. } | Self::Silent { .. }
        )
    }

    /// The code of BIRD's refusal.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    pub(super) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }
}

impl Problem {
    /// Reads `FILE:LINE:COLUMN MESSAGE`; a text of another form is the message.
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        match Place::split(text) {
            Some((place, message)) => Self {
                place: Some(place),
                message: message.to_owned(),
            },
            None => Self {
                place: None,
                message: text.to_owned(),
            },
        }
    }
}

impl Place {
    fn split(text: &str) -> Option<(Self, &str)> {
        // Names of files may hold colons, spaces and numbers: the first place that is followed by a message counts.
        let mut at = 0;
        loop {
            at += text.get(at..)?.find(':')?;
            if let Some((line, column, message)) = numbers(text.get(at + 1..)?) {
                let file = PathBuf::from(text.get(..at)?);
                return Some((Self { file, line, column }, message));
            }
            at += 1;
        }
    }
}

/// `LINE:COLUMN MESSAGE` or `LINE MESSAGE`.
fn numbers(text: &str) -> Option<(u32, Option<u32>, &str)> {
    let (place, message) = text.split_once(' ')?;
    let (line, column) = match place.split_once(':') {
        Some((line, column)) => (line, Some(column.parse().ok()?)),
        None => (place, None),
    };
    Some((line.parse().ok()?, column, message.trim()))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{}:{}:", place.file.display(), place.line)?;
            if let Some(column) = place.column {
                write!(f, "{column}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, u32, Option<u32>)>, message: &str) {
        let problem = Problem::parse(text);
        let place = problem
            .place
            .as_ref()
            .map(|place| (place.file.to_str().unwrap(), place.line, place.column));
        assert_eq!(place, expected, "{text}");
        assert_eq!(problem.message, message, "{text}");
    }

    #[test]
    fn file_line_and_column_are_found() {
        check(
            "/tmp/bad.conf:21:24 syntax error, unexpected '}'",
            Some(("/tmp/bad.conf", 21, Some(24))),
            "syntax error, unexpected '}'",
        );
        check(
            "/a:1/b c.conf:7 wrong",
            Some(("/a:1/b c.conf", 7, None)),
            "wrong",
        );
    }

    #[test]
    fn a_message_without_a_place_stays_whole() {
        check(
            "/tmp/nosuch: No such file or directory",
            None,
            "/tmp/nosuch: No such file or directory",
        );
        check("", None, "");
        check("a:x:1: y", None, "a:x:1: y");
    }

    #[test]
    fn a_problem_is_shown_as_compilers_do() {
        let shown = Problem::parse("a.conf:3:14 syntax error").to_string();
        assert_eq!(shown, "a.conf:3:14: syntax error");
    }
}
