//! What a message asks for, in words, for errors.

use super::error::Subject;
use super::number::{chain, elements, message, rule, set, table};
use super::table::Family;
use crate::netlink::{Message, attributes};

/// The length of the header of a netfilter message: family, version, resource.
pub(super) const FAMILY_HEADER: usize = 4;

/// Says what the message asks for, such as ``delete chain `x` of table `ip calico` ``.
pub(super) fn describe(asked: &Message<'_>) -> String {
    let (family, rest) = match asked.payload.split_at_checked(FAMILY_HEADER) {
        Some((header, rest)) => (header.first().copied().unwrap_or(0), rest),
        None => (0, [].as_slice()),
    };
    let family = Family::from_number(family).map_or_else(String::new, |f| format!("{f} "));
    let text = |kind: u16| {
        attributes(rest)
            .find(|a| a.kind == kind)
            .map_or("", |a| a.text())
    };
    let number = |kind: u16| attributes(rest).find(|a| a.kind == kind).map(|a| a.u64());
    let of_table = |kind: u16| format!("of table `{family}{}`", text(kind));
    let in_chain = || format!("chain `{}` {}", text(rule::CHAIN), of_table(rule::TABLE));
    let named_set = || format!("set `{}` {}", text(set::NAME), of_table(set::TABLE));
    let of_set = || {
        format!(
            "set `{}` {}",
            text(elements::SET),
            of_table(elements::TABLE)
        )
    };
    match asked.kind {
        message::NEW_TABLE => format!("add table `{family}{}`", text(table::NAME)),
        message::DELETE_TABLE => format!("delete table `{family}{}`", text(table::NAME)),
        message::NEW_CHAIN => format!(
            "add chain `{}` {}",
            text(chain::NAME),
            of_table(chain::TABLE)
        ),
        message::DELETE_CHAIN => {
            format!(
                "delete chain `{}` {}",
                text(chain::NAME),
                of_table(chain::TABLE)
            )
        }
        message::NEW_RULE => match (number(rule::HANDLE), number(rule::POSITION)) {
            (Some(handle), _) => format!("replace rule {handle} of {}", in_chain()),
            (None, Some(handle)) => format!("add a rule beside rule {handle} of {}", in_chain()),
            (None, None) => format!("add a rule to {}", in_chain()),
        },
        message::DELETE_RULE => match number(rule::HANDLE) {
            Some(handle) => format!("delete rule {handle} of {}", in_chain()),
            None => format!("delete all rules of {}", in_chain()),
        },
        message::NEW_SET => format!("add {}", named_set()),
        message::DELETE_SET => format!("delete {}", named_set()),
        message::NEW_ELEMENTS => format!("add elements to {}", of_set()),
        message::DELETE_ELEMENTS => format!("delete elements of {}", of_set()),
        message::GET_TABLE => "list tables".to_owned(),
        message::GET_CHAIN => "list chains".to_owned(),
        message::GET_RULE => format!("list rules of table `{family}{}`", text(rule::TABLE)),
        message::GET_SET => format!("list sets of table `{family}{}`", text(set::TABLE)),
        message::GET_ELEMENTS => format!("list elements of {}", of_set()),
        _ => "do it all at once".to_owned(),
    }
}

/// What the message makes or changes.
pub(super) fn subject(asked: &Message<'_>) -> Option<Subject> {
    let rest = asked.payload.get(FAMILY_HEADER..)?;
    let text = |kind: u16| {
        let found = attributes(rest).find(|a| a.kind == kind)?;
        Some(found.text().to_owned())
    };
    match asked.kind {
        message::NEW_CHAIN => text(chain::NAME).map(Subject::Chain),
        message::NEW_RULE | message::DELETE_RULE => text(rule::CHAIN).map(Subject::Chain),
        message::NEW_SET => text(set::NAME).map(Subject::Set),
        message::NEW_ELEMENTS | message::DELETE_ELEMENTS => text(elements::SET).map(Subject::Set),
        _ => None,
    }
}
