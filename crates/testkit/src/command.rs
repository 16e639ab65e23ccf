//! Runs the command line tools that belong to the servers, apart from the user's environment.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{ErrorKind, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    thread,
};

use crate::error::{Error, Result, cannot};

/// Where programs are looked for if the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How a command ended and what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The program and its arguments, for messages.
    pub command: String,
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to its standard output.
    pub stdout: String,
    /// What it wrote to its standard error.
    pub stderr: String,
}

impl Output {
    /// Whether it ended with exit status 0.
    pub fn success(&self) -> bool {
        self.status.success()
    }

    /// Its standard output, or [`Error::Failed`] where it did not succeed.
    pub fn into_stdout(self) -> Result<String> {
        if self.success() {
            return Ok(self.stdout);
        }
        Err(Error::Failed {
            command: self.command,
            status: self.status,
            stderr: self.stderr.trim_end().to_owned(),
        })
    }
}

/// A command for a program found in `PATH` or given by its path, with an environment of only `PATH`
/// and `HOME`.
pub(crate) fn command(program: impl AsRef<OsStr>, home: &Path) -> Result<Command> {
    let mut command = Command::new(find(program.as_ref())?);
    command
        .env_clear()
        .env("PATH", search_path())
        .env("HOME", home);
    Ok(command)
}

/// Fails where a program is missing, for one that is needed later.
pub(crate) fn require(program: impl AsRef<OsStr>) -> Result<()> {
    find(program.as_ref()).map(drop)
}

/// Runs a command to its end, with `input` as its standard input.
pub(crate) fn run(mut command: Command, input: &[u8]) -> Result<Output> {
    let text = describe(&command);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot(format!("start `{text}`")))?;
    let mut stdin = child.stdin.take().expect("its standard input is piped");
    // Written beside the reading: a command may write much before it has read all.
    let output = thread::scope(|scope| {
        let writer = scope.spawn(move || match stdin.write_all(input) {
            // It may also end without having read its input; its status tells whether that was an
            // error.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        });
        let output = child.wait_with_output();
        writer.join().expect("writing does not panic").and(output)
    })
    .map_err(cannot(format!("talk to `{text}`")))?;
    Ok(Output {
        command: text,
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// The program's name without its folder, and its arguments.
fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    let words = std::iter::once(name).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

fn find(program: &OsStr) -> Result<PathBuf> {
    let found = if Path::new(program).is_absolute() {
        Some(PathBuf::from(program))
    } else {
        env::split_paths(&search_path())
            .map(|folder| folder.join(program))
            .find(|p| is_program(p))
    };
    found
        .filter(|path| is_program(path))
        .ok_or_else(|| Error::Missing {
            program: program.to_string_lossy().into_owned(),
        })
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn search_path() -> OsString {
    env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut shell = command("sh", Path::new("/")).unwrap();
        shell.args(["-c", script]);
        shell
    }

    #[test]
    fn a_missing_program_is_named_with_the_way_to_get_it() {
        for program in ["tortie-no-such-program", "/nonexistent/kube-apiserver"] {
            let message = command(program, Path::new("/")).unwrap_err().to_string();
            assert!(
                message.contains(program) && message.contains("setup/test-deps"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_failure_keeps_status_and_stderr() {
        let output = run(shell("echo out; echo because >&2; exit 3"), b"").unwrap();
        assert_eq!(
            (output.status.code(), output.stdout.as_str()),
            (Some(3), "out\n")
        );
        let message = output.into_stdout().unwrap_err().to_string();
        assert!(message.contains("exit status: 3: because"), "{message}");
    }

    #[test]
    fn input_longer_than_a_pipe_goes_through_and_may_stay_unread() {
        let long = vec![b'x'; 1 << 20];
        assert_eq!(run(shell("cat"), &long).unwrap().stdout.len(), long.len());
        assert!(run(shell("exit 0"), &long).unwrap().success());
    }

    #[test]
    fn only_path_and_home_are_passed_on() {
        let output = run(
            shell("env | cut -d= -f1 | grep -v -e PWD -e _ -e SHLVL | sort"),
            b"",
        );
        assert_eq!(output.unwrap().stdout, "HOME\nPATH\n");
    }
}
