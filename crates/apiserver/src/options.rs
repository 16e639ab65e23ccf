//! What the query of a request asks for.

use std::collections::BTreeSet;

use tortie_api::scalar::go_bool;

use crate::failure::{Failure, Result};
use crate::registry::ResourceType;
use crate::selector::{FieldSelector, LabelSelector};

/// The parameters of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

/// Which objects a list or watch is about, and how they are given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// By labels.
    pub labels: LabelSelector,
    /// By fields.
    pub fields: FieldSelector,
    /// By the tiers of policies, where not everybody may see all of them. Clients do not say this.
    pub tiers: Option<BTreeSet<String>>,
    /// How many objects at most; zero for all.
    pub limit: usize,
    /// Where the page before ended.
    pub continuation: String,
    /// The revision that is asked for, if any.
    pub revision: Revision,
    /// Whether changes are asked for.
    pub is_watch: bool,
    /// Whether a watch is told how far it has come when nothing changes.
    pub has_bookmarks: bool,
    /// Whether a watch begins with all current objects and a bookmark after them; nothing if it was not said.
    pub sends_initial: Option<bool>,
    /// After how many seconds a watch ends.
    pub timeout: Option<u64>,
}

/// Which revision a read or watch asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Revision {
    #[default]
    Newest,
    /// Any that is at hand.
    Any,
    /// This one: a watch begins after it, a read gives a state that is not older.
    At(u64),
}

/// How a write is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Everything is checked, nothing is written.
    pub is_dry_run: bool,
    /// The name of whoever writes, if given.
    pub field_manager: String,
    /// Whether server-side apply takes over the fields of others.
    pub force: bool,
    /// What becomes of fields that the type does not have.
    pub unknown_fields: UnknownFields,
}

/// What becomes of fields that a type does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownFields {
    /// They are refused.
    #[default]
    Refuse,
    /// They are dropped, and the client is told of mistakes.
    Warn,
    /// They are dropped.
    Drop,
}

impl Query {
    /// Reads what stands behind the question mark.
    pub fn parse(text: &str) -> Self {
        let pairs = form_urlencoded::parse(text.as_bytes());
        Self {
            pairs: pairs.into_owned().collect(),
        }
    }

    /// The value of a parameter; of several the first.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut pairs = self.pairs.iter();
        let found = pairs.find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let pairs = self.pairs.iter().filter(move |(key, _)| key == name);
        pairs.map(|(_, value)| value.as_str())
    }

    /// Whether something is wanted; clients in some languages write `True`.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>> {
        match self.get(name) {
            None | Some("") => Ok(None),
            Some(text) => match go_bool(text) {
                Some(wanted) => Ok(Some(wanted)),
                None => Err(wrong(name, text, "must be true or false")),
            },
        }
    }

    fn number(&self, name: &str) -> Result<Option<u64>> {
        match self.get(name) {
            None | Some("") => Ok(None),
            Some(text) => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(wrong(
                    name,
                    text,
                    "must be a whole number that is not negative",
                )),
            },
        }
    }

    /// The options of a list or watch.
    pub fn list_options(&self, of: &ResourceType) -> Result<ListOptions> {
        let text = |name: &str| self.get(name).unwrap_or_default();
        let labels = text("labelSelector");
        let fields = text("fieldSelector");
        let limit = self.number("limit")?.unwrap_or_default();
        match text("resourceVersionMatch") {
            "" | "Exact" | "NotOlderThan" => {}
            other => {
                let rule = "must be Exact or NotOlderThan";
                return Err(wrong("resourceVersionMatch", other, rule));
            }
        }
        Ok(ListOptions {
            labels: LabelSelector::parse(labels)
                .map_err(|reason| wrong("labelSelector", labels, &reason))?,
            fields: FieldSelector::parse(fields, of.selectable_fields())
                .map_err(|reason| wrong("fieldSelector", fields, &reason))?,
            tiers: None,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            continuation: text("continue").to_owned(),
            revision: self.revision()?,
            is_watch: self.flag("watch")?.unwrap_or_default(),
            has_bookmarks: self.flag("allowWatchBookmarks")?.unwrap_or_default(),
            sends_initial: self.flag("sendInitialEvents")?,
            timeout: self.number("timeoutSeconds")?,
        })
    }

    /// The revision that is asked for.
    pub fn revision(&self) -> Result<Revision> {
        match self.get("resourceVersion") {
            None | Some("") => Ok(Revision::Newest),
            Some("0") => Ok(Revision::Any),
            Some(text) => match text.parse() {
                Ok(revision) => Ok(Revision::At(revision)),
                Err(_) => Err(wrong(
                    "resourceVersion",
                    text,
                    "must be one that this server gave",
                )),
            },
        }
    }

    pub fn write_options(&self) -> Result<WriteOptions> {
        let mut is_dry_run = false;
        for value in self.all("dryRun") {
            match value {
                "All" => is_dry_run = true,
                other => return Err(wrong("dryRun", other, "must be All")),
            }
        }
        let field_manager = self.get("fieldManager").unwrap_or_default();
        if field_manager.chars().count() > 128 || field_manager.contains(char::is_control) {
            let rule = "must have at most 128 printable characters";
            return Err(wrong("fieldManager", field_manager, rule));
        }
        let unknown_fields = match self.get("fieldValidation") {
            None | Some("" | "Strict") => UnknownFields::Refuse,
            Some("Warn") => UnknownFields::Warn,
            Some("Ignore") => UnknownFields::Drop,
            Some(other) => {
                return Err(wrong(
                    "fieldValidation",
                    other,
                    "must be one of Ignore, Warn and Strict",
                ));
            }
        };
        Ok(WriteOptions {
            is_dry_run,
            field_manager: field_manager.to_owned(),
            force: self.flag("force")?.unwrap_or_default(),
            unknown_fields,
        })
    }
}

fn wrong(name: &str, value: &str, rule: &str) -> Failure {
    let value: String = value.chars().take(80).collect();
    Failure::bad_request(format!("{name}: {value:?}: {rule}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    fn list(query: &str) -> Result<ListOptions> {
        let registry = Registry::standalone();
        let pods = registry.find("", "v1", "pods").unwrap();
        Query::parse(query).list_options(pods)
    }

    #[test]
    fn lists_and_watches() {
        let options =
            list("watch=1&resourceVersion=12&labelSelector=app%3Dweb%2C%21old&limit=5").unwrap();
        assert!(options.is_watch);
        assert_eq!(options.revision, Revision::At(12));
        assert_eq!(options.limit, 5);
        assert!(!options.labels.is_empty());
        assert_eq!(list("").unwrap(), ListOptions::default());
        assert_eq!(list("resourceVersion=0").unwrap().revision, Revision::Any);
    }

    #[test]
    fn mistakes_name_the_parameter() {
        for (query, message) in [
            ("watch=maybe", "watch: \"maybe\": must be true or false"),
            (
                "limit=-1",
                "limit: \"-1\": must be a whole number that is not negative",
            ),
            (
                "resourceVersion=x",
                "resourceVersion: \"x\": must be one that this server gave",
            ),
            (
                "fieldSelector=a%3Db",
                "fieldSelector: \"a=b\": field label not supported: a",
            ),
        ] {
            assert_eq!(list(query).unwrap_err().message, message);
        }
    }

    #[test]
    fn writes() {
        let options = Query::parse("dryRun=All&fieldManager=ann&force=true&fieldValidation=Warn");
        let options = options.write_options().unwrap();
        assert!(options.is_dry_run && options.force);
        assert_eq!(options.field_manager, "ann");
        assert_eq!(options.unknown_fields, UnknownFields::Warn);
        for query in ["dryRun=Some", "fieldManager=a%00b", "fieldValidation=Maybe"] {
            assert!(Query::parse(query).write_options().is_err(), "{query}");
        }
    }
}
