//! What is accepted when somebody writes it, an agent can run with.

use proptest::prelude::*;
use serde_json::{Value, json};
use tortie_agent::host;
use tortie_api::{Kind, Resource};
use tortie_config::{Sources, resolve};
use tortie_convert::Converter;
use tortie_engine::Update;
use tortie_engine::message::Encapsulation;

/// Fields whose parameters keep an agent from running if they are wrong, and that any text may be written to.
const TEXTS: [&str; 4] = [
    "interfacePrefix",
    "chainInsertMode",
    "defaultEndpointToHostAction",
    "iptablesFilterDenyAction",
];

/// Whether such a configuration can be written; if so, why no agent can run with it.
fn check(spec: &Value) -> Result<(), TestCaseError> {
    let object = json!({"metadata": {"name": "default"}, "spec": spec});
    let Ok(mut resource) = Resource::decode_stored(Kind::FelixConfiguration, &object) else {
        return Ok(());
    };
    resource.set_defaults();
    if resource.validate().is_err() {
        return Ok(());
    }
    let mut sources = Sources::default();
    for update in Converter::new().set(&resource).updates {
        if let Update::Configuration(_, Some(configuration)) = update {
            sources.datastore.global = configuration.parameters;
        }
    }
    let resolved = resolve(&sources);
    prop_assert!(!resolved.is_fatal(), "{spec}: {:?}", resolved.problems);
    let config = &resolved.config;
    let rules = tortie_rules::Config::new(config, host::choose(config), Encapsulation::default());
    prop_assert!(rules.is_ok(), "{spec}: {rules:?}");
    Ok(())
}

proptest! {
    #[test]
    fn any_text(field in prop::sample::select(&TEXTS), text in "[a-zA-Z0-9,*+ ._-]{0,20}|(?i)none") {
        check(&json!({field: text}))?;
    }

    #[test]
    fn any_mark(mask in any::<u32>(), fewer in any::<u32>()) {
        for mask in [mask, mask & fewer, mask & fewer.rotate_left(7) & fewer, mask & 0xf] {
            check(&json!({"iptablesMarkMask": mask, "nftablesMarkMask": mask}))?;
        }
    }
}
