//! The configuration that BIRD reads: checked before it is used, replaced as a whole, and only on change.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use super::error::{Error, Problem, Result};
use super::socket::Socket;

/// The folder beside the files where new ones stand until BIRD has taken them.
const CANDIDATE: &str = "candidate";

/// Files hold passwords of sessions.
const FOLDER_MODE: u32 = 0o700;

/// How long BIRD's parser may take. 5,000 peers take a fraction of a second.
const PARSER_LIMIT: Duration = Duration::from_mins(1);

/// The files of a configuration in one folder, which is nobody else's.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    folder: PathBuf,
    /// The one that BIRD is started with; it may include the others.
    main: String,
    parser: Parser,
}

/// Who checks a configuration before it is used.
#[derive(Debug, Clone)]
pub enum Parser {
    /// The program `bird`, run for it.
    Program(PathBuf),
    /// A BIRD that runs, which reads the same files.
    Running(Socket),
}

/// The texts of all files, by name.
pub type Texts = BTreeMap<String, String>;

/// A new configuration that BIRD's parser has no objection to, beside the one in place.
#[derive(Debug)]
pub struct Candidate<'a> {
    config: &'a ConfigFile,
    texts: Texts,
}

impl ConfigFile {
    /// `main` is the path of the file that BIRD is started with.
    pub fn new(main: &Path, parser: Parser) -> Result<Self> {
        let name = main.file_name().and_then(|name| name.to_str());
        let (Some(folder), Some(name)) = (main.parent(), name) else {
            return Err(Error::Unspeakable {
                value: main.display().to_string(),
                reason: "it is not the path of a file, in UTF-8",
            });
        };
        Ok(Self {
            folder: folder.to_owned(),
            main: name.to_owned(),
            parser,
        })
    }

    /// The path of the file that BIRD is started with.
    pub fn main(&self) -> PathBuf {
        self.folder.join(&self.main)
    }

    /// Whether there is a configuration at all.
    pub fn exists(&self) -> bool {
        self.main().is_file()
    }

    /// Puts new texts beside the ones in place, and has BIRD's parser read them. None if they are in place already. If it
    /// refuses them, they are kept as they are for people to look at, until the next ones.
    pub async fn propose(&self, texts: Texts) -> Result<Option<Candidate<'_>>> {
        if !texts.contains_key(&self.main) {
            return Err(Error::Unspeakable {
                value: texts.keys().cloned().collect::<Vec<_>>().join(", "),
                reason: "the file that BIRD is started with is not among these",
            });
        }
        self.make_folder()?;
        if self.has(&texts)? {
            self.clear_candidate()?;
            return Ok(None);
        }
        self.clear_candidate()?;
        let folder = self.candidate_folder();
        make_private_folder(&folder)?;
        for (name, text) in &texts {
            write(&folder.join(name), text)?;
        }
        self.check(&folder.join(&self.main)).await?;
        Ok(Some(Candidate {
            config: self,
            texts,
        }))
    }

    async fn check(&self, file: &Path) -> Result<()> {
        match &self.parser {
            Parser::Program(program) => run_parser(program, file).await,
            Parser::Running(socket) => socket.configure_check(Some(file)).await.map(drop),
        }
    }

    /// Whether the files in place have these texts, and permissions as they should be.
    fn has(&self, texts: &Texts) -> Result<bool> {
        for (name, text) in texts {
            let path = self.folder.join(name);
            let found = match fs::read(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                found => found.map_err(Error::file("read", &path))?,
            };
            let metadata = fs::metadata(&path).map_err(Error::file("read", &path))?;
            let is_secret = metadata.permissions().mode() & 0o7777 == tortie_files::SECRET;
            if found != text.as_bytes() || !is_secret {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn make_folder(&self) -> Result<()> {
        make_private_folder(&self.folder)
    }

    fn candidate_folder(&self) -> PathBuf {
        self.folder.join(CANDIDATE)
    }

    fn clear_candidate(&self) -> Result<()> {
        let folder = self.candidate_folder();
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::file("remove", folder)(error))
            }
            _ => Ok(()),
        }
    }
}

impl Candidate<'_> {
    /// The file that BIRD can be told to read. Files that it includes are beside it.
    pub fn main(&self) -> PathBuf {
        self.config.candidate_folder().join(&self.config.main)
    }

    /// The new texts are in place from now on. Files that the others include come first: a BIRD that starts in between
    /// finds what the main file refers to.
    pub fn accept(self) -> Result<()> {
        let main = &self.config.main;
        let (first, last): (Vec<_>, Vec<_>) =
            self.texts.iter().partition(|(name, _)| *name != main);
        for (name, text) in first.into_iter().chain(last) {
            write(&self.config.folder.join(name), text)?;
        }
        self.config.clear_candidate()
    }
}

fn make_private_folder(folder: &Path) -> Result<()> {
    let failed = || Error::file("make the folder", folder);
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(FOLDER_MODE).create(folder);
    made.map_err(failed())?;
    // One that was there may be open to others.
    fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE)).map_err(failed())
}

fn write(path: &Path, text: &str) -> Result<()> {
    tortie_files::replace(path, text, tortie_files::SECRET).map_err(Error::file("write", path))
}

/// Runs `bird -p -c FILE`, which reads a configuration and ends.
async fn run_parser(program: &Path, file: &Path) -> Result<()> {
    let failed = |source| Error::Program {
        program: program.to_owned(),
        source,
    };
    let running = Command::new(program)
        .arg("-p")
        .arg("-c")
        .arg(file)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(PARSER_LIMIT, running)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        .map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().find(|line| !line.trim().is_empty());
    let message = match first {
        Some(line) => line.strip_prefix("bird: ").unwrap_or(line).to_owned(),
        None => format!("{} ended with {}", program.display(), output.status),
    };
    Err(Error::Config(Problem::parse(&message)))
}
