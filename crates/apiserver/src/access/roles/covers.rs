//! Whether rights cover others, so that who has the ones may give away the others.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use k8s_openapi::api::rbac::v1::PolicyRule;

use super::rule::{ALL, is_path_within, list};

/// Into how many single rights rules are taken apart at most: one object could name billions.
const MOST_RIGHTS: usize = 50_000;

/// How often rights are compared with rules at most: about a second's work.
const MOST_COMPARISONS: usize = 50_000_000;

/// How many missing rights are told.
const MOST_TOLD: usize = 100;

/// One right: a verb on a resource, perhaps for one name, or on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Right<'a> {
    Objects {
        verb: &'a str,
        group: &'a str,
        resource: &'a str,
        name: Option<&'a str>,
    },
    Path {
        verb: &'a str,
        path: &'a str,
    },
}

/// What rules allow that the rights of somebody do not cover.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Missing {
    Nothing,
    /// These rules, one a line, as Kubernetes writes them.
    Rules(String),
    /// It cannot be told: there are too many.
    TooMany,
}

/// What rules allow beyond what others do. A single right is covered by one rule or by none.
pub(super) fn missing<'a>(
    owned: &[PolicyRule],
    given: impl IntoIterator<Item = &'a PolicyRule>,
) -> Missing {
    let mut rights = Vec::new();
    for rule in given {
        if !take_apart(rule, &mut rights) {
            return Missing::TooMany;
        }
    }
    let mut seen = HashSet::new();
    rights.retain(|right| seen.insert(*right));
    let owned: Vec<Owned<'_>> = owned.iter().map(Owned::new).collect();
    let comparisons = owned.iter().map(|rule| 1 + rule.paths.len()).sum::<usize>();
    if comparisons.saturating_mul(rights.len()) > MOST_COMPARISONS {
        return Missing::TooMany;
    }
    rights.retain(|right| !owned.iter().any(|rule| rule.covers(*right)));
    if rights.is_empty() {
        return Missing::Nothing;
    }
    Missing::Rules(describe(&rights))
}

/// Adds the rights of a rule, unless they are too many.
fn take_apart<'a>(rule: &'a PolicyRule, rights: &mut Vec<Right<'a>>) -> bool {
    let (groups, resources) = (
        list(rule.api_groups.as_deref()),
        list(rule.resources.as_deref()),
    );
    let names = list(rule.resource_names.as_deref());
    let paths = list(rule.non_resource_urls.as_deref());
    let objects = [
        groups.len(),
        resources.len(),
        rule.verbs.len(),
        names.len().max(1),
    ];
    let objects = objects.into_iter().try_fold(1, usize::checked_mul);
    let paths_count = paths.len().checked_mul(rule.verbs.len());
    let all = objects
        .zip(paths_count)
        .map(|(objects, paths)| objects.saturating_add(paths).saturating_add(rights.len()));
    if all.is_none_or(|all| all > MOST_RIGHTS) {
        return false;
    }
    for group in groups {
        for resource in resources {
            for verb in &rule.verbs {
                let right = |name: Option<&'a String>| Right::Objects {
                    verb,
                    group,
                    resource,
                    name: name.map(String::as_str),
                };
                if names.is_empty() {
                    rights.push(right(None));
                }
                rights.extend(names.iter().map(|name| right(Some(name))));
            }
        }
    }
    for path in paths {
        rights.extend(rule.verbs.iter().map(|verb| Right::Path { verb, path }));
    }
    true
}

/// A rule of somebody, made to be looked up in: its lists may be as long as those that it is compared with.
struct Owned<'a> {
    verbs: Words<'a>,
    groups: Words<'a>,
    resources: Words<'a>,
    /// Parts of all resources: what is after `*/`.
    parts: Words<'a>,
    names: Words<'a>,
    paths: &'a [String],
}

type Words<'a> = HashSet<&'a str>;

impl<'a> Owned<'a> {
    fn new(rule: &'a PolicyRule) -> Self {
        fn words(list: &[String]) -> Words<'_> {
            list.iter().map(String::as_str).collect()
        }
        let resources = words(list(rule.resources.as_deref()));
        let parts = resources.iter();
        Self {
            verbs: words(&rule.verbs),
            groups: words(list(rule.api_groups.as_deref())),
            parts: parts.filter_map(|own| own.strip_prefix("*/")).collect(),
            resources,
            names: words(list(rule.resource_names.as_deref())),
            paths: list(rule.non_resource_urls.as_deref()),
        }
    }

    fn covers(&self, right: Right<'_>) -> bool {
        let has = |words: &Words<'_>, word: &str| words.contains(ALL) || words.contains(word);
        match right {
            Right::Objects {
                verb,
                group,
                resource,
                name,
            } => {
                let part = resource.split_once('/').map(|(_, part)| part);
                let is_part = part.is_some_and(|part| self.parts.contains(part));
                has(&self.verbs, verb)
                    && has(&self.groups, group)
                    && (has(&self.resources, resource) || is_part)
                    && (self.names.is_empty() || name.is_some_and(|name| self.names.contains(name)))
            }
            Right::Path { verb, path } => {
                let mut paths = self.paths.iter();
                has(&self.verbs, verb) && paths.any(|own| is_path_within(own, path))
            }
        }
    }
}

/// Rights of one resource together, in the words of Kubernetes.
fn describe(rights: &[Right<'_>]) -> String {
    let mut verbs: BTreeMap<Right<'_>, Vec<&str>> = BTreeMap::new();
    for right in rights {
        let (of, verb) = right.without_verb();
        verbs.entry(of).or_default().push(verb);
    }
    let lines: BTreeSet<String> = verbs
        .iter()
        .map(|(right, verbs)| match right {
            Right::Objects {
                group,
                resource,
                name,
                ..
            } => {
                let name = name.map(|name| format!(", ResourceNames:[{name:?}]"));
                let name = name.unwrap_or_default();
                format!(
                    "{{APIGroups:[{group:?}], Resources:[{resource:?}]{name}, Verbs:{}}}",
                    words(verbs)
                )
            }
            Right::Path { path, .. } => {
                format!("{{NonResourceURLs:[{path:?}], Verbs:{}}}", words(verbs))
            }
        })
        .collect();
    let more = lines.len().saturating_sub(MOST_TOLD);
    let mut lines: Vec<String> = lines.into_iter().take(MOST_TOLD).collect();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

impl<'a> Right<'a> {
    /// The same for any verb, where verbs are told together, and the verb.
    fn without_verb(self) -> (Self, &'a str) {
        match self {
            Self::Objects {
                verb,
                group,
                resource,
                name,
            } => {
                let of = Self::Objects {
                    verb: ALL,
                    group,
                    resource,
                    name,
                };
                (of, verb)
            }
            Self::Path { verb, .. } => (self, verb),
        }
    }
}

/// Texts in quotes, as Go prints them.
pub(super) fn words<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<String> = texts
        .iter()
        .map(|text| format!("{:?}", text.as_ref()))
        .collect();
    format!("[{}]", texts.join(" "))
}
