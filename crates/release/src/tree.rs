//! Files by their paths, and the archive of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use tar::{Builder, EntryType, Header};

/// Files by their paths, which do not begin with a slash.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, File>,
    folders: BTreeSet<String>,
}

/// What stands under a path.
#[derive(Debug, Clone)]
pub(crate) struct File {
    bytes: Vec<u8>,
    is_program: bool,
}

impl File {
    pub(crate) fn program(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            is_program: true,
        }
    }

    pub(crate) fn data(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            is_program: false,
        }
    }
}

impl Tree {
    pub(crate) fn put(&mut self, path: &str, file: File) {
        let mut folder = path;
        while let Some((above, _)) = folder.rsplit_once('/') {
            self.folders.insert(above.to_owned());
            folder = above;
        }
        self.files.insert(path.to_owned(), file);
    }

    pub(crate) fn put_text(&mut self, path: &str, text: &str) {
        self.put(path, File::data(text.as_bytes().to_vec()));
    }

    pub(crate) fn put_program(&mut self, path: &str, from: &Path) -> Result<()> {
        let read = fs::read(from);
        let bytes = read.with_context(|| format!("{} cannot be read", from.display()))?;
        self.put(path, File::program(bytes));
        Ok(())
    }

    /// An empty one.
    pub(crate) fn make_folder(&mut self, path: &str) {
        let mut folder = path;
        loop {
            self.folders.insert(folder.to_owned());
            match folder.rsplit_once('/') {
                Some((above, _)) => folder = above,
                None => return,
            }
        }
    }

    /// What the program writes of its own command line.
    pub(crate) fn put_pages(&mut self, program: &Path) -> Result<()> {
        let folder = std::env::temp_dir().join(format!("tortie-pages-{}", std::process::id()));
        let pages = pages(program, &folder);
        let _ = fs::remove_dir_all(&folder);
        for (name, text) in pages? {
            self.put_text(&format!("usr/share/man/man1/{name}"), &text);
        }
        Ok(())
    }

    pub(crate) fn put_completions(&mut self, program: &Path) -> Result<()> {
        for (shell, path) in [
            ("bash", "usr/share/bash-completion/completions/tortie"),
            ("zsh", "usr/share/zsh/vendor-completions/_tortie"),
            ("fish", "usr/share/fish/vendor_completions.d/tortie.fish"),
        ] {
            let text = output(Command::new(program).args(["completion", shell]))?;
            self.put_text(path, &text);
        }
        Ok(())
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &File)> {
        self.files.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// How much room it takes when it is unpacked, in KiB.
    pub(crate) fn size(&self) -> usize {
        let sizes = self.files.values().map(|file| file.bytes.len());
        sizes.map(|size| size.div_ceil(1024)).sum()
    }

    /// As an archive, in which everything is root's and of one time.
    pub(crate) fn tar(&self, time: u64) -> Result<Vec<u8>> {
        let mut archive = Builder::new(Vec::new());
        for folder in &self.folders {
            let mode = if folder == "tmp" { 0o1777 } else { 0o755 };
            let mut header = header(EntryType::Directory, mode, 0, time);
            archive.append_data(&mut header, format!("{folder}/"), &[][..])?;
        }
        for (path, file) in &self.files {
            let mode = if file.is_program { 0o755 } else { 0o644 };
            let mut header = header(EntryType::Regular, mode, file.bytes.len() as u64, time);
            archive.append_data(&mut header, path, &file.bytes[..])?;
        }
        Ok(archive.into_inner()?)
    }
}

fn header(kind: EntryType, mode: u32, size: u64, time: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn pages(program: &Path, folder: &Path) -> Result<Vec<(String, String)>> {
    output(Command::new(program).args(["man", "--output"]).arg(folder))?;
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        pages.push((name.into_owned(), fs::read_to_string(&path)?));
    }
    Ok(pages)
}

/// What a command prints.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let ran = command.output();
    let ran = ran.with_context(|| format!("{command:?} cannot be started"))?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        bail!("{command:?}: {}", said.trim());
    }
    Ok(String::from_utf8(ran.stdout)?)
}
