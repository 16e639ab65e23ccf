//! The part of gnostic's messages for `OpenAPI` 2 that is used here, as prost messages. Field numbers are those of
//! its `OpenAPIv2.proto`; fields that are not used are left out, and of choices those arms.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Document {
    #[prost(string, tag = "1")]
    pub(super) swagger: String,
    #[prost(message, optional, tag = "2")]
    pub(super) info: Option<Info>,
    #[prost(message, optional, tag = "8")]
    pub(super) paths: Option<Paths>,
    #[prost(message, optional, tag = "9")]
    pub(super) definitions: Option<NamedSchemas>,
    #[prost(message, optional, tag = "10")]
    pub(super) parameters: Option<ParameterDefinitions>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Info {
    #[prost(string, tag = "1")]
    pub(super) title: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

/// A value as YAML, of which JSON is a part.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Any {
    #[prost(string, tag = "2")]
    pub(super) yaml: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedAny {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<Any>,
}

/// `Definitions` and `Properties`, which are alike.
#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedSchemas {
    #[prost(message, repeated, tag = "1")]
    pub(super) additional_properties: Vec<NamedSchema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedSchema {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Schema {
    #[prost(string, tag = "1")]
    pub(super) reference: String,
    #[prost(string, tag = "2")]
    pub(super) format: String,
    #[prost(string, tag = "4")]
    pub(super) description: String,
    #[prost(message, optional, tag = "5")]
    pub(super) default: Option<Any>,
    #[prost(double, tag = "7")]
    pub(super) maximum: f64,
    #[prost(double, tag = "9")]
    pub(super) minimum: f64,
    #[prost(int64, tag = "11")]
    pub(super) max_length: i64,
    #[prost(int64, tag = "12")]
    pub(super) min_length: i64,
    #[prost(string, tag = "13")]
    pub(super) pattern: String,
    #[prost(int64, tag = "14")]
    pub(super) max_items: i64,
    #[prost(int64, tag = "15")]
    pub(super) min_items: i64,
    #[prost(int64, tag = "17")]
    pub(super) max_properties: i64,
    #[prost(int64, tag = "18")]
    pub(super) min_properties: i64,
    #[prost(string, repeated, tag = "19")]
    pub(super) required: Vec<String>,
    #[prost(message, repeated, tag = "20")]
    pub(super) allowed: Vec<Any>,
    #[prost(message, optional, boxed, tag = "21")]
    pub(super) additional_properties: Option<Box<AdditionalProperties>>,
    #[prost(message, optional, tag = "22")]
    pub(super) types: Option<Types>,
    #[prost(message, optional, tag = "23")]
    pub(super) items: Option<Items>,
    #[prost(message, optional, tag = "25")]
    pub(super) properties: Option<NamedSchemas>,
    #[prost(message, repeated, tag = "31")]
    pub(super) vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AdditionalProperties {
    #[prost(message, optional, tag = "1")]
    pub(super) schema: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Types {
    #[prost(string, repeated, tag = "1")]
    pub(super) value: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Items {
    #[prost(message, repeated, tag = "1")]
    pub(super) schema: Vec<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Paths {
    #[prost(message, repeated, tag = "2")]
    pub(super) path: Vec<NamedPathItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedPathItem {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<PathItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PathItem {
    #[prost(message, optional, tag = "2")]
    pub(super) get: Option<Operation>,
    #[prost(message, optional, tag = "3")]
    pub(super) put: Option<Operation>,
    #[prost(message, optional, tag = "4")]
    pub(super) post: Option<Operation>,
    #[prost(message, optional, tag = "5")]
    pub(super) delete: Option<Operation>,
    #[prost(message, optional, tag = "8")]
    pub(super) patch: Option<Operation>,
    #[prost(message, repeated, tag = "9")]
    pub(super) parameters: Vec<ParametersItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Operation {
    #[prost(string, repeated, tag = "1")]
    pub(super) tags: Vec<String>,
    #[prost(string, tag = "5")]
    pub(super) id: String,
    #[prost(string, repeated, tag = "6")]
    pub(super) produces: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    pub(super) consumes: Vec<String>,
    #[prost(message, repeated, tag = "8")]
    pub(super) parameters: Vec<ParametersItem>,
    #[prost(message, optional, tag = "9")]
    pub(super) responses: Option<Responses>,
    #[prost(message, repeated, tag = "13")]
    pub(super) vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ParameterDefinitions {
    #[prost(message, repeated, tag = "1")]
    pub(super) additional_properties: Vec<NamedParameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedParameter {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<Parameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ParametersItem {
    #[prost(message, optional, tag = "1")]
    pub(super) parameter: Option<Parameter>,
    #[prost(message, optional, tag = "2")]
    pub(super) json_reference: Option<JsonReference>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct JsonReference {
    #[prost(string, tag = "1")]
    pub(super) reference: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Parameter {
    #[prost(message, optional, tag = "1")]
    pub(super) body_parameter: Option<BodyParameter>,
    #[prost(message, optional, tag = "2")]
    pub(super) non_body_parameter: Option<NonBodyParameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BodyParameter {
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(string, tag = "3")]
    pub(super) place: String,
    #[prost(bool, tag = "4")]
    pub(super) required: bool,
    #[prost(message, optional, tag = "5")]
    pub(super) schema: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NonBodyParameter {
    #[prost(message, optional, tag = "3")]
    pub(super) query: Option<QueryParameter>,
    #[prost(message, optional, tag = "4")]
    pub(super) path: Option<PathParameter>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct QueryParameter {
    #[prost(string, tag = "2")]
    pub(super) place: String,
    #[prost(string, tag = "3")]
    pub(super) description: String,
    #[prost(string, tag = "4")]
    pub(super) name: String,
    #[prost(string, tag = "6")]
    pub(super) kind: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PathParameter {
    #[prost(bool, tag = "1")]
    pub(super) required: bool,
    #[prost(string, tag = "2")]
    pub(super) place: String,
    #[prost(string, tag = "3")]
    pub(super) description: String,
    #[prost(string, tag = "4")]
    pub(super) name: String,
    #[prost(string, tag = "5")]
    pub(super) kind: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Responses {
    #[prost(message, repeated, tag = "1")]
    pub(super) response_code: Vec<NamedResponse>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct NamedResponse {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<ResponseValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResponseValue {
    #[prost(message, optional, tag = "1")]
    pub(super) response: Option<Response>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Response {
    #[prost(string, tag = "1")]
    pub(super) description: String,
    #[prost(message, optional, tag = "2")]
    pub(super) schema: Option<SchemaItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct SchemaItem {
    #[prost(message, optional, tag = "1")]
    pub(super) schema: Option<Schema>,
}
