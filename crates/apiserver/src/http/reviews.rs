//! Questions about rights and identity, which are asked by creating objects that nobody keeps.

use axum::http::StatusCode;
use axum::response::Response;
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SelfSubjectAccessReviewSpec, SubjectAccessReviewSpec,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde::Deserialize;
use serde_json::{Value, json};
use tortie_api::{Path, Problems};

use super::body::Sent;
use super::objects::Asked;
use super::{Api, reply};
use crate::access::{Attributes, User};
use crate::failure::{Failure, Reason, Result};
use crate::registry::Review;
use crate::service::check_envelope;

/// What somebody wants to do: with objects, or with a document.
type Wish = (Option<ResourceAttributes>, Option<NonResourceAttributes>);

impl Api {
    pub(super) async fn review(
        &self,
        review: Review,
        asked: Asked<'_>,
        namespace: Option<&str>,
        sent: &Sent,
    ) -> Result<Response> {
        let Asked { of, user, .. } = asked;
        let mut object = sent.object()?;
        check_envelope(of, namespace, None, &mut object)?;
        let invalid = |problems: &Problems| Failure::invalid(of.group, of.kind, "", problems);
        let spec = &object["spec"];
        let status = match review {
            Review::SelfSubject => json!({"userInfo": user.info()}),
            Review::Token => self.review_token(spec).await?,
            Review::SelfSubjectRules => {
                let Some(namespace) = spec["namespace"].as_str().filter(|name| !name.is_empty())
                else {
                    return Err(Failure::bad_request("no namespace on request"));
                };
                rules(&self.access.rules(user, namespace).await?)
            }
            Review::SelfSubjectAccess => {
                let spec: SelfSubjectAccessReviewSpec = read(spec)?;
                let wish = (spec.resource_attributes, spec.non_resource_attributes);
                check(&wish).map_err(|problems| invalid(&problems))?;
                self.may(user, wish).await?
            }
            Review::SubjectAccess | Review::LocalSubjectAccess => {
                let spec: SubjectAccessReviewSpec = read(spec)?;
                check_subject(&spec, namespace).map_err(|problems| invalid(&problems))?;
                let user = User {
                    name: spec.user.unwrap_or_default(),
                    uid: spec.uid.unwrap_or_default(),
                    groups: spec.groups.unwrap_or_default(),
                    extra: spec.extra.unwrap_or_default(),
                };
                let wish = (spec.resource_attributes, spec.non_resource_attributes);
                self.may(&user, wish).await?
            }
        };
        object["status"] = status;
        Ok(reply::json(StatusCode::CREATED, &object))
    }

    /// Whether somebody may do something, as a status says it.
    async fn may(&self, user: &User, wish: Wish) -> Result<Value> {
        let decision = match wish {
            (Some(wish), _) => {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                let (verb, group, version) =
                    (text(&wish.verb), text(&wish.group), text(&wish.version));
                let (resource, subresource) = (text(&wish.resource), text(&wish.subresource));
                let attributes = Attributes {
                    verb: &verb,
                    group: &group,
                    version: &version,
                    resource: &resource,
                    subresource: &subresource,
                    namespace: wish.namespace.as_deref().filter(|text| !text.is_empty()),
                    name: wish.name.as_deref().filter(|text| !text.is_empty()),
                };
                self.access.authorize(user, &attributes).await
            }
            (None, wish) => {
                let wish = wish.unwrap_or_default();
                let (verb, path) = (wish.verb.unwrap_or_default(), wish.path.unwrap_or_default());
                self.access.authorize_path(user, &verb, &path).await
            }
        };
        match decision {
            Ok(()) => Ok(json!({"allowed": true})),
            Err(failure) if failure.reason == Reason::Forbidden => Ok(json!({"allowed": false})),
            Err(failure) => Err(failure),
        }
    }
}

fn read<'a, T: Deserialize<'a>>(spec: &'a Value) -> Result<T> {
    T::deserialize(spec).map_err(|error| Failure::bad_request(format!("spec: {error}")))
}

/// One of the two is asked about.
fn check(wish: &Wish) -> Result<(), Problems> {
    let mut problems = Problems::default();
    if wish.0.is_some() == wish.1.is_some() {
        let text = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        problems.add_missing(&Path::ROOT.field("spec"), text);
    }
    found(problems)
}

fn check_subject(spec: &SubjectAccessReviewSpec, namespace: Option<&str>) -> Result<(), Problems> {
    let wish = (
        spec.resource_attributes.clone(),
        spec.non_resource_attributes.clone(),
    );
    check(&wish)?;
    let mut problems = Problems::default();
    let root = Path::ROOT;
    let at = root.field("spec");
    let is_empty = |text: &Option<String>| text.as_deref().unwrap_or_default().is_empty();
    if is_empty(&spec.user) && spec.groups.as_deref().unwrap_or_default().is_empty() {
        let text = "at least one of user or group must be specified";
        problems.add_missing(&at.field("user"), text);
    }
    if let Some(namespace) = namespace {
        let asked = wish.0.as_ref().and_then(|wish| wish.namespace.as_deref());
        if wish.1.is_some() {
            let text = "must not be given: disallowed on this kind of request";
            problems.add_missing(&at.field("nonResourceAttributes"), text);
        } else if asked != Some(namespace) {
            let at = at.field("resourceAttributes");
            let text = format!("must match metadata.namespace, {namespace:?}");
            problems.add(&at.field("namespace"), asked, text);
        }
    }
    found(problems)
}

fn found(problems: Problems) -> Result<(), Problems> {
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// Rules by what they are about.
fn rules(rules: &[PolicyRule]) -> Value {
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for rule in rules {
        if rule.resources.as_ref().is_some_and(|list| !list.is_empty()) {
            resources.push(json!({
                "verbs": rule.verbs,
                "apiGroups": rule.api_groups.as_deref().unwrap_or_default(),
                "resources": rule.resources,
                "resourceNames": rule.resource_names.as_deref().unwrap_or_default(),
            }));
        }
        let own = rule.non_resource_urls.as_deref().unwrap_or_default();
        if !own.is_empty() {
            paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": own}));
        }
    }
    json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
}
