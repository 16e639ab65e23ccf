//! Runs the program as a user would.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program with its datastore.
pub(crate) struct Tortie {
    options: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Tortie {
    /// On the embedded datastore, in this folder.
    pub(crate) fn embedded(folder: &Path) -> Self {
        let file = folder.join("data.redb").display().to_string();
        Self {
            options: vec!["--data-file".to_owned(), file],
            variables: Vec::new(),
        }
    }

    /// With these environment variables and nothing else.
    pub(crate) fn with_variables(variables: Vec<(&'static str, String)>) -> Self {
        Self {
            options: Vec::new(),
            variables,
        }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.run_with_input(arguments, "")
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tortie"))
            .args(&self.options)
            .args(arguments)
            .env_clear()
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It may end before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Output {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs and gives the output; a failure fails the test.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        self.run(arguments).expect_success(arguments)
    }

    /// The same, with input.
    #[track_caller]
    pub(crate) fn ok_with_input(&self, arguments: &[&str], input: &str) -> String {
        self.run_with_input(arguments, input)
            .expect_success(arguments)
    }
}

impl Output {
    #[track_caller]
    fn expect_success(self, arguments: &[&str]) -> String {
        assert_eq!(
            self.code, 0,
            "{arguments:?}\n{}{}",
            self.stdout, self.stderr
        );
        self.stdout
    }
}

/// A file beside these tests.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/cli")
        .join(name)
}
