//! Revisions of kinds that come from several kinds of Kubernetes objects: one part for each, joined by `/`.

use crate::error::{Error, Result};
use crate::key::Revision;

/// The revision made of its parts.
pub(super) fn join(parts: &[String]) -> Revision {
    Revision(parts.join("/"))
}

/// The parts of a revision. The empty revision and `0` stand for the beginning of all of them.
pub(super) fn split(revision: &Revision, count: usize) -> Result<Vec<String>> {
    if matches!(revision.0.as_str(), "" | "0") {
        return Ok(vec![String::new(); count]);
    }
    let parts: Vec<String> = revision.0.split('/').map(ToOwned::to_owned).collect();
    if parts.len() != count {
        let message = format!(
            "`{revision}` is not a revision of this kind; use one that a list or a watch gave"
        );
        return Err(Error::message(message));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(revision: &str, expected: Option<[&str; 2]>) {
        let parts = split(&Revision(revision.into()), 2).ok();
        assert_eq!(
            parts,
            expected.map(|parts| parts.map(ToOwned::to_owned).to_vec()),
            "{revision}"
        );
    }

    #[test]
    fn a_combined_revision_has_one_part_for_each_source() {
        check("12/34", Some(["12", "34"]));
        check("/34", Some(["", "34"]));
        check("12", None);
        check("1/2/3", None);
    }

    #[test]
    fn the_empty_revision_is_the_beginning_of_all_sources() {
        check("", Some(["", ""]));
        check("0", Some(["", ""]));
    }
}
