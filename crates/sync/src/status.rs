//! How much of the datastore has been told.

/// How much of the datastore has been told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Nothing yet, or there has been no contact for long.
    #[default]
    WaitForDatastore,
    /// A part.
    ResyncInProgress,
    /// All there was when it was last read, and the changes since.
    InSync,
}

impl Status {
    /// The status of a whole whose parts have these.
    pub(crate) fn merged(parts: &[Self]) -> Self {
        let all = |status| parts.iter().all(|part| *part == status);
        if all(Self::InSync) {
            Self::InSync
        } else if all(Self::WaitForDatastore) {
            Self::WaitForDatastore
        } else {
            Self::ResyncInProgress
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Status::{self, InSync, ResyncInProgress, WaitForDatastore};

    #[test]
    fn the_whole_is_in_sync_or_waiting_only_if_all_parts_are() {
        for (parts, expected) in [
            ([InSync, InSync], InSync),
            ([WaitForDatastore, WaitForDatastore], WaitForDatastore),
            ([InSync, WaitForDatastore], ResyncInProgress),
            ([ResyncInProgress, InSync], ResyncInProgress),
            ([ResyncInProgress, WaitForDatastore], ResyncInProgress),
        ] {
            assert_eq!(Status::merged(&parts), expected, "{parts:?}");
        }
    }
}
