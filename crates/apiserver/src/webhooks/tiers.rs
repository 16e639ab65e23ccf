//! `/rbac`: policies are written by those who may write in their tier, which must be there.

use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject};
use serde_json::Value;
use tortie_api::Kind;
use tortie_api::crd::Group;
use tortie_operator::webhook::{Operation, Refusal, Review};

use crate::access::delegated::SubjectAccess;
use crate::access::tiers::{TierAccess, tier_of};
use crate::access::{Attributes, User};
use crate::failure::{Failure, Reason};

/// How long answers about who may do what are remembered.
const MEMORY: Duration = Duration::from_secs(5);

/// The kinds that are in tiers here. Staged policies of Kubernetes' form name none and are in the default one.
const POLICIES: &[Kind] = &[
    Kind::NetworkPolicy,
    Kind::GlobalNetworkPolicy,
    Kind::StagedNetworkPolicy,
    Kind::StagedGlobalNetworkPolicy,
    Kind::StagedKubernetesNetworkPolicy,
];

pub(super) struct TierHook {
    subjects: SubjectAccess,
    tiers: Api<DynamicObject>,
}

impl TierHook {
    pub(super) fn new(client: kube::Client) -> Self {
        let group = Group::V3;
        let resource = ApiResource {
            group: group.name().to_owned(),
            version: group.version().to_owned(),
            api_version: format!("{}/{}", group.name(), group.version()),
            kind: Kind::Tier.as_str().to_owned(),
            plural: Kind::Tier.plural().to_owned(),
        };
        Self {
            subjects: SubjectAccess::new(client.clone(), MEMORY),
            tiers: Api::all_with(client, &resource),
        }
    }

    pub(super) async fn check(&self, review: &Review<Value>) -> Result<(), Refusal> {
        let kind = POLICIES.iter().find(|kind| kind.as_str() == review.kind);
        let kind = kind.ok_or_else(|| {
            let text = format!("Failed to parse policy: unsupported kind: {}", review.kind);
            Refusal::new(text).with_reason(422, "Invalid")
        })?;
        let (new, old) = (review.object.as_ref(), review.old.as_ref());
        let Some(object) = new.or(old) else {
            let refusal = Refusal::new("No object in admission request");
            return Err(refusal.with_reason(400, "BadRequest"));
        };
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let name = text("/metadata/name").unwrap_or_default();
        let user = user_of(review);
        let access = TierAccess {
            authorizer: &self.subjects,
            user: &user,
            attributes: Attributes {
                verb: verb(review.operation),
                group: Group::V3.name(),
                version: Group::V3.version(),
                resource: kind.plural(),
                subresource: "",
                namespace: text("/metadata/namespace"),
                name: Some(name).filter(|_| review.operation != Operation::Connect),
            },
        };
        let allowed = access.check(name, tier_of(object)).await;
        allowed.map_err(|failure| refused("Authorization failed", &failure))?;
        if new.is_some() {
            self.check_tier(tier_of(object)).await?;
        }
        // Moving a policy takes it away from its old tier.
        if let (Some(new), Some(old)) = (new, old)
            && tier_of(new) != tier_of(old)
        {
            let allowed = access.check(name, tier_of(old)).await;
            allowed.map_err(|failure| refused("Authorization failed for old tier", &failure))?;
        }
        Ok(())
    }

    /// A policy can be only in a tier that is there and will stay.
    async fn check_tier(&self, tier: &str) -> Result<(), Refusal> {
        let found = self.tiers.get_opt(tier).await.map_err(|error| {
            let text = format!("Failed to verify tier existence: {error}");
            Refusal::new(text).with_reason(500, "InternalError")
        })?;
        let problem = match found {
            None => "does not exist",
            Some(tier) if tier.metadata.deletion_timestamp.is_some() => "is being deleted",
            Some(_) => return Ok(()),
        };
        let refusal = Refusal::new(format!("Tier {tier:?} {problem}"));
        Err(refusal.with_reason(403, "Forbidden"))
    }
}

fn refused(what: &str, failure: &Failure) -> Refusal {
    let refusal = Refusal::new(format!("{what}: {failure}"));
    match failure.reason {
        Reason::Forbidden => refusal.with_reason(403, "Forbidden"),
        _ => refusal.with_reason(500, "InternalError"),
    }
}

fn verb(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
        Operation::Connect => "connect",
    }
}

fn user_of(review: &Review<Value>) -> User {
    let user = &review.user;
    User {
        name: user.username.clone(),
        uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: user.extra.clone(),
    }
}
