//! The configuration of `tuning`.

use std::fmt;
use std::path::PathBuf;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use tortie_kernel::link::Mac;

use crate::error::{Code, Error, Result};
use crate::plugins::Call;

/// Where it is kept what interfaces were like, unless the configuration says otherwise.
const FOLDER: &str = "/run/cni/tuning";

/// What is to be done.
pub(super) struct Settings {
    /// Settings of the kernel with their values.
    pub(super) sysctls: Vec<(String, String)>,
    pub(super) changes: Changes,
    /// Where it is kept what the interface was like.
    pub(super) file: PathBuf,
}

/// What is changed of an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) mac: Option<Mac>,
    pub(super) mtu: Option<u32>,
    pub(super) promiscuous: Option<bool>,
    pub(super) all_multicast: Option<bool>,
    pub(super) queue_length: Option<u32>,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct Written {
    #[serde(rename = "dataDir")]
    folder: PathBuf,
    #[serde(flatten)]
    fields: Fields,
    #[serde(rename = "runtimeConfig")]
    runtime: Runtime,
    args: Arguments,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct Fields {
    mac: Option<String>,
    mtu: Option<u32>,
    promisc: Option<bool>,
    allmulti: Option<bool>,
    #[serde(rename = "txQLen")]
    queue_length: Option<u32>,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct Runtime {
    mac: Option<String>,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct Arguments {
    cni: Fields,
}

/// The settings of the kernel alone, from the text: of a key that is there twice, nobody can say what is meant.
#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct WrittenSysctls {
    sysctl: Option<Sysctls>,
    args: Option<SysctlArguments>,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct SysctlArguments {
    cni: Option<SysctlFields>,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct SysctlFields {
    sysctl: Option<Sysctls>,
}

#[derive(Default)]
struct Sysctls(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Sysctls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Pairs;

        impl<'de> Visitor<'de> for Pairs {
            type Value = Sysctls;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of settings and their values, which are texts")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Sysctls, A::Error> {
                let mut pairs: Vec<(String, String)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    if pairs.iter().any(|(other, _)| *other == key) {
                        return Err(A::Error::custom(format!("the key `{key}` is there twice")));
                    }
                    pairs.push((key, value));
                }
                Ok(Sysctls(pairs))
            }
        }

        deserializer.deserialize_map(Pairs)
    }
}

impl Settings {
    pub(super) fn read(call: &Call<'_>) -> Result<Self> {
        let written: Written = call.settings()?;
        let given = written.fields;
        let asked = written.args.cni;
        // The later of these have the last word.
        let environment = call.request.arguments.get("MAC").map(str::to_owned);
        let mac = [given.mac, environment, written.runtime.mac, asked.mac];
        let mut given_macs = mac.into_iter().flatten();
        let mac = given_macs.rfind(|mac| !mac.is_empty());
        let mac = mac.map(|mac| {
            mac.parse::<Mac>()
                .map_err(|error| Error::config(format!("network configuration: `mac`: {error}")))
        });
        Ok(Self {
            sysctls: read_sysctls(call.raw)?,
            changes: Changes {
                mac: mac.transpose()?,
                mtu: asked.mtu.or(given.mtu).filter(|mtu| *mtu != 0),
                // It is only ever turned on.
                promiscuous: asked.promisc.or(given.promisc).filter(|on| *on),
                all_multicast: asked.allmulti.or(given.allmulti),
                queue_length: asked.queue_length.or(given.queue_length),
            },
            file: file(written.folder, call),
        })
    }

    /// Where it is kept what the interface was like, whatever else the configuration says.
    pub(super) fn file_of(call: &Call<'_>) -> PathBuf {
        let written = call
            .config
            .get("dataDir")
            .and_then(serde_json::Value::as_str);
        file(written.unwrap_or_default().into(), call)
    }
}

fn file(folder: PathBuf, call: &Call<'_>) -> PathBuf {
    let folder = if folder.as_os_str().is_empty() {
        FOLDER.into()
    } else {
        folder
    };
    let request = call.request;
    folder.join(format!(
        "{}_{}.json",
        request.container_id, request.interface
    ))
}

fn read_sysctls(raw: &[u8]) -> Result<Vec<(String, String)>> {
    let written: WrittenSysctls = serde_json::from_slice(raw)
        .map_err(|error| Error::of(Code::Decode, "network configuration: `sysctl`")(error))?;
    let mut sysctls = written.sysctl.unwrap_or_default().0;
    let asked = written
        .args
        .and_then(|args| args.cni?.sysctl)
        .unwrap_or_default()
        .0;
    for (key, value) in asked {
        match sysctls.iter_mut().find(|(other, _)| *other == key) {
            Some(known) => known.1 = value,
            None => sysctls.push((key, value)),
        }
    }
    Ok(sysctls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let found = read_sysctls(text.as_bytes()).expect("settings");
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn arguments_come_on_top() {
        check(
            r#"{"sysctl": {"a": "1", "b": "2"}, "args": {"cni": {"sysctl": {"b": "3", "c": "4"}}}}"#,
            &[("a", "1"), ("b", "3"), ("c", "4")],
        );
        check(
            r#"{"args": {"cni": {"sysctl": {"c": "4"}}}}"#,
            &[("c", "4")],
        );
        check(r#"{"sysctl": null, "args": {"cni": null}}"#, &[]);
    }

    #[test]
    fn a_key_that_is_there_twice_is_refused() {
        let error = read_sysctls(br#"{"sysctl": {"a": "1", "a": "2"}}"#).expect_err("a refusal");
        assert!(
            tortie_error::Causes(&error)
                .to_string()
                .contains("`a` is there twice")
        );
    }
}
