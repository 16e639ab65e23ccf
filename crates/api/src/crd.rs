//! `CustomResourceDefinition` manifests, printed from the types.

use serde_json::{Map, Value, json};

use crate::kind::{Kind, Scope};
use crate::schema::{self, Bounds, Fields, Node, Shape, TextRules};

/// The API group under which a cluster stores the resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// `projectcalico.org/v3`: users and Tortie share the objects.
    V3,
    /// `crd.projectcalico.org/v1`: the older group, which an API server stands in front of.
    V1,
}

impl Group {
    /// The name of the group.
    pub fn name(self) -> &'static str {
        match self {
            Self::V3 => "projectcalico.org",
            Self::V1 => "crd.projectcalico.org",
        }
    }

    /// The version within the group.
    pub fn version(self) -> &'static str {
        match self {
            Self::V3 => "v3",
            Self::V1 => "v1",
        }
    }

    /// Kind and plural of a kind in this group.
    pub fn crd_names(self, kind: Kind) -> (&'static str, &'static str) {
        match self {
            Self::V3 => (kind.as_str(), kind.plural()),
            Self::V1 => kind.v1_crd_names(),
        }
    }
}

/// The manifests of all kinds that have one, in alphabetical order.
pub fn manifests(group: Group) -> Vec<Value> {
    Kind::ALL
        .iter()
        .filter(|kind| kind.has_crd())
        .map(|kind| manifest(*kind, group))
        .collect()
}

/// The manifest of one kind.
fn manifest(kind: Kind, group: Group) -> Value {
    let (name, plural) = group.crd_names(kind);
    let mut names = json!({
        "kind": name,
        "listKind": format!("{name}List"),
        "plural": plural,
        "singular": name.to_ascii_lowercase(),
    });
    let mut version = json!({
        "name": group.version(),
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": object_schema(kind, group)},
    });
    if kind.has_status() {
        version["subresources"] = json!({"status": {}});
    }
    if group == Group::V3 {
        if !kind.short_names().is_empty() {
            names["shortNames"] = json!(kind.short_names());
        }
        let columns = printer_columns(kind);
        if !columns.is_empty() {
            version["additionalPrinterColumns"] = columns
                .iter()
                .map(|(name, kind, path)| json!({"name": name, "type": kind, "jsonPath": path}))
                .collect();
        }
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{}", group.name())},
        "spec": {
            "group": group.name(),
            "names": names,
            "scope": match kind.scope() {
                Scope::Namespaced => "Namespaced",
                Scope::Cluster => "Cluster",
            },
            "versions": [version],
        },
    })
}

/// The schema of one kind in the group of users, as its manifest has it. The schema of metadata is left to Kubernetes.
pub fn schema(kind: Kind) -> Value {
    object_schema(kind, Group::V3)
}

fn object_schema(kind: Kind, group: Group) -> Value {
    let Shape::Struct(fields) = &schema::of(kind).shape else {
        return json!({"type": "object"});
    };
    let mut properties = Map::new();
    for (name, node) in &fields.known {
        // Kubernetes has its own schema for metadata.
        let schema = if name == "metadata" {
            json!({"type": "object"})
        } else {
            print(node)
        };
        properties.insert(name.clone(), schema);
    }
    let mut result = json!({"type": "object", "properties": properties});
    if group == Group::V3 || kind == Kind::Tier {
        result["required"] = json!(["metadata", "spec"]);
    }
    if group == Group::V1 && kind == Kind::BlockAffinity {
        // The older group writes the flag as text and does not restrict the state.
        let spec = &mut result["properties"]["spec"]["properties"];
        spec["deleted"] = json!({"type": "string", "description": spec["deleted"]["description"]});
        if let Some(state) = spec["state"].as_object_mut() {
            state.remove("enum");
        }
    }
    if group == Group::V1 && kind == Kind::IpamConfiguration {
        // The older group leaves the defaults to the reader.
        for field in result["properties"]["spec"]["properties"]
            .as_object_mut()
            .into_iter()
            .flatten()
        {
            if let Some(field) = field.1.as_object_mut() {
                field.remove("default");
            }
        }
    }
    result
}

fn print(node: &Node) -> Value {
    let mut result = match &node.shape {
        Shape::Any => json!({"x-kubernetes-preserve-unknown-fields": true}),
        Shape::Boolean => json!({"type": "boolean"}),
        Shape::Integer(bounds) => print_number("integer", bounds),
        Shape::Number(bounds) => print_number("number", bounds),
        Shape::IntOrString => json!({
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": true,
        }),
        Shape::Text(rules) => print_text(rules),
        Shape::List {
            items, min, max, ..
        } => {
            let mut list = json!({"type": "array", "items": print(items)});
            set(&mut list, "minItems", *min);
            set(&mut list, "maxItems", *max);
            list
        }
        Shape::Map { values } => json!({"type": "object", "additionalProperties": print(values)}),
        Shape::Struct(fields) => print_struct(fields),
    };
    set(&mut result, "description", node.description.as_deref());
    set(&mut result, "default", node.default.clone());
    if !node.allowed.is_empty() && !node.is_unlisted {
        result["enum"] = json!(node.allowed);
    }
    if node.is_nullable {
        result["nullable"] = json!(true);
    }
    for (keyword, value) in &node.kubernetes {
        result[keyword] = value.clone();
    }
    result
}

fn print_struct(fields: &Fields) -> Value {
    let properties: Map<String, Value> = fields
        .known
        .iter()
        .map(|(name, node)| (name.clone(), print(node)))
        .collect();
    let mut result = json!({"type": "object"});
    if !properties.is_empty() {
        result["properties"] = Value::Object(properties);
    }
    if !fields.required.is_empty() {
        let mut required = fields.required.clone();
        required.sort();
        result["required"] = json!(required);
    }
    set(&mut result, "minProperties", fields.min);
    set(&mut result, "maxProperties", fields.max);
    result
}

fn print_number(kind: &str, bounds: &Bounds) -> Value {
    let mut result = json!({"type": kind});
    // The formats that Kubernetes knows; Rust's unsigned ones say no more than their limits.
    let format = bounds
        .format
        .as_deref()
        .filter(|format| ["int32", "int64"].contains(format));
    set(&mut result, "format", format.filter(|_| kind == "integer"));
    for (keyword, bound) in [("minimum", bounds.min), ("maximum", bounds.max)] {
        if let Some(bound) = bound {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "bounds are whole and below 2^53"
            )]
            let whole = bound as i64;
            result[keyword] = json!(whole);
        }
    }
    result
}

fn print_text(rules: &TextRules) -> Value {
    let mut result = json!({"type": "string"});
    set(&mut result, "minLength", rules.min);
    set(&mut result, "maxLength", rules.max);
    set(
        &mut result,
        "pattern",
        rules.pattern.as_ref().map(regex::Regex::as_str),
    );
    // Kubernetes' own durations are stricter than Go's, so the format stays ours.
    set(
        &mut result,
        "format",
        rules
            .format
            .as_deref()
            .filter(|format| *format != "duration"),
    );
    result
}

fn set(schema: &mut Value, keyword: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        schema[keyword] = value.into();
    }
}

/// A column of `kubectl get`: its heading, the type of its values, and the JSON path to them.
pub type PrinterColumn = (&'static str, &'static str, &'static str);

/// What `kubectl get` shows besides the name.
pub fn printer_columns(kind: Kind) -> &'static [PrinterColumn] {
    const TIER: PrinterColumn = ("Tier", "string", ".spec.tier");
    const ORDER: PrinterColumn = ("Order", "number", ".spec.order");
    const AGE: PrinterColumn = ("Age", "date", ".metadata.creationTimestamp");
    const NODE: PrinterColumn = ("Node", "string", ".spec.node");
    const CIDR: PrinterColumn = ("CIDR", "string", ".spec.cidr");
    match kind {
        Kind::NetworkPolicy | Kind::StagedNetworkPolicy | Kind::StagedGlobalNetworkPolicy => {
            &[TIER, ORDER]
        }
        Kind::GlobalNetworkPolicy => &[TIER, ORDER, AGE],
        Kind::Tier => &[
            ("Order", "integer", ".spec.order"),
            ("DefaultAction", "string", ".spec.defaultAction"),
            (
                "Status",
                "string",
                ".status.conditions[?(@.type=='Ready')].reason",
            ),
        ],
        Kind::IpPool => &[
            CIDR,
            ("VXLAN", "string", ".spec.vxlanMode"),
            ("IPIP", "string", ".spec.ipipMode"),
            ("NAT", "boolean", ".spec.natOutgoing"),
            (
                "Allocatable",
                "string",
                ".status.conditions[?(@.type=='Allocatable')].status",
            ),
            AGE,
        ],
        Kind::HostEndpoint => &[NODE, ("Interface", "string", ".spec.interfaceName")],
        Kind::GlobalNetworkSet => &[AGE],
        Kind::IpamConfiguration => &[
            ("StrictAffinity", "boolean", ".spec.strictAffinity"),
            ("MaxBlocksPerHost", "integer", ".spec.maxBlocksPerHost"),
            ("AutoAllocateBlocks", "boolean", ".spec.autoAllocateBlocks"),
        ],
        Kind::IpamBlock => &[
            CIDR,
            ("Affinity", "string", ".spec.affinity"),
            ("ClaimTime", "date", ".spec.affinityClaimTime"),
        ],
        Kind::IpamHandle => &[("ID", "string", ".spec.handleID")],
        Kind::BlockAffinity => &[CIDR, NODE, ("Type", "string", ".spec.type")],
        Kind::ClusterInformation => &[
            ("Version", "string", ".spec.calicoVersion"),
            ("Ready", "boolean", ".spec.datastoreReady"),
            ("Types", "string", ".spec.clusterType"),
        ],
        Kind::BgpPeer => &[
            ("Node Selector", "string", ".spec.nodeSelector"),
            NODE,
            ("Local ASN", "string", ".spec.localASNumber"),
            ("Peer Selector", "string", ".spec.peerSelector"),
            ("Peer IP", "string", ".spec.peerIP"),
            ("Peer ASN", "string", ".spec.asNumber"),
        ],
        Kind::CalicoNodeStatus => &[NODE, ("Classes", "string", ".spec.classes")],
        _ => &[],
    }
}
