//! What a runtime asks: the environment of the plugin's process.

use std::path::PathBuf;

use tortie_variables as variables;

use crate::error::{Code, Error, Result};

/// The longest name of an interface.
const LONGEST_INTERFACE: usize = 15;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Connect a container.
    Add,
    /// Disconnect it.
    Del,
    /// See whether it is still connected as it was.
    Check,
    /// Tell which versions of the specification are spoken.
    Version,
    /// Tell whether an ADD could be served.
    Status,
    /// Give back what belongs to containers that are gone.
    Gc,
}

/// What a runtime asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What is to be done.
    pub command: Command,
    /// The container, as the runtime calls it.
    pub container_id: String,
    /// A file of the container's network namespace; empty where there is none any more.
    pub namespace: PathBuf,
    /// The name of the interface in the container.
    pub interface: String,
    /// More about the container.
    pub arguments: Arguments,
    /// The folders in which other plugins are looked for.
    pub path: Vec<PathBuf>,
}

/// `CNI_ARGS`: pairs of names and values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    pairs: Vec<(String, String)>,
}

impl Command {
    /// The command of this name.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(match text {
            "ADD" => Self::Add,
            "DEL" => Self::Del,
            "CHECK" => Self::Check,
            "VERSION" => Self::Version,
            "STATUS" => Self::Status,
            "GC" => Self::Gc,
            other => {
                let message = format!(
                    "CNI_COMMAND is `{other}`: expected ADD, DEL, CHECK, VERSION, STATUS or GC"
                );
                return Err(Error::new(Code::InvalidEnvironment, message));
            }
        })
    }

    /// The variables that must be set for it.
    fn required(self) -> &'static [&'static str] {
        match self {
            Self::Add | Self::Check => &[
                variables::CNI_CONTAINERID,
                variables::CNI_NETNS,
                variables::CNI_IFNAME,
                variables::CNI_PATH,
            ],
            Self::Del => &[
                variables::CNI_CONTAINERID,
                variables::CNI_IFNAME,
                variables::CNI_PATH,
            ],
            Self::Gc | Self::Status => &[variables::CNI_PATH],
            Self::Version => &[],
        }
    }
}

impl Request {
    /// Reads the request from variables of the environment.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let text = |name: &str| variable(name).unwrap_or_default();
        let command = Command::parse(&text(variables::CNI_COMMAND))?;
        let missing: Vec<&str> = command
            .required()
            .iter()
            .copied()
            .filter(|name| text(name).is_empty())
            .collect();
        if !missing.is_empty() {
            let message = format!(
                "required environment variables are missing: {}",
                missing.join(", ")
            );
            return Err(Error::new(Code::InvalidEnvironment, message));
        }
        let request = Self {
            command,
            container_id: text(variables::CNI_CONTAINERID),
            namespace: text(variables::CNI_NETNS).into(),
            interface: text(variables::CNI_IFNAME),
            arguments: Arguments::parse(&text(variables::CNI_ARGS))?,
            path: std::env::split_paths(&text(variables::CNI_PATH)).collect(),
        };
        request.check()?;
        Ok(request)
    }

    fn check(&self) -> Result<()> {
        let wrong = |name: &str, value: &str, rule: &str| {
            let message = format!("{name} is `{value}`, which {rule}");
            Err(Error::new(Code::InvalidEnvironment, message))
        };
        if !self.container_id.is_empty() && !is_identifier(&self.container_id) {
            let rule = "must start with a letter or digit and have only those, `_`, `.` and `-`";
            return wrong(variables::CNI_CONTAINERID, &self.container_id, rule);
        }
        if !self.interface.is_empty() && !is_interface_name(&self.interface) {
            let rule = "cannot be the name of an interface";
            return wrong(variables::CNI_IFNAME, &self.interface, rule);
        }
        Ok(())
    }
}

impl Arguments {
    /// Reads `NAME=VALUE;NAME=VALUE`.
    pub fn parse(text: &str) -> Result<Self> {
        let mut pairs = Vec::new();
        for pair in text.split(';').filter(|pair| !pair.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                let message = format!("CNI_ARGS has `{pair}`, which is not NAME=VALUE");
                return Err(Error::new(Code::InvalidEnvironment, message));
            };
            pairs.push((name.to_owned(), value.to_owned()));
        }
        Ok(Self { pairs })
    }

    /// The value of this name; the last one, where there are several.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.pairs.iter().rev().find(|(key, _)| key == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// As other plugins get them: with the note that they may ignore what they do not know.
    pub(crate) fn for_delegate(&self) -> String {
        let known = self
            .pairs
            .iter()
            .filter(|(name, _)| name != "IgnoreUnknown");
        let mut text = "IgnoreUnknown=1".to_owned();
        for (name, value) in known {
            for part in [";", name, "=", value] {
                text.push_str(part);
            }
        }
        text
    }
}

/// Whether a text is what the specification allows for containers and networks.
pub(crate) fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

fn is_interface_name(text: &str) -> bool {
    text.len() <= LONGEST_INTERFACE
        && ![".", ".."].contains(&text)
        && !text.contains(|c: char| c == '/' || c == ':' || c == '\0' || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(&str, &str); 6] = [
        ("CNI_COMMAND", "ADD"),
        ("CNI_CONTAINERID", "c1"),
        ("CNI_NETNS", "/var/run/netns/x"),
        ("CNI_IFNAME", "eth0"),
        ("CNI_PATH", "/opt/cni/bin:/usr/lib/cni"),
        (
            "CNI_ARGS",
            "IgnoreUnknown=1;K8S_POD_NAME=web;K8S_POD_NAMESPACE=shop;IP=",
        ),
    ];

    fn read(changes: &[(&str, &str)]) -> Result<Request> {
        Request::from_environment(|name| {
            let all = changes.iter().chain(&ALL);
            let mut found = all.filter(|(key, _)| *key == name);
            found.next().map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn everything_is_read() {
        let request = read(&[]).expect("a request");
        assert_eq!(request.command, Command::Add);
        assert_eq!(request.arguments.get("K8S_POD_NAME"), Some("web"));
        assert_eq!(request.arguments.get("IP"), None);
        assert_eq!(request.path.len(), 2);
        assert_eq!(
            request.arguments.for_delegate(),
            "IgnoreUnknown=1;K8S_POD_NAME=web;K8S_POD_NAMESPACE=shop;IP="
        );
    }

    #[track_caller]
    fn check(changes: &[(&str, &str)], expected: &str) {
        let error = read(changes).expect_err("a refusal");
        assert_eq!(error.code(), Code::InvalidEnvironment);
        assert!(error.to_string().contains(expected), "{error}");
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        check(&[("CNI_COMMAND", "")], "CNI_COMMAND");
        check(&[("CNI_COMMAND", "ADDD")], "`ADDD`");
        check(
            &[("CNI_NETNS", ""), ("CNI_IFNAME", "")],
            "CNI_NETNS, CNI_IFNAME",
        );
        check(&[("CNI_CONTAINERID", "../x")], "`../x`");
        check(&[("CNI_IFNAME", "a/b")], "`a/b`");
        check(&[("CNI_IFNAME", "sixteen__letters")], "`sixteen__letters`");
        check(&[("CNI_ARGS", "A=1;B")], "`B`");
        let del = [("CNI_COMMAND", "DEL"), ("CNI_NETNS", "")];
        assert!(read(&del).is_ok());
    }
}
