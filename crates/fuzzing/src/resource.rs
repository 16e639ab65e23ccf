//! Any text read as a resource: never a panic, and what is accepted survives a round trip.

use serde_json::Value;
use tortie_api::{Kind, Resource};

use crate::text;

/// Checks it with these bytes, and panics if it does not hold.
pub fn check(data: &[u8]) {
    let text = text(data);
    let Ok(documents) = tortie_api::yaml::parse(text) else {
        return;
    };
    for document in documents {
        for kind in Kind::ALL {
            let mut document = document.clone();
            if let Value::Object(fields) = &mut document {
                fields.insert("apiVersion".to_owned(), tortie_api::API_VERSION.into());
                fields.insert("kind".to_owned(), kind.as_str().into());
            }
            let _ = Resource::decode_stored(*kind, &document);
            let Ok(mut resource) = Resource::decode_strict(&document) else {
                continue;
            };
            resource.set_defaults();
            let is_valid = resource.validate().is_ok();
            let again = Resource::decode_strict(&resource.to_value());
            if is_valid {
                assert_eq!(again.expect("a valid resource can be read again"), resource);
            }
        }
    }
}
