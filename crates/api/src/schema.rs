//! The structural schema of each kind, read off its Rust type.
//!
//! One tree serves three purposes: checking values, applying defaults, and printing the CRD. Field attributes of the
//! form `#[schemars(extend(…))]` feed it; these keywords are ours and never printed: `x-default` (the default,
//! as opposed to what `serde(default)` would claim), `x-check` (named rules of [`checks`], comma-separated),
//! `x-empty` (an enum that may also be an empty string, which means "not set"), `x-unlisted` (an enum that the CRD
//! does not list), `x-repeats` (a set whose items may be given twice, as Calico's own checks let them) and `x-nullable`
//! (written as null when not set).

mod check;
mod checks;
mod read;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use regex::Regex;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::kind::Kind;
use crate::kinds;
use crate::meta::Metadata;
use crate::object::Spec;

pub(crate) use check::{Strictness, edit_distance};
pub(crate) use checks::Check;

/// The schema of one value.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent property of a schema"
)]
pub(crate) struct Node {
    pub(crate) description: Option<String>,
    pub(crate) shape: Shape,
    pub(crate) default: Option<Value>,
    pub(crate) allowed: Vec<Value>,
    /// Whether the allowed values stay out of the CRD, because Calico's does not list them either.
    pub(crate) is_unlisted: bool,
    pub(crate) checks: Vec<Check>,
    /// Whether an empty string breaks the rules instead of meaning "not set".
    pub(crate) is_filled: bool,
    /// Whether an enum that is an empty string counts as left out.
    pub(crate) may_be_empty: bool,
    /// Whether a list item may be null.
    pub(crate) is_nullable: bool,
    /// Keywords that only Kubernetes reads.
    pub(crate) kubernetes: BTreeMap<String, Value>,
}

/// What form a value has.
#[derive(Debug, Default)]
pub(crate) enum Shape {
    #[default]
    Any,
    Boolean,
    Integer(Bounds),
    Number(Bounds),
    IntOrString,
    Text(TextRules),
    List {
        items: Box<Node>,
        min: Option<u64>,
        max: Option<u64>,
        is_set: bool,
    },
    Map {
        values: Box<Node>,
    },
    Struct(Fields),
}

/// The limits of a number.
#[derive(Debug, Default, Clone)]
pub(crate) struct Bounds {
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) format: Option<String>,
    /// Whether text that stands for a number is taken too.
    pub(crate) accepts_text: bool,
}

/// The limits of a string.
#[derive(Debug, Default)]
pub(crate) struct TextRules {
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
    pub(crate) pattern: Option<Regex>,
    pub(crate) format: Option<String>,
}

/// The fields of an object.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pub(crate) known: BTreeMap<String, Node>,
    pub(crate) required: Vec<String>,
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
}

/// The schema of a kind, built when it is first needed.
pub(crate) fn of(kind: Kind) -> &'static Node {
    static SCHEMAS: [OnceLock<Node>; Kind::ALL.len()] =
        [const { OnceLock::new() }; Kind::ALL.len()];
    SCHEMAS[kind as usize].get_or_init(|| build(kind))
}

macro_rules! build_by_kind {
    ($kind:expr; $($name:ident),* $(,)?) => {
        match $kind { $(Kind::$name => build_object::<<kinds::$name as HasSpec>::Spec>(),)* }
    };
}

/// Names the spec type of an object type.
trait HasSpec {
    type Spec: Spec;
}

impl<S: Spec> HasSpec for crate::Object<S> {
    type Spec = S;
}

fn build(kind: Kind) -> Node {
    build_by_kind!(kind;
        BgpConfiguration, BgpFilter, BgpPeer, BlockAffinity, CalicoNodeStatus, ClusterInformation, FelixConfiguration,
        GlobalNetworkPolicy, GlobalNetworkSet, HostEndpoint, IpamBlock, IpamConfiguration, IpamHandle, IpPool,
        IpReservation, KubeControllersConfiguration, LiveMigration, NetworkPolicy, NetworkSet, Node, Profile,
        StagedGlobalNetworkPolicy, StagedKubernetesNetworkPolicy, StagedNetworkPolicy, Tier, WorkloadEndpoint,
    )
}

fn build_object<S: Spec>() -> Node {
    let mut known = BTreeMap::from([
        (
            "apiVersion".to_owned(),
            Node {
                shape: Shape::Text(TextRules::default()),
                ..Node::default()
            },
        ),
        (
            "kind".to_owned(),
            Node {
                shape: Shape::Text(TextRules::default()),
                ..Node::default()
            },
        ),
        ("metadata".to_owned(), read_type::<Metadata>()),
        ("spec".to_owned(), read_type::<S>()),
    ]);
    if S::KIND.has_status() {
        known.insert("status".to_owned(), read_type::<S::Status>());
    }
    Node {
        shape: Shape::Struct(Fields {
            known,
            ..Fields::default()
        }),
        ..Node::default()
    }
}

fn read_type<T: schemars::JsonSchema>() -> Node {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    read::node(schema.as_value())
}
