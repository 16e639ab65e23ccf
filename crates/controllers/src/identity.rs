//! What the client asks of an object that is replaced, where somebody wrote the object by hand and left it out.

use k8s_openapi::jiff::Timestamp;
use tortie_api::meta::{Metadata, Time};

/// Gives an object an identity and an age if it has none.
pub(crate) fn complete(metadata: &mut Metadata) {
    if metadata.uid.is_empty() {
        metadata.uid = uuid::Uuid::new_v4().to_string();
    }
    let now = || Time(Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default());
    metadata.creation_timestamp.get_or_insert_with(now);
}
