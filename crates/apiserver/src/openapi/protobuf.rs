//! A document of version 2 in the form that kubectl asks for.

use prost::Message as _;
use serde_json::{Map, Value};

use super::messages::{
    AdditionalProperties, Any, BodyParameter, Document, Info, Items, JsonReference, NamedAny,
    NamedParameter, NamedPathItem, NamedResponse, NamedSchema, NamedSchemas, NonBodyParameter,
    Operation, Parameter, ParameterDefinitions, ParametersItem, PathItem, PathParameter, Paths,
    QueryParameter, Response, ResponseValue, Responses, Schema, SchemaItem, Types,
};

/// The keywords of schemas that are carried over, besides extensions. What else there is would be lost.
#[cfg(test)]
pub(super) const KEYWORDS: &[&str] = &[
    "$ref",
    "additionalProperties",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "pattern",
    "properties",
    "required",
    "type",
];

/// Writes a document.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    message(document).encode_to_vec()
}

pub(super) fn message(document: &Value) -> Document {
    let info = &document["info"];
    Document {
        swagger: text(document, "swagger"),
        info: Some(Info {
            title: text(info, "title"),
            version: text(info, "version"),
        }),
        paths: Some(Paths {
            path: members(document, "paths")
                .map(|(name, item)| NamedPathItem {
                    name: name.clone(),
                    value: Some(path_item(item)),
                })
                .collect(),
        }),
        definitions: schemas(document, "definitions"),
        parameters: Some(ParameterDefinitions {
            additional_properties: members(document, "parameters")
                .map(|(name, value)| NamedParameter {
                    name: name.clone(),
                    value: Some(parameter(value)),
                })
                .collect(),
        }),
    }
}

fn path_item(item: &Value) -> PathItem {
    let find = |method: &str| item.get(method).map(operation);
    PathItem {
        get: find("get"),
        put: find("put"),
        post: find("post"),
        delete: find("delete"),
        patch: find("patch"),
        parameters: parameters(item),
    }
}

fn operation(operation: &Value) -> Operation {
    Operation {
        tags: texts(operation, "tags"),
        id: text(operation, "operationId"),
        produces: texts(operation, "produces"),
        consumes: texts(operation, "consumes"),
        parameters: parameters(operation),
        responses: Some(Responses {
            response_code: members(operation, "responses")
                .map(|(code, value)| NamedResponse {
                    name: code.clone(),
                    value: Some(ResponseValue {
                        response: Some(response(value)),
                    }),
                })
                .collect(),
        }),
        vendor_extension: extensions(operation),
    }
}

fn response(response: &Value) -> Response {
    Response {
        description: text(response, "description"),
        schema: response.get("schema").map(|found| SchemaItem {
            schema: Some(schema(found)),
        }),
    }
}

fn parameters(of: &Value) -> Vec<ParametersItem> {
    let parameters = of["parameters"].as_array().into_iter().flatten();
    parameters
        .map(|found| match found.get("$ref") {
            Some(_) => ParametersItem {
                json_reference: Some(JsonReference {
                    reference: text(found, "$ref"),
                }),
                ..ParametersItem::default()
            },
            None => ParametersItem {
                parameter: Some(parameter(found)),
                ..ParametersItem::default()
            },
        })
        .collect()
}

fn parameter(parameter: &Value) -> Parameter {
    let (name, place) = (text(parameter, "name"), text(parameter, "in"));
    let description = text(parameter, "description");
    let required = parameter["required"] == true;
    let kind = text(parameter, "type");
    let non_body_parameter = match place.as_str() {
        "body" => {
            return Parameter {
                body_parameter: Some(BodyParameter {
                    name,
                    place,
                    required,
                    schema: parameter.get("schema").map(schema),
                }),
                ..Parameter::default()
            };
        }
        "path" => NonBodyParameter {
            path: Some(PathParameter {
                required,
                place,
                description,
                name,
                kind,
            }),
            ..NonBodyParameter::default()
        },
        _ => NonBodyParameter {
            query: Some(QueryParameter {
                place,
                description,
                name,
                kind,
            }),
            ..NonBodyParameter::default()
        },
    };
    Parameter {
        non_body_parameter: Some(non_body_parameter),
        ..Parameter::default()
    }
}

fn schemas(of: &Value, keyword: &str) -> Option<NamedSchemas> {
    of.get(keyword)?;
    let named = members(of, keyword).map(|(name, value)| NamedSchema {
        name: name.clone(),
        value: Some(schema(value)),
    });
    Some(NamedSchemas {
        additional_properties: named.collect(),
    })
}

fn schema(of: &Value) -> Schema {
    let whole = |keyword: &str| of[keyword].as_i64().unwrap_or_default();
    let number = |keyword: &str| of[keyword].as_f64().unwrap_or_default();
    let types = of["type"].as_str().map(|name| Types {
        value: vec![name.to_owned()],
    });
    Schema {
        reference: text(of, "$ref"),
        format: text(of, "format"),
        description: text(of, "description"),
        default: of.get("default").map(any),
        maximum: number("maximum"),
        minimum: number("minimum"),
        max_length: whole("maxLength"),
        min_length: whole("minLength"),
        pattern: text(of, "pattern"),
        max_items: whole("maxItems"),
        min_items: whole("minItems"),
        max_properties: whole("maxProperties"),
        min_properties: whole("minProperties"),
        required: texts(of, "required"),
        allowed: of["enum"]
            .as_array()
            .into_iter()
            .flatten()
            .map(any)
            .collect(),
        additional_properties: of.get("additionalProperties").map(|values| {
            Box::new(AdditionalProperties {
                schema: Some(schema(values)),
            })
        }),
        types,
        items: of.get("items").map(|items| Items {
            schema: vec![schema(items)],
        }),
        properties: schemas(of, "properties"),
        vendor_extension: extensions(of),
    }
}

fn extensions(of: &Value) -> Vec<NamedAny> {
    let fields = of.as_object().into_iter().flatten();
    fields
        .filter(|(name, _)| name.starts_with("x-"))
        .map(|(name, value)| NamedAny {
            name: name.clone(),
            value: Some(any(value)),
        })
        .collect()
}

fn any(value: &Value) -> Any {
    Any {
        yaml: value.to_string(),
    }
}

fn members<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    of[name].as_object().into_iter().flat_map(Map::iter)
}

fn text(of: &Value, name: &str) -> String {
    of[name].as_str().unwrap_or_default().to_owned()
}

fn texts(of: &Value, name: &str) -> Vec<String> {
    let list = of[name].as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}
