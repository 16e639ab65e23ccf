//! Definitions of custom resources.

use regex::Regex;
use serde_json::{Value, json};
use tortie_api::{Path, Problems};

/// Fills in the names that follow from others, and how versions are converted.
pub(super) fn fill_in(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").filter(|spec| spec.is_object()) else {
        return;
    };
    super::default(spec, "conversion", json!({"strategy": "None"}));
    let Some(names) = spec.get_mut("names") else {
        return;
    };
    if let Some(kind) = names["kind"].as_str().map(str::to_owned) {
        super::default(names, "singular", json!(kind.to_lowercase()));
        super::default(names, "listKind", json!(format!("{kind}List")));
    }
}

/// What is wrong with a definition.
pub(super) fn check(definition: &Value, problems: &mut Problems) {
    let root = Path::ROOT;
    let at = root.field("spec");
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    if !group.contains('.') || !is_name(&group) {
        let rule = "must be a domain of DNS labels with at least one dot";
        problems.add(&at.field("group"), &group, rule);
    }
    if group == "k8s.io" || group.ends_with(".k8s.io") || group.ends_with(".kubernetes.io") {
        let annotation = &definition["metadata"]["annotations"]["api-approved.kubernetes.io"];
        if !annotation.is_string() {
            let rule =
                "is protected: definitions in it need the annotation api-approved.kubernetes.io";
            problems.add(&at.field("group"), &group, rule);
        }
    }
    let names = at.field("names");
    for name in ["plural", "singular"] {
        let given = text(&spec["names"][name]);
        if given.contains('.') || !is_name(&given) {
            problems.add(&names.field(name), &given, "must be a DNS label");
        }
    }
    if text(&spec["names"]["kind"]).is_empty() {
        problems.add_missing(&names.field("kind"), "must be given");
    }
    let name = text(&definition["metadata"]["name"]);
    if name != format!("{plural}.{group}") {
        let at = root.field("metadata");
        let rule = "must be spec.names.plural+\".\"+spec.group";
        problems.add(&at.field("name"), &name, rule);
    }
    if !matches!(spec["scope"].as_str(), Some("Cluster" | "Namespaced")) {
        problems.add(
            &at.field("scope"),
            &spec["scope"],
            "must be Cluster or Namespaced",
        );
    }
    if spec["conversion"]["strategy"] != "None" {
        let at = at.field("conversion");
        let rule = "must be None: tortie up calls no webhooks";
        problems.add(&at.field("strategy"), &spec["conversion"]["strategy"], rule);
    }
    if spec["preserveUnknownFields"] == true {
        let rule = "must be false: say so of fields in the schema";
        problems.add(&at.field("preserveUnknownFields"), true, rule);
    }
    check_versions(spec, &at.field("versions"), problems);
}

fn check_versions(spec: &Value, at: &Path<'_>, problems: &mut Problems) {
    let versions = || spec["versions"].as_array().into_iter().flatten();
    let stored = versions().filter(|version| version["storage"] == true);
    if stored.count() != 1 {
        let rule = "must have exactly one version marked as storage version";
        problems.add_missing(at, rule);
    }
    for (index, version) in versions().enumerate() {
        let at = at.index(index);
        let name = version["name"].as_str().unwrap_or_default();
        if name.contains('.') || !is_name(name) {
            problems.add(&at.field("name"), name, "must be a DNS label");
        }
        if versions().filter(|other| other["name"] == name).count() > 1 {
            problems.add(&at.field("name"), name, "must be there once");
        }
        let at = at.field("schema");
        let schema = &version["schema"]["openAPIV3Schema"];
        if schema["type"] != "object" {
            let at = at.field("openAPIV3Schema");
            let rule = "must be object at the root";
            problems.add(&at.field("type"), &schema["type"], rule);
        }
        check_patterns(schema, &at.field("openAPIV3Schema"), problems);
    }
}

/// Patterns that cannot be read would let everything through.
fn check_patterns(schema: &Value, at: &Path<'_>, problems: &mut Problems) {
    if let Some(pattern) = schema["pattern"].as_str()
        && let Err(error) = Regex::new(pattern)
    {
        let rule = format!("must be a valid regular expression: {error}");
        problems.add(&at.field("pattern"), pattern, rule);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        check_patterns(inner, &at.field("properties").field(name), problems);
    }
    for keyword in ["items", "additionalProperties", "not"] {
        if let Some(inner) = schema.get(keyword) {
            check_patterns(inner, &at.field(keyword), problems);
        }
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for inner in schema[keyword].as_array().into_iter().flatten() {
            check_patterns(inner, &at.field(keyword), problems);
        }
    }
}

fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_right = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty()
            && label.len() <= 63
            && label.chars().all(is_right)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}
