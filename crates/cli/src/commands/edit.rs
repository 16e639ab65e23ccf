//! `tortie edit`: a resource in an editor, until it can be stored.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use tortie_api::{Resource, yaml};
use tortie_client::Client;
use tortie_store::{Error, Key};
use tortie_variables as variables;

use super::kinds;
use crate::args::Edit;
use crate::input;
use crate::output::to_yaml;

/// Where the editor is named, the first that is set.
const EDITORS: [&str; 3] = [variables::KUBE_EDITOR, variables::VISUAL, variables::EDITOR];

const EXPLANATION: &str = "\
Change the resource below, save, and leave the editor. Lines that start with `#` are ignored; a file without any other
line, or one that is not changed, leaves the resource as it is.";

/// What came of the editor's file.
enum Outcome {
    Stored,
    Unchanged,
    /// It cannot be stored as it is; who edits can put that right.
    Refused(String),
}

pub(super) async fn run(args: &Edit, client: &Client) -> Result<ExitCode> {
    let key = key(args)?;
    let mut old = client.get(&key).await?;
    old.metadata_mut().managed_fields = None;
    let file = EditedFile::new(&key)?;
    let mut body = to_yaml(&old)?;
    let mut remarks = EXPLANATION.to_owned();
    loop {
        let written = file.edit(&remarks, &body)?;
        let outcome = store(&written, &old, client).await;
        match outcome {
            Ok(Outcome::Stored) => {
                writeln!(anstream::stdout(), "{key} edited")?;
                file.remove();
                return Ok(ExitCode::SUCCESS);
            }
            Ok(Outcome::Unchanged) => {
                writeln!(anstream::stdout(), "{key} was not changed")?;
                file.remove();
                return Ok(ExitCode::SUCCESS);
            }
            // Who saves the same again has given up.
            Ok(Outcome::Refused(problems)) if written == body && remarks != EXPLANATION => {
                bail!("{key} is not stored: {problems}\n{}", file.kept());
            }
            Ok(Outcome::Refused(problems)) => {
                remarks = format!("{EXPLANATION}\n\nIt is not stored yet:\n{problems}");
                body = written;
            }
            Err(error) => return Err(error.context(file.kept())),
        }
    }
}

fn key(args: &Edit) -> Result<Key> {
    let names: Vec<String> = args.name.iter().cloned().collect();
    let (kind, names) = kinds::parse_with_names(&args.kind, &names)?;
    let [name] = &names[..] else {
        bail!("say which {kind} to edit: one name");
    };
    kinds::key(kind, name, args.namespace.as_deref())
}

/// Stores what was written, if it can be.
async fn store(written: &str, old: &Resource, client: &Client) -> Result<Outcome> {
    let key = Key::of(old);
    let value = match yaml::parse_one(written) {
        Ok(value) if value.is_null() => return Ok(Outcome::Unchanged),
        Ok(value) => value,
        Err(error) => return Ok(Outcome::Refused(format!("not valid YAML: {error}"))),
    };
    let mut new = match input::decode(
        &value,
        Some(&key.namespace)
            .filter(|text| !text.is_empty())
            .map(String::as_str),
    ) {
        Ok(new) => new,
        Err(problems) => return Ok(Outcome::Refused(lines(&problems))),
    };
    if Key::of(&new) != key {
        let refusal = format!("kind, name and namespace must stay {key}");
        return Ok(Outcome::Refused(refusal));
    }
    if new == *old {
        return Ok(Outcome::Unchanged);
    }
    let kept = old.metadata();
    let metadata = new.metadata_mut();
    metadata.resource_version.clone_from(&kept.resource_version);
    metadata.uid.clone_from(&kept.uid);
    metadata
        .creation_timestamp
        .clone_from(&kept.creation_timestamp);
    match client.update(new).await {
        Ok(_) => Ok(Outcome::Stored),
        Err(Error::Invalid { problems, .. }) => Ok(Outcome::Refused(lines(&problems))),
        Err(error @ Error::Conflict(_)) => {
            Err(error).context("somebody else changed it meanwhile; edit what is there now")
        }
        Err(error) => Err(error.into()),
    }
}

fn lines(problems: &tortie_api::Problems) -> String {
    let lines = problems.iter().map(|problem| match &problem.detail {
        Some(detail) => format!("{problem}\n{detail}"),
        None => problem.to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The file that the editor is given.
struct EditedFile(PathBuf);

impl EditedFile {
    fn new(key: &Key) -> Result<Self> {
        let name = format!(
            "tortie-edit-{}-{}-{}.yaml",
            key.kind.as_str().to_ascii_lowercase(),
            key.name.replace(['/', ':'], "-"),
            std::process::id()
        );
        let path = std::env::temp_dir().join(name);
        // Nobody else's file, and for nobody else to read.
        let mut options = fs::OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let made = options.write(true).create_new(true).open(&path);
        made.with_context(|| format!("making {}", path.display()))?;
        Ok(Self(path))
    }

    /// Lets the editor have it, with remarks at its top, and gives what is in it then, without them.
    fn edit(&self, remarks: &str, body: &str) -> Result<String> {
        let mut text = String::new();
        for line in remarks.lines() {
            text.push_str(format!("# {line}").trim_end());
            text.push('\n');
        }
        text.push_str(body);
        fs::write(&self.0, &text).with_context(|| format!("writing {}", self.0.display()))?;
        run_editor(&self.0)?;
        let text =
            fs::read_to_string(&self.0).with_context(|| format!("reading {}", self.0.display()))?;
        let lines = text.split_inclusive('\n');
        Ok(lines.skip_while(|line| line.starts_with('#')).collect())
    }

    fn remove(&self) {
        // What is left behind is one file too many, and nothing else.
        let _ = fs::remove_file(&self.0);
    }

    /// Where to find what was written.
    fn kept(&self) -> String {
        format!("what was written is in {}", self.0.display())
    }
}

fn run_editor(file: &Path) -> Result<()> {
    let mut set = EDITORS.iter().filter_map(std::env::var_os);
    let editor = set.find(|editor| !editor.is_empty());
    let editor = editor.unwrap_or_else(|| OsString::from("vi"));
    // An editor may have options, as in `code --wait`.
    let mut script = editor.clone();
    script.push(" \"$@\"");
    let status = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg("sh")
        .arg(file)
        .status()
        .context("starting the editor")?;
    if !status.success() {
        let editor = editor.to_string_lossy();
        let file = file.display();
        bail!(
            "the editor `{editor}` failed with {status}; its file is {file}, and nothing was stored"
        );
    }
    Ok(())
}
