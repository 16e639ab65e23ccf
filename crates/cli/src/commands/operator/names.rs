//! The names of a new operator, in place of the example's.

use anyhow::{Result, bail};

/// The longest name of a namespace, which the project's becomes.
const LONGEST_LABEL: usize = 63;

/// Words that Rust or Cargo would not take as the name of a package.
const RESERVED: &[&str] = &[
    "test",
    "core",
    "std",
    "alloc",
    "proc-macro",
    "build",
    "deps",
    "examples",
    "incremental",
    "self",
    "super",
    "crate",
    "async",
    "await",
    "fn",
    "mod",
    "type",
    "impl",
    "trait",
    "use",
    "match",
    "kube",
    "serde",
    "tokio",
    "tortie-operator",
];

/// What the example's names become.
pub(super) struct Names {
    /// In the order in which they are replaced.
    pairs: [(&'static str, String); 6],
}

impl Names {
    pub(super) fn new(name: &str, kind: &str, group: &str) -> Result<Self> {
        check_label("name", name)?;
        if RESERVED.contains(&name) {
            bail!("name `{name}`: a package cannot have this name");
        }
        if name.starts_with(|first: char| first.is_ascii_digit()) {
            bail!("name `{name}`: a package's name cannot start with a digit");
        }
        check_kind(kind)?;
        if !group.contains('.') {
            bail!("group `{group}`: a group has a domain's name, such as `ops.example.com`");
        }
        group.split('.').try_for_each(|part| {
            check_label("group", part).map_err(|error| error.context(format!("group `{group}`")))
        })?;
        let lower = kind.to_lowercase();
        Ok(Self {
            pairs: [
                ("example.tortie.dev", group.to_owned()),
                ("namespace-baseline", name.to_owned()),
                ("namespace_baseline", name.replace('-', "_")),
                ("NamespaceBaseline", kind.to_owned()),
                ("namespacebaselines", plural(&lower)),
                ("namespacebaseline", lower),
            ],
        })
    }

    /// A text of the example with these names.
    pub(super) fn apply(&self, text: &str) -> String {
        let mut result = String::with_capacity(text.len());
        let mut rest = text;
        // In one pass, so that a new name that contains one of the example's is not replaced again.
        while let Some((at, old, new)) = self.next(rest) {
            result.push_str(&rest[..at]);
            result.push_str(new);
            rest = &rest[at + old.len()..];
        }
        result.push_str(rest);
        result
    }

    /// The first of the example's names; of two at one place the longer.
    fn next(&self, text: &str) -> Option<(usize, &'static str, &str)> {
        let found = self.pairs.iter().filter_map(|(old, new)| {
            let at = text.find(old)?;
            Some((at, *old, new.as_str()))
        });
        found.min_by_key(|(at, old, _)| (*at, usize::MAX - old.len()))
    }
}

/// A kind in the plural, as Kubernetes' own kinds have it.
fn plural(lower: &str) -> String {
    let ends = |ends: &[&str]| ends.iter().any(|end| lower.ends_with(end));
    if ends(&["s", "x", "z", "ch", "sh"]) {
        format!("{lower}es")
    } else if lower.ends_with('y') && !ends(&["ay", "ey", "iy", "oy", "uy"]) {
        format!("{}ies", &lower[..lower.len() - 1])
    } else {
        format!("{lower}s")
    }
}

fn check_label(what: &str, label: &str) -> Result<()> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if label.is_empty() || label.len() > LONGEST_LABEL {
        bail!("{what} `{label}`: it has to have 1 to {LONGEST_LABEL} characters");
    }
    if let Some(wrong) = label.chars().find(|c| !is_allowed(*c)) {
        bail!("{what} `{label}`: `{wrong}` is not allowed; use lower case letters, digits and `-`");
    }
    if label.starts_with('-') || label.ends_with('-') {
        bail!("{what} `{label}`: it has to begin and end with a letter or a digit");
    }
    Ok(())
}

fn check_kind(kind: &str) -> Result<()> {
    let is_camel = kind.starts_with(|first: char| first.is_ascii_uppercase())
        && kind.chars().all(|c| c.is_ascii_alphanumeric());
    if !is_camel || kind.len() > LONGEST_LABEL {
        bail!("kind `{kind}`: a kind is in camel case, such as `ShopGuard`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plural_is_that_of_kubernetes_own_kinds() {
        for (kind, expected) in [
            ("pod", "pods"),
            ("ingress", "ingresses"),
            ("networkpolicy", "networkpolicies"),
            ("gateway", "gateways"),
            ("switch", "switches"),
        ] {
            assert_eq!(plural(kind), expected);
        }
    }

    #[test]
    fn a_new_name_that_contains_an_old_one_is_not_replaced_again() {
        let names = Names::new(
            "my-namespace-baseline",
            "XNamespaceBaseline",
            "a.example.tortie.dev",
        )
        .unwrap();
        let text = "namespace-baseline NamespaceBaselineSpec example.tortie.dev namespacebaselines namespacebaseline-a";
        let expected = "my-namespace-baseline XNamespaceBaselineSpec a.example.tortie.dev xnamespacebaselines xnamespacebaseline-a";
        assert_eq!(names.apply(text), expected);
    }
}
