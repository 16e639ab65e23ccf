//! No text that a source may hold makes anything panic.

use proptest::prelude::*;
use tortie_config::{DatastoreConfig, Sources, from_file, parameters, resolve};

/// Texts of the characters that mean something somewhere, and any others.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9a-fx_:./,=+ -]{0,20}",
        "[\\[\\]/:,0-9tcpud]{0,20}",
        "[\\[\\]=:#;\"'`\\\\a\n ]{0,30}",
        any::<String>(),
    ]
}

proptest! {
    #[test]
    fn any_value_is_read_or_refused(text in any_text()) {
        let global = parameters()
            .map(|parameter| (parameter.name.to_owned(), text.clone().into()))
            .collect();
        let environment = [(text.clone(), text)].into();
        let datastore = DatastoreConfig { global, ..DatastoreConfig::default() };
        resolve(&Sources { datastore, environment, ..Sources::default() });
    }

    #[test]
    fn any_file_is_read_or_refused(text in any_text()) {
        if let Err(error) = from_file(&text) {
            prop_assert!((1..=text.lines().count()).contains(&error.line));
        }
    }
}
