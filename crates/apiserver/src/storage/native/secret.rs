//! Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tortie_api::{Path, Problems};

/// How much a secret may hold, and how long the names in it may be.
const MAX_BYTES: usize = 1 << 20;
const MAX_KEY: usize = 253;

/// Types that ask for certain data.
const REQUIRED: [(&str, &[&str]); 5] = [
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
    (
        "bootstrap.kubernetes.io/token",
        &["token-id", "token-secret"],
    ),
];

/// Text that was given becomes data, which is all that is kept.
pub(super) fn fill_in(secret: &mut Value) {
    super::default(secret, "type", json!("Opaque"));
    let Some(fields) = secret.as_object_mut() else {
        return;
    };
    let is_text = |given: &Value| {
        let given = given.as_object();
        given.is_some_and(|given| given.values().all(Value::is_string))
    };
    if !fields.get("stringData").is_some_and(is_text) {
        return;
    }
    let given = fields.remove("stringData");
    let given = given.as_ref().and_then(Value::as_object);
    for (name, text) in given.into_iter().flatten() {
        let text = text.as_str().unwrap_or_default();
        secret["data"][name] = json!(STANDARD.encode(text));
    }
}

/// What is wrong with a secret.
pub(super) fn check(secret: &Value, problems: &mut Problems) {
    let root = Path::ROOT;
    let at = root.field("data");
    let data = || secret["data"].as_object().into_iter().flatten();
    let mut size = 0;
    for (name, value) in data() {
        size += value.as_str().map_or(0, |text| text.len() / 4 * 3);
        let is_right = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.len() > MAX_KEY || !name.chars().all(is_right) || matches!(&**name, "." | "..") {
            let rule = "must be at most 253 letters, digits, `-`, `_` and `.`";
            problems.add(&at.field("[name]"), name, rule);
        }
    }
    if size > MAX_BYTES {
        problems.add_missing(&at, "must be at most 1 MiB in all");
    }
    let of = secret["type"].as_str().unwrap_or_default();
    let required = REQUIRED.iter().filter(|(known, _)| *known == of);
    for name in required.flat_map(|(_, names)| *names) {
        if secret["data"].get(name).is_none() {
            problems.add_missing(&at.field(name), format!("must be given for type {of}"));
        }
    }
}
