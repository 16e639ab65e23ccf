//! Credentials for people and programs that the administrator gives them to.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};

use super::files::Folder;
use super::issue::{Authority, Subject};
use super::{Error, Kubeconfig};

/// Whom credentials are for.
#[derive(Debug, Clone)]
pub struct Client {
    /// The name of the user.
    pub user: String,
    /// The groups that the user is in.
    pub groups: Vec<String>,
    /// The namespace of commands that name none.
    pub namespace: Option<String>,
    /// How long they are good for.
    pub lifetime: Lifetime,
    /// Where the client finds the server; as the administrator does, if it is not given.
    pub url: Option<String>,
}

/// Credentials.
#[derive(Debug, Clone)]
pub struct Issued {
    /// What `kubectl` and others read.
    pub kubeconfig: String,
    /// When they cease to be good.
    pub until: Timestamp,
}

/// How long credentials are good, such as `30d` or `12h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime(SignedDuration);

impl FromStr for Lifetime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "must be days, hours or minutes, such as 30d, 12h or 90m".to_owned();
        let span: Span = text.parse().map_err(|_| wrong())?;
        let duration = span.to_duration(SpanRelativeTo::days_are_24_hours());
        let duration = duration.map_err(|_| wrong())?;
        if duration < SignedDuration::from_mins(1) {
            return Err("must be a minute at least".to_owned());
        }
        Ok(Self(duration))
    }
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

/// Issues credentials by the authority of the server that has its files in a folder.
pub fn kubeconfig_for(folder: &Path, client: &Client) -> Result<Issued, Error> {
    let files = Folder::existing(folder);
    let now = Timestamp::now();
    let missing = || Error::NoAuthority {
        folder: folder.to_owned(),
    };
    let authority = Authority::find(&files, now)?.ok_or_else(missing)?;
    let (wanted, end) = (now.saturating_add(client.lifetime.0), authority.end());
    let wanted = wanted.unwrap_or(Timestamp::MAX);
    if wanted > end {
        return Err(Error::TooLong {
            folder: folder.to_owned(),
            end,
            wanted,
        });
    }
    let url = match &client.url {
        Some(url) => url.clone(),
        None => files
            .read("kubeconfig")?
            .and_then(|text| url_in(&text))
            .ok_or_else(missing)?,
    };
    let subject = Subject {
        name: client.user.clone(),
        groups: client.groups.clone(),
        alternatives: Vec::new(),
        is_server: false,
    };
    let (certificate, key) = authority.issue(&subject, wanted)?;
    let kubeconfig = Kubeconfig {
        url: &url,
        authority: authority.certificate(),
        user: &client.user,
        namespace: client.namespace.as_deref(),
        certificate: &certificate,
        key: &key,
    };
    Ok(Issued {
        kubeconfig: kubeconfig.text(),
        until: wanted,
    })
}

/// Where the server is, by a kubeconfig of ours.
fn url_in(kubeconfig: &str) -> Option<String> {
    let mut lines = kubeconfig.lines();
    let url = lines.find_map(|line| line.trim().strip_prefix("server: "))?;
    Some(url.to_owned())
}

/// Writes a file that its owner alone may read, at every moment, instead of what is there.
pub fn write_secret(path: &Path, text: &str) -> Result<(), Error> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| Error::File {
        action: "write",
        path: path.to_owned(),
        source: std::io::Error::other("it is not the name of a file"),
    })?;
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    Folder::existing(&folder).write_secret(name, text)
}
