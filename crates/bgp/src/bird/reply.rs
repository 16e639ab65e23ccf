//! The form of BIRD's answers: lines with codes of four digits.
//!
//! ```text
//! 1002-device1    Device     ---        up     02:02:44.249     more lines follow
//!  direct1    Direct     ---        up     02:02:44.249         of the same code
//! 0000                                                          the last line
//! +2026-11-19 02:02:44.249 <INFO> Started                       a line of the log, which is no part of the answer
//! ```
//!
//! Codes that begin with 0 are results, with 1 tables, with 2 their headings, with 8 errors while a command is carried
//! out, and with 9 errors in how it is written.

/// What is shown of a line that cannot be read.
const SHOWN: usize = 80;

/// One whole answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// In their order; never empty in an answer of BIRD.
    pub lines: Vec<Line>,
}

/// A line, without its code and what separates both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub code: u16,
    pub text: String,
}

/// Takes bytes as they come, and gives an answer when it is complete.
#[derive(Debug, Default)]
pub struct Decoder {
    lines: Vec<Line>,
    /// What has no end yet.
    rest: Vec<u8>,
}

/// Bytes that are no answer: the line, shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed(pub String);

impl Reply {
    /// The code of the last line, which says what became of the command.
    pub fn code(&self) -> u16 {
        self.lines.last().map_or(0, |line| line.code)
    }

    /// The text of the last line.
    pub fn message(&self) -> &str {
        self.lines.last().map_or("", |line| line.text.trim())
    }

    /// Whether BIRD says no.
    pub fn is_error(&self) -> bool {
        self.code() >= 8000
    }

    /// The first line of a code.
    pub fn line_of(&self, code: u16) -> Option<&str> {
        let line = self.lines.iter().find(|line| line.code == code)?;
        Some(line.text.trim())
    }

    /// The answer in these bytes, if they are one and no more.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let reply = Decoder::default().push(bytes)?;
        reply.ok_or_else(|| Malformed("an answer without an end".to_owned()))
    }
}

impl Decoder {
    /// Takes more bytes. The answer is given once, when its last line is there; more than that line is an error, since
    /// nothing was asked yet that it could be the answer to.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<Reply>, Malformed> {
        let mut bytes = bytes;
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let whole = std::mem::take(&mut self.rest);
            let text = String::from_utf8_lossy(&whole);
            let is_last = self.line(text.trim_end_matches('\r'))?;
            if !is_last {
                continue;
            }
            // The log may go on.
            if bytes.is_empty() || bytes.starts_with(b"+") {
                let lines = std::mem::take(&mut self.lines);
                return Ok(Some(Reply { lines }));
            }
            return Err(malformed(&String::from_utf8_lossy(bytes)));
        }
        self.rest.extend_from_slice(bytes);
        Ok(None)
    }

    /// Takes a line, and says whether it is the last.
    fn line(&mut self, line: &str) -> Result<bool, Malformed> {
        if line.starts_with('+') {
            return Ok(false);
        }
        if let (Some(text), Some(before)) = (line.strip_prefix(' '), self.lines.last()) {
            let (code, text) = (before.code, text.to_owned());
            self.lines.push(Line { code, text });
            return Ok(false);
        }
        let (Some(code), Some(separator)) = (line.get(..4), line.get(4..5)) else {
            return Err(malformed(line));
        };
        if !code.bytes().all(|byte| byte.is_ascii_digit()) || ![" ", "-"].contains(&separator) {
            return Err(malformed(line));
        }
        let code = code.parse().map_err(|_| malformed(line))?;
        let text = line.get(5..).unwrap_or_default().to_owned();
        self.lines.push(Line { code, text });
        Ok(separator == " ")
    }
}

fn malformed(line: &str) -> Malformed {
    let line = line.lines().next().unwrap_or_default();
    Malformed(line.chars().take(SHOWN).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &str, expected: &[(u16, &str)]) {
        let reply = Reply::parse(bytes.as_bytes()).unwrap();
        let lines: Vec<_> = reply
            .lines
            .iter()
            .map(|line| (line.code, line.text.as_str()))
            .collect();
        assert_eq!(lines, expected);
        // The same, however it is cut.
        for cut in 0..bytes.len() {
            let mut decoder = Decoder::default();
            assert_eq!(decoder.push(&bytes.as_bytes()[..cut]), Ok(None));
            assert_eq!(
                decoder.push(&bytes.as_bytes()[cut..]),
                Ok(Some(reply.clone()))
            );
        }
    }

    #[track_caller]
    fn check_refused(bytes: &str, line: &str) {
        let refused = Reply::parse(bytes.as_bytes());
        assert_eq!(refused, Err(Malformed(line.to_owned())));
    }

    #[test]
    fn lines_without_a_code_have_that_of_the_line_before() {
        check(
            "1002-a\n b\n \n1006-c\n \td\n0000 \n",
            &[
                (1002, "a"),
                (1002, "b"),
                (1002, ""),
                (1006, "c"),
                (1006, "\td"),
                (0, ""),
            ],
        );
    }

    #[test]
    fn one_line_is_an_answer() {
        check("0001 BIRD 2.0.12 ready.\n", &[(1, "BIRD 2.0.12 ready.")]);
        check("8001 Network not found\r\n", &[(8001, "Network not found")]);
    }

    #[test]
    fn lines_of_the_log_are_no_part_of_it() {
        check(
            "+log\n1000-a\n+log\n b\n0013 c\n",
            &[(1000, "a"), (1000, "b"), (13, "c")],
        );
        let reply = Reply::parse(b"0000 \n+log").unwrap();
        assert_eq!(reply.code(), 0);
    }

    #[test]
    fn what_is_no_answer_is_shown() {
        check_refused("HTTP/1.1 400 Bad Request\n", "HTTP/1.1 400 Bad Request");
        check_refused(" first\n", " first");
        check_refused("000\n", "000");
        check_refused("00é0 x\n", "00é0 x");
        check_refused("0000 \n0000 \n", "0000 ");
        check_refused("0000", "an answer without an end");
        check_refused(&format!("{}\n", "x".repeat(500)), &"x".repeat(SHOWN));
    }

    #[test]
    fn errors_are_told_from_results() {
        let code = |text: &str| {
            let reply = Reply::parse(text.as_bytes()).unwrap();
            (reply.code(), reply.message().to_owned(), reply.is_error())
        };
        let message = "/a:1:2 syntax error".to_owned();
        let refused = "0002-Reading configuration from /a\n8002 /a:1:2 syntax error\n";
        assert_eq!(code(refused), (8002, message, true));
        assert_eq!(
            code("0003 Reconfigured\n"),
            (3, "Reconfigured".to_owned(), false)
        );
    }
}
