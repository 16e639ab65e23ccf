//! The resources that are served.

use std::cmp::Reverse;
use std::sync::Arc;

use tortie_api::Kind;
use tortie_api::crd::Group;
use tortie_api::k8s::is_kubernetes_policy;
use tortie_api::validate::ROLE_GROUP;

use crate::custom::Definitions;

/// One kind of object under one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceType {
    /// The group; empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    /// The kind, as it stands in objects.
    pub kind: &'static str,
    /// The name in paths.
    pub plural: &'static str,
    /// The name of one.
    pub singular: String,
    /// Words that people may use as well.
    pub short_names: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub is_namespaced: bool,
    /// Whether the observed state is written apart, at `…/status`.
    pub has_status: bool,
    /// What objects hold.
    pub content: Content,
}

/// Group, version and plural of a resource.
pub type ResourceId = (&'static str, &'static str, &'static str);

/// What the objects of a resource hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// A resource of Calico's.
    Calico(Kind),
    /// An object of Kubernetes itself.
    Native(Native),
    /// A question, which is answered and not kept.
    Review(Review),
    /// What a definition describes that somebody stored.
    Custom,
}

/// The questions about rights and identity that are asked by creating them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    /// `authorization.k8s.io/v1` `LocalSubjectAccessReview`.
    LocalSubjectAccess,
    /// `authorization.k8s.io/v1` `SelfSubjectAccessReview`.
    SelfSubjectAccess,
    /// `authorization.k8s.io/v1` `SelfSubjectRulesReview`.
    SelfSubjectRules,
    /// `authorization.k8s.io/v1` `SubjectAccessReview`.
    SubjectAccess,
    /// `authentication.k8s.io/v1` `SelfSubjectReview`.
    SelfSubject,
    /// `authentication.k8s.io/v1` `TokenReview`.
    Token,
}

/// The kinds of Kubernetes itself that policies, addresses and controllers need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Native {
    /// `rbac.authorization.k8s.io/v1` `ClusterRole`.
    ClusterRole,
    /// `rbac.authorization.k8s.io/v1` `ClusterRoleBinding`.
    ClusterRoleBinding,
    /// `v1` `ConfigMap`.
    ConfigMap,
    /// `apiextensions.k8s.io/v1` `CustomResourceDefinition`.
    CustomResourceDefinition,
    /// `discovery.k8s.io/v1` `EndpointSlice`.
    EndpointSlice,
    /// `v1` `Event`.
    Event,
    /// `coordination.k8s.io/v1` `Lease`.
    Lease,
    /// `v1` `Namespace`.
    Namespace,
    /// `networking.k8s.io/v1` `NetworkPolicy`.
    NetworkPolicy,
    /// `events.k8s.io/v1` `Event`: another view of the same objects.
    NewEvent,
    /// `v1` `Node`.
    Node,
    /// `v1` `Pod`.
    Pod,
    /// `rbac.authorization.k8s.io/v1` `Role`.
    Role,
    /// `rbac.authorization.k8s.io/v1` `RoleBinding`.
    RoleBinding,
    /// `v1` `Secret`.
    Secret,
    /// `v1` `Service`.
    Service,
    /// `v1` `ServiceAccount`.
    ServiceAccount,
}

/// All resources that a server serves.
#[derive(Debug, Clone)]
pub struct Registry {
    types: Vec<ResourceType>,
    /// What is served besides, for as long as it is defined.
    definitions: Arc<Definitions>,
}

/// What can be done with objects that are kept.
const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// Kinds that Calico's own API server keeps to itself: programs write them, never people.
const INTERNAL: &[Kind] = &[Kind::IpamBlock, Kind::IpamHandle];

impl Registry {
    /// What a server serves that stands alone: Calico's resources, also those that only programs write, and Kubernetes'
    /// own objects.
    pub fn standalone() -> Self {
        let natives = Native::ALL.iter().map(|native| native.resource_type());
        let reviews = Review::ALL.iter().map(|review| review.resource_type());
        Self {
            types: natives.chain(reviews).chain(calico(&[])).collect(),
            definitions: Arc::default(),
        }
    }

    /// The same, with what these definitions describe.
    #[must_use]
    pub fn with_definitions(self, definitions: Arc<Definitions>) -> Self {
        Self {
            definitions,
            ..self
        }
    }

    /// The same without what anybody defined.
    #[must_use]
    pub fn built_in(&self) -> Self {
        self.clone().with_definitions(Arc::default())
    }

    /// What a server serves behind that of Kubernetes.
    pub fn aggregated() -> Self {
        Self {
            types: calico(INTERNAL).collect(),
            definitions: Arc::default(),
        }
    }

    /// All types that are always there, those of one group together.
    pub fn types(&self) -> &[ResourceType] {
        &self.types
    }

    /// All types, also those that somebody defined.
    pub fn all(&self) -> Vec<&ResourceType> {
        let custom = self.definitions.types().into_iter();
        self.types.iter().chain(custom).collect()
    }

    /// What somebody defined.
    pub(crate) fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// The type at a path.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&ResourceType> {
        let mut types = self.all().into_iter();
        types.find(|found| (found.group, found.version, found.plural) == (group, version, plural))
    }

    /// All groups with their versions, each once, in order; of the versions of a group the best is first.
    pub fn groups(&self) -> Vec<(&'static str, &'static str)> {
        let all = self.all().into_iter();
        let mut groups: Vec<_> = all.map(|found| (found.group, found.version)).collect();
        groups.sort_unstable_by_key(|(group, version)| (*group, rank(version), *version));
        groups.dedup();
        groups
    }

    /// The types of a group.
    pub fn in_group<'a>(
        &'a self,
        group: &'a str,
        version: &'a str,
    ) -> impl Iterator<Item = &'a ResourceType> {
        let types = self.all().into_iter();
        types.filter(move |found| found.group == group && found.version == version)
    }
}

/// Orders versions as Kubernetes does: stable ones before betas, those before alphas, and newer before older.
fn rank(version: &str) -> (u8, Reverse<u32>, Reverse<u32>) {
    let other = (3, Reverse(0), Reverse(0));
    let Some(number) = version.strip_prefix('v') else {
        return other;
    };
    let (class, major, minor) = match (number.split_once("beta"), number.split_once("alpha")) {
        (Some((major, minor)), _) => (1, major, minor),
        (_, Some((major, minor))) => (2, major, minor),
        _ => (0, number, "0"),
    };
    match (major.parse(), minor.parse()) {
        (Ok(major), Ok(minor)) => (class, Reverse(major), Reverse(minor)),
        _ => other,
    }
}

fn calico(without: &'static [Kind]) -> impl Iterator<Item = ResourceType> {
    let kinds = Kind::ALL.iter().copied();
    kinds
        .filter(|kind| kind.has_crd() || *kind == Kind::Profile)
        .filter(|kind| !without.contains(kind))
        .map(|kind| ResourceType {
            group: Group::V3.name(),
            version: Group::V3.version(),
            kind: kind.as_str(),
            plural: kind.plural(),
            singular: kind.as_str().to_ascii_lowercase(),
            short_names: kind.short_names(),
            is_namespaced: kind.is_namespaced(),
            has_status: kind.has_status(),
            content: Content::Calico(kind),
        })
}

impl ResourceType {
    /// What tells it from others.
    pub fn id(&self) -> ResourceId {
        (self.group, self.version, self.plural)
    }

    /// Group and version, as they stand in objects.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Whether objects are kept.
    pub fn is_stored(&self) -> bool {
        !matches!(self.content, Content::Review(_))
    }

    /// Whether an object of this name is a policy of Kubernetes as Calico's, which goes with the former.
    pub fn is_view(&self, name: &str) -> bool {
        matches!(self.content, Content::Calico(kind) if is_kubernetes_policy(kind, name))
    }

    /// What can be done with objects.
    pub fn verbs(&self) -> &'static [&'static str] {
        if self.is_stored() { VERBS } else { &["create"] }
    }

    /// Whether objects are accounts that tokens are given to, at `…/token`.
    pub fn has_tokens(&self) -> bool {
        self.content == Content::Native(Native::ServiceAccount)
    }

    /// The fields that field selectors may ask for.
    pub fn selectable_fields(&self) -> &'static [&'static str] {
        match self.content {
            Content::Native(Native::Pod) => &[
                "metadata.name",
                "metadata.namespace",
                "spec.nodeName",
                "spec.restartPolicy",
                "spec.schedulerName",
                "spec.serviceAccountName",
                "status.phase",
                "status.podIP",
            ],
            Content::Native(Native::Node) => &["metadata.name", "spec.unschedulable"],
            Content::Native(Native::Namespace) => &["metadata.name", "status.phase"],
            Content::Native(Native::Event) => &[
                "involvedObject.apiVersion",
                "involvedObject.fieldPath",
                "involvedObject.kind",
                "involvedObject.name",
                "involvedObject.namespace",
                "involvedObject.resourceVersion",
                "involvedObject.uid",
                "metadata.name",
                "metadata.namespace",
                "reason",
                "reportingComponent",
                "type",
            ],
            Content::Native(Native::NewEvent) => &[
                "metadata.name",
                "metadata.namespace",
                "reason",
                "regarding.apiVersion",
                "regarding.fieldPath",
                "regarding.kind",
                "regarding.name",
                "regarding.namespace",
                "regarding.resourceVersion",
                "regarding.uid",
                "reportingController",
                "type",
            ],
            Content::Native(Native::Secret) => &["metadata.name", "metadata.namespace", "type"],
            Content::Calico(kind) if kind.is_tiered_policy() => {
                &["metadata.name", "metadata.namespace", "spec.tier"]
            }
            _ => &["metadata.name", "metadata.namespace"],
        }
    }
}

impl Native {
    /// All of them, by group.
    pub const ALL: &'static [Self] = &[
        Self::ConfigMap,
        Self::Event,
        Self::Namespace,
        Self::Node,
        Self::Pod,
        Self::Secret,
        Self::Service,
        Self::ServiceAccount,
        Self::CustomResourceDefinition,
        Self::Lease,
        Self::EndpointSlice,
        Self::NewEvent,
        Self::NetworkPolicy,
        Self::ClusterRole,
        Self::ClusterRoleBinding,
        Self::Role,
        Self::RoleBinding,
    ];

    /// Whether its objects say what somebody may do.
    pub fn is_role_or_binding(self) -> bool {
        matches!(
            self,
            Self::ClusterRole | Self::ClusterRoleBinding | Self::Role | Self::RoleBinding
        )
    }

    fn resource_type(self) -> ResourceType {
        let (group, kind, plural, short_names): (_, _, _, &[_]) = match self {
            Self::ConfigMap => ("", "ConfigMap", "configmaps", &["cm"]),
            Self::CustomResourceDefinition => (
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                "customresourcedefinitions",
                &["crd", "crds"],
            ),
            Self::Event => ("", "Event", "events", &["ev"]),
            Self::NewEvent => ("events.k8s.io", "Event", "events", &["ev"]),
            Self::Secret => ("", "Secret", "secrets", &[]),
            Self::Namespace => ("", "Namespace", "namespaces", &["ns"]),
            Self::Node => ("", "Node", "nodes", &["no"]),
            Self::Pod => ("", "Pod", "pods", &["po"]),
            Self::Service => ("", "Service", "services", &["svc"]),
            Self::ServiceAccount => ("", "ServiceAccount", "serviceaccounts", &["sa"]),
            Self::Lease => ("coordination.k8s.io", "Lease", "leases", &[]),
            Self::EndpointSlice => ("discovery.k8s.io", "EndpointSlice", "endpointslices", &[]),
            Self::NetworkPolicy => (
                "networking.k8s.io",
                "NetworkPolicy",
                "networkpolicies",
                &["netpol"],
            ),
            Self::ClusterRole => (ROLE_GROUP, "ClusterRole", "clusterroles", &[]),
            Self::ClusterRoleBinding => {
                (ROLE_GROUP, "ClusterRoleBinding", "clusterrolebindings", &[])
            }
            Self::Role => (ROLE_GROUP, "Role", "roles", &[]),
            Self::RoleBinding => (ROLE_GROUP, "RoleBinding", "rolebindings", &[]),
        };
        ResourceType {
            group,
            version: "v1",
            kind,
            plural,
            singular: kind.to_ascii_lowercase(),
            short_names,
            is_namespaced: !matches!(
                self,
                Self::ClusterRole
                    | Self::ClusterRoleBinding
                    | Self::CustomResourceDefinition
                    | Self::Namespace
                    | Self::Node
            ),
            has_status: matches!(
                self,
                Self::CustomResourceDefinition
                    | Self::Namespace
                    | Self::Node
                    | Self::Pod
                    | Self::Service
            ),
            content: Content::Native(self),
        }
    }
}

impl Review {
    /// All of them, by group.
    pub const ALL: &'static [Self] = &[
        Self::LocalSubjectAccess,
        Self::SelfSubjectAccess,
        Self::SelfSubjectRules,
        Self::SubjectAccess,
        Self::SelfSubject,
        Self::Token,
    ];

    fn resource_type(self) -> ResourceType {
        let (group, kind, plural) = match self {
            Self::LocalSubjectAccess => (
                "authorization.k8s.io",
                "LocalSubjectAccessReview",
                "localsubjectaccessreviews",
            ),
            Self::SelfSubjectAccess => (
                "authorization.k8s.io",
                "SelfSubjectAccessReview",
                "selfsubjectaccessreviews",
            ),
            Self::SelfSubjectRules => (
                "authorization.k8s.io",
                "SelfSubjectRulesReview",
                "selfsubjectrulesreviews",
            ),
            Self::SubjectAccess => (
                "authorization.k8s.io",
                "SubjectAccessReview",
                "subjectaccessreviews",
            ),
            Self::SelfSubject => (
                "authentication.k8s.io",
                "SelfSubjectReview",
                "selfsubjectreviews",
            ),
            Self::Token => ("authentication.k8s.io", "TokenReview", "tokenreviews"),
        };
        ResourceType {
            group,
            version: "v1",
            kind,
            plural,
            singular: kind.to_ascii_lowercase(),
            short_names: &[],
            is_namespaced: self == Self::LocalSubjectAccess,
            has_status: false,
            content: Content::Review(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_found_under_its_path_and_no_word_means_two() {
        let registry = Registry::standalone();
        let mut words = Vec::new();
        for found in registry.types() {
            let again = registry.find(found.group, found.version, found.plural);
            assert_eq!(again, Some(found));
            let own = [found.plural, &found.singular].into_iter();
            words.extend(
                own.chain(found.short_names.iter().copied())
                    .map(|word| (word.to_owned(), found.group)),
            );
        }
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        // A singular may equal a short name, never that of another type of its group.
        assert!(count - words.len() <= 2, "{words:?}");
    }

    #[test]
    fn only_programs_see_blocks_and_handles() {
        let plural = "ipamblocks";
        let find = |registry: &Registry| registry.find("projectcalico.org", "v3", plural).is_some();
        assert!(find(&Registry::standalone()));
        assert!(!find(&Registry::aggregated()));
    }

    #[test]
    fn the_best_version_is_first() {
        let mut versions = ["v1alpha1", "v1", "foo", "v2beta1", "v10", "v1beta2", "v2"];
        versions.sort_unstable_by_key(|version| rank(version));
        let expected = ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"];
        assert_eq!(versions, expected);
    }

    #[test]
    fn groups_come_once() {
        let groups = Registry::standalone().groups();
        assert_eq!(groups.len(), 10);
        assert_eq!(groups[0], ("", "v1"));
    }
}
