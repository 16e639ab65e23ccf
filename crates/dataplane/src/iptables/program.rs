//! The programs that the driver runs, and what went wrong when one fails.

use std::borrow::Cow;
use std::env;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use tortie_variables as variables;

use crate::Error;

/// Where the programs are, if the search path does not say so: daemons are often started without these.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin"];

/// What legacy iptables reads the place of its lock from.
const LOCK_FILE_VARIABLE: &str = variables::XTABLES_LOCKFILE;

/// A program on this machine.
#[derive(Debug, Clone)]
pub(super) struct Program {
    path: PathBuf,
    lock_file: Option<PathBuf>,
}

/// A program could not be run, or said that it failed.
#[derive(Debug)]
pub(super) struct Failure {
    program: String,
    /// The exit code, if it had one.
    pub(super) code: Option<i32>,
    /// What it said, with the line of the input that it was about.
    pub(super) message: String,
    /// The number of that line, from zero.
    pub(super) line: Option<usize>,
}

// === impl Program ===

impl Program {
    /// The program of that name, if there is one.
    pub(super) fn find(name: &str) -> Option<Self> {
        let search_path = env::var_os(variables::PATH).unwrap_or_default();
        let folders = env::split_paths(&search_path).chain(SYSTEM_FOLDERS.map(PathBuf::from));
        let path = folders
            .map(|folder| folder.join(name))
            .find(|path| path.is_file())?;
        Some(Self {
            path,
            lock_file: None,
        })
    }

    /// With this file as the lock of legacy iptables.
    pub(super) fn with_lock_file(mut self, lock_file: PathBuf) -> Self {
        self.lock_file = Some(lock_file);
        self
    }

    /// Its name, without the folder.
    pub(super) fn name(&self) -> Cow<'_, str> {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        name.to_string_lossy()
    }

    /// Runs it in the network namespace of this thread, and gives what it printed.
    pub(super) fn run(&self, arguments: &[&str], input: &str) -> Result<String, Failure> {
        let output = self
            .output(arguments, input)
            .map_err(|error| self.failure(None, error.to_string(), None))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        let (message, line) = match explain(&complaint, input) {
            (message, line) if message.is_empty() => (output.status.to_string(), line),
            explained => explained,
        };
        Err(self.failure(output.status.code(), message, line))
    }

    fn output(&self, arguments: &[&str], input: &str) -> io::Result<Output> {
        let mut command = Command::new(&self.path);
        command
            .args(arguments)
            .env(variables::LC_ALL, "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(lock_file) = &self.lock_file {
            command.env(LOCK_FILE_VARIABLE, lock_file);
        }
        if input.is_empty() {
            return command.output();
        }
        let mut child = command.stdin(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take();
        thread::scope(|scope| {
            // The program may print before it has read all: neither side may wait for the other.
            let writer = thread::Builder::new().spawn_scoped(scope, move || match stdin {
                Some(mut stdin) => stdin.write_all(input.as_bytes()),
                None => Ok(()),
            });
            let output = child.wait_with_output()?;
            let written = writer?
                .join()
                .unwrap_or_else(|_| Err(io::Error::other("the writer of the input panicked")));
            // A program that fails stops reading; then its own words matter.
            if output.status.success() {
                written?;
            }
            Ok(output)
        })
    }

    fn failure(&self, code: Option<i32>, message: String, line: Option<usize>) -> Failure {
        Failure {
            program: self.name().into_owned(),
            code,
            message,
            line,
        }
    }
}

// === impl Failure ===

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Program {
            program: failure.program,
            message: failure.message,
        }
    }
}

/// Whether programs may use the file as a lock; it is created if need be.
pub(super) fn is_usable_lock(path: &Path) -> bool {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true).open(path).is_ok()
}

/// Whether the place of the lock was already chosen for this process and all it starts.
pub(super) fn is_lock_chosen() -> bool {
    env::var_os(LOCK_FILE_VARIABLE).is_some()
}

/// What a program complained about, in one line, with the line of its input that it names, and where that is.
fn explain(complaint: &str, input: &str) -> (String, Option<usize>) {
    // `ip6tables` warns of rules for an authentication header, also where it is kept by nftables and they do match.
    const NO_NEWS: [&str; 3] = [
        "Try `",
        "Ignoring deprecated",
        "Warning: never matched protocol",
    ];
    let is_news =
        |line: &&str| !line.is_empty() && !NO_NEWS.iter().any(|start| line.starts_with(start));
    let lines: Vec<&str> = complaint.lines().map(str::trim).filter(is_news).collect();
    let said = lines.join("; ");
    match culprit(&said, input) {
        Some((at, line)) => (format!("{said}: `{line}`"), Some(at)),
        None => (said, None),
    }
}

/// The line that is to blame, and where it is.
fn culprit<'a>(said: &str, input: &'a str) -> Option<(usize, &'a str)> {
    let at = line_number(said)?.checked_sub(1)?;
    let line = input.lines().nth(at)?;
    if line != "COMMIT" {
        return Some((at, line));
    }
    // What refers to a chain that does not exist is noticed only when the table is complete.
    let name = said.split('\'').nth(1)?;
    let earlier: Vec<(usize, &str)> = input.lines().take(at).enumerate().collect();
    let mut refers = earlier.into_iter().rev();
    refers.find(|(_, line)| line.split(' ').any(|word| word == name))
}

/// The number in `line: 8`, `line 8`, `Line 8`.
fn line_number(said: &str) -> Option<usize> {
    let mut places = said.match_indices("line");
    places.find_map(|(at, word)| {
        let rest = said[at + word.len()..].trim_start_matches([':', ' ']);
        let digits = rest.find(|c: char| !c.is_ascii_digit());
        rest[..digits.unwrap_or(rest.len())].parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: &str = "*filter\n-A cali-b -g nosuch\n-A cali-c -j FOO\nCOMMIT\n";

    #[track_caller]
    fn check(complaint: &str, expected: &str) {
        assert_eq!(explain(complaint, INPUT).0, expected);
    }

    #[test]
    fn warnings_of_rules_that_are_right_are_not_part_of_it() {
        check(
            "Warning: never matched protocol: 51. use extension match instead.\nError occurred at line: 3\n",
            "Error occurred at line: 3: `-A cali-c -j FOO`",
        );
    }

    #[test]
    fn the_line_that_is_named_is_quoted() {
        check(
            "iptables-restore v1.8.9 (legacy): goto 'nosuch' is not a chain\nError occurred at line: 2\n\
             Try `iptables-restore -h' or 'iptables-restore --help' for more information.\n",
            "iptables-restore v1.8.9 (legacy): goto 'nosuch' is not a chain; Error occurred at line: 2: \
             `-A cali-b -g nosuch`",
        );
        check(
            "iptables-restore: line 3 failed\n",
            "iptables-restore: line 3 failed: `-A cali-c -j FOO`",
        );
    }

    #[test]
    fn what_is_noticed_at_the_end_is_looked_for() {
        check(
            "Chain 'nosuch' does not exist\nError occurred at line: 4\n",
            "Chain 'nosuch' does not exist; Error occurred at line: 4: `-A cali-b -g nosuch`",
        );
    }

    #[test]
    fn a_complaint_about_no_line_is_kept() {
        check("Permission denied\n", "Permission denied");
        check("failed at line 99", "failed at line 99");
        check("online", "online");
    }
}
