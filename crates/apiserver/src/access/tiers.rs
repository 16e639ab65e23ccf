//! Who may do what with policies, by the tiers that they are in.
//!
//! Beside what all resources need, an operation on a policy in tier `T` needs that the user may `get` that tier, and that
//! the user has the verb for the resource `tier.<resource>`, either for the name in the request or for the name `T.*`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Attributes, Authorize, User, forbidden};
use crate::failure::{Failure, Reason, Result};
use crate::options::ListOptions;
use crate::registry::{Content, ResourceType};

/// The tier of policies that name none.
const DEFAULT: &str = "default";

/// The field and the label that say which tier a policy is in.
const FIELD: &str = "spec.tier";
const LABEL: &str = "projectcalico.org/tier";

/// One request for policies.
#[derive(Clone, Copy)]
pub struct TierAccess<'a> {
    /// Who decides.
    pub authorizer: &'a dyn Authorize,
    /// Who asks.
    pub user: &'a User,
    /// What for.
    pub attributes: Attributes<'a>,
}

/// Whether objects of a type are in tiers.
pub fn has_tiers(of: &ResourceType) -> bool {
    matches!(of.content, Content::Calico(kind) if kind.is_tiered_policy())
}

/// The tier that a policy is in.
pub fn tier_of(policy: &Value) -> &str {
    let tier = policy.pointer("/spec/tier").and_then(Value::as_str);
    tier.filter(|tier| !tier.is_empty()).unwrap_or(DEFAULT)
}

impl TierAccess<'_> {
    /// Whether the request may be carried out for a policy in a tier. The policy's name is for the message alone.
    pub async fn check(&self, policy: &str, tier: &str) -> Result<()> {
        let Attributes {
            verb,
            group,
            resource,
            subresource,
            namespace,
            ..
        } = self.attributes;
        let tier_resource = format!("tier.{resource}");
        let any = format!("{tier}.*");
        let get = Attributes {
            verb: "get",
            resource: "tiers",
            subresource: "",
            namespace: None,
            name: Some(tier),
            ..self.attributes
        };
        let this = Attributes {
            resource: &tier_resource,
            ..self.attributes
        };
        let all = Attributes {
            name: Some(&any),
            ..this
        };
        let (get, this, all) = futures::join!(self.may(&get), self.may(&this), self.may(&all));
        let (get, this, all) = (get?, this?, all?);
        if get && (this || all) {
            return Ok(());
        }
        let slash = if subresource.is_empty() { "" } else { "/" };
        let user = &self.user.name;
        let namespace = namespace.map(|namespace| format!(" and namespace {namespace:?}"));
        let namespace = namespace.unwrap_or_default();
        let hidden = if get { "" } else { " (user cannot get tier)" };
        let why = format!(
            "User {user:?} cannot {verb} {resource}.{group}{slash}{subresource} in tier {tier:?}{namespace}{hidden}"
        );
        Err(forbidden(group, resource, policy, &why))
    }

    /// The same for a policy as a whole.
    pub async fn check_policy(&self, policy: &Value) -> Result<()> {
        let name = policy.pointer("/metadata/name").and_then(Value::as_str);
        self.check(name.unwrap_or_default(), tier_of(policy)).await
    }

    async fn may(&self, attributes: &Attributes<'_>) -> Result<bool> {
        match self.authorizer.authorize(self.user, attributes).await {
            Ok(()) => Ok(true),
            Err(failure) if failure.reason == Reason::Forbidden => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Restricts what a list, a watch or a deletion of many is about to tiers that the user may see: those that are asked
    /// for, all of which must be allowed, or else those that are allowed of all.
    pub async fn restrict(&self, options: &mut ListOptions, all: &[String]) -> Result<()> {
        if let Some(asked) = asked_for(options)? {
            for tier in &asked {
                self.check("", tier).await?;
            }
            options.tiers = Some(asked);
            return Ok(());
        }
        // Also what is in no tier that exists.
        if self.user.is_administrator() {
            return Ok(());
        }
        let mut allowed = BTreeSet::new();
        for tier in all {
            match self.check("", tier).await {
                Ok(()) => drop(allowed.insert(tier.clone())),
                Err(failure) if failure.reason == Reason::Forbidden => {}
                Err(failure) => return Err(failure),
            }
        }
        if allowed.is_empty() && !all.is_empty() {
            let Attributes {
                group, resource, ..
            } = self.attributes;
            let why = "operation on Calico tiered policy is forbidden";
            return Err(forbidden(group, resource, "", why));
        }
        options.tiers = Some(allowed);
        Ok(())
    }
}

/// The tiers that the selectors ask for.
fn asked_for(options: &ListOptions) -> Result<Option<BTreeSet<String>>> {
    match options.fields.condition(FIELD) {
        Some((tier, true)) => return Ok(Some([tier.to_owned()].into())),
        Some((_, false)) => {
            return Err(Failure::bad_request(format!(
                "non equal selector operator not supported for field {FIELD}"
            )));
        }
        None => {}
    }
    match options.labels.values(LABEL) {
        None => Ok(None),
        Some(Some(tiers)) => Ok(Some(tiers.clone())),
        Some(None) => Err(Failure::bad_request(format!(
            "non equal selector operator not supported for label {LABEL}"
        ))),
    }
}
