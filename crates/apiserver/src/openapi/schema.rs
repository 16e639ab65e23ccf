//! The two dialects of schemas.
//!
//! Schemas are made with the keywords of both and with references as in version 2; these functions leave what a
//! version knows.

use serde_json::{Map, Value, json};

/// Where the schemas of version 2 are.
pub(super) const V2_PREFIX: &str = "#/definitions/";
/// Where the schemas of version 3 are.
pub(super) const V3_PREFIX: &str = "#/components/schemas/";

/// Leaves what version 2 knows: no alternatives and no nulls.
pub(super) fn to_v2(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    for keyword in ["anyOf", "oneOf", "not", "nullable"] {
        fields.remove(keyword);
    }
    if is_int_or_string(fields) {
        fields.insert("type".to_owned(), json!("string"));
        fields.insert("format".to_owned(), json!("int-or-string"));
    }
    each_below(fields, &mut to_v2);
}

/// Moves references to where version 3 has them. What stands beside a reference would be ignored there.
pub(super) fn to_v3(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::String(reference)) = fields.remove("$ref") {
        let name = reference.strip_prefix(V2_PREFIX).unwrap_or(&reference);
        let reference = json!({"$ref": format!("{V3_PREFIX}{name}")});
        if fields.is_empty() {
            *schema = reference;
        } else {
            fields.insert("allOf".to_owned(), json!([reference]));
        }
        return;
    }
    if is_int_or_string(fields) {
        fields.remove("anyOf");
        fields.insert("format".to_owned(), json!("int-or-string"));
        fields.insert(
            "oneOf".to_owned(),
            json!([{"type": "integer"}, {"type": "string"}]),
        );
    }
    each_below(fields, &mut to_v3);
}

fn is_int_or_string(fields: &Map<String, Value>) -> bool {
    fields.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true))
}

/// Calls a function for the schemas directly in a schema.
pub(super) fn each_below(fields: &mut Map<String, Value>, change: &mut impl FnMut(&mut Value)) {
    for (keyword, value) in fields {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(&mut *change);
            }
            ("items" | "additionalProperties", value) => change(value),
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(&mut *change);
            }
            _ => {}
        }
    }
}
