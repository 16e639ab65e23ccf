//! Requests for objects.

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;

use super::accept::{Accept, View};
use super::body::Sent;
use super::list::Reader;
use super::stream::End;
use super::{Api, body, list, method_not_allowed, not_found, reply, stream};
use crate::access::tiers::TierAccess;
use crate::access::{Attributes, Rights, User};
use crate::custom;
use crate::failure::{Failure, Reason, Result};
use crate::options::{ListOptions, Query, UnknownFields, WriteOptions};
use crate::patch::Patch;
use crate::path::Objects;
use crate::registry::{Content, Native, ResourceType};
use crate::service::{Body, Deleted, Guard, Write, Written};

/// What a request is about, and who sent it.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) of: &'a ResourceType,
    pub(super) target: &'a Objects,
    pub(super) user: &'a User,
    pub(super) query: &'a Query,
    pub(super) accept: &'a Accept,
}

impl Api {
    pub(super) async fn objects(
        &self,
        asked: Asked<'_>,
        parts: &Parts,
        body: Sent,
    ) -> Result<Response> {
        let Asked {
            of,
            target,
            user,
            query,
            accept,
        } = asked;
        let namespace = namespace_of(of, target)?;
        let part = match target.subresource.as_deref() {
            None => "",
            Some("status") if of.has_status => "status",
            Some("token") if of.has_tokens() => "token",
            Some(_) => return Err(not_found()),
        };
        let is_status = part == "status";
        let verb = verb(&parts.method, target, query)?;
        let selected = selected_name(of, query, verb);
        let attributes = Attributes {
            verb,
            group: of.group,
            version: of.version,
            resource: of.plural,
            subresource: part,
            // Rights in a namespace are also about the namespace itself.
            namespace: match of.content {
                Content::Native(Native::Namespace) => target.name.as_deref(),
                _ => namespace,
            },
            name: target.name.as_deref().or(selected.as_deref()),
        };
        self.access.authorize(user, &attributes).await?;
        if let Content::Review(review) = of.content {
            return match verb {
                "create" => self.review(review, asked, namespace, &body).await,
                _ => Err(method_not_allowed(&parts.method)),
            };
        }
        if let ("token", Some(namespace), Some(name)) = (part, namespace, &target.name) {
            return match verb {
                "create" => self.issue_token(asked, namespace, name, &body).await,
                _ => Err(method_not_allowed(&parts.method)),
            };
        }
        let rights = Rights::new(&*self.access, user, attributes, of);
        let (tiers, guard): (_, &dyn Guard) = (rights.tiers(), &rights);
        let view = accept.view(query)?;
        match (verb, &target.name) {
            ("get", Some(name)) => {
                let object = self.service.get(of, namespace, name).await?;
                guard.check(&object).await?;
                Ok(view.object(of, StatusCode::OK, &object))
            }
            ("watch", _) => {
                // Before the tiers are read, so that none is missed.
                let new_tiers = match tiers {
                    Some(_) => Some(self.service.watch_tiers().await?),
                    None => None,
                };
                let mut options = self.selected(query, of, tiers).await?;
                if let Some(name) = &target.name {
                    options.fields = options.fields.and_name(name);
                }
                let watching = match self.service.watch(of, namespace, &options).await {
                    Ok(watching) => watching,
                    // As Kubernetes does it, and as clients expect it who then list again.
                    Err(failure) if failure.reason == Reason::Expired => {
                        return Ok(stream::expired(&failure));
                    }
                    Err(failure) => return Err(failure),
                };
                let end = End {
                    timeout: options.timeout,
                    closing: self.closing.subscribe(),
                    tiers: new_tiers,
                };
                let open = self.metrics.open_watch(of);
                Ok(stream::response(watching, view, end, open))
            }
            ("list", _) => {
                let options = self.selected(query, of, tiers).await?;
                let listing = self.service.list(of, namespace, &options, &user.name);
                list::response(view, listing.await?, self.reader(user)).await
            }
            ("deletecollection", _) => {
                let selected = self.selected(query, of, tiers).await?;
                let options = body::delete_options(&body, query)?;
                let deleted = self
                    .service
                    .delete_all(of, namespace, &selected, &options, guard)
                    .await?;
                let listing = self.service.list_of(of, deleted.objects).await;
                list::response(view, listing, self.reader(user)).await
            }
            ("delete", Some(name)) => {
                let options = body::delete_options(&body, query)?;
                let deleted = self
                    .service
                    .delete(of, namespace, name, &options, guard)
                    .await?;
                Ok(match &deleted {
                    Deleted::Gone(object) => View::gone(of, name, object),
                    Deleted::Marked(object) => view.object(of, StatusCode::OK, object),
                })
            }
            (_, name) => {
                let options = query.write_options()?;
                let agent = agent(&parts.headers);
                let write = Write {
                    of,
                    namespace,
                    is_status,
                    options: &options,
                    agent: &agent,
                    guard,
                };
                self.write(write, verb, name.as_deref(), view, &body).await
            }
        }
    }

    fn reader(&self, user: &User) -> Reader {
        Reader {
            client: user.into(),
            budget: Arc::clone(&self.budget),
        }
    }

    /// What a request selects, of what its sender may see.
    async fn selected(
        &self,
        query: &Query,
        of: &ResourceType,
        tiers: Option<TierAccess<'_>>,
    ) -> Result<ListOptions> {
        let mut options = query.list_options(of)?;
        if let Some(tiers) = tiers {
            let all = self.service.tier_names().await?;
            tiers.restrict(&mut options, &all).await?;
        }
        Ok(options)
    }

    async fn write(
        &self,
        write: Write<'_>,
        verb: &str,
        name: Option<&str>,
        view: View,
        sent: &Sent,
    ) -> Result<Response> {
        let repeated = sent.repeated_fields();
        let repeated: Vec<String> = repeated
            .iter()
            .map(|field| told("duplicate", field))
            .collect();
        let is_strict = write.options.unknown_fields == UnknownFields::Refuse;
        if is_strict && !repeated.is_empty() {
            let message = format!("strict decoding error: {}", repeated.join(", "));
            return Err(Failure::bad_request(message));
        }
        let Written {
            object,
            is_new,
            unknown_fields,
        } = self.written(write, verb, name, sent).await?;
        let code = if is_new {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        let mut response = view.object(write.of, code, &object);
        if write.of.content == Content::Native(Native::CustomResourceDefinition) {
            response = reply::with_warnings(response, &custom::warnings(&object));
        }
        if write.options.unknown_fields != UnknownFields::Warn {
            return Ok(response);
        }
        let unknown = unknown_fields.iter().map(|field| told("unknown", field));
        let warnings: Vec<String> = repeated.into_iter().chain(unknown).collect();
        Ok(reply::with_warnings(response, &warnings))
    }

    async fn written(
        &self,
        write: Write<'_>,
        verb: &str,
        name: Option<&str>,
        sent: &Sent,
    ) -> Result<Written> {
        match (verb, name) {
            ("create", None) => self.service.create(write, sent.object()?).await,
            ("update", Some(name)) => {
                let body = Body::Whole(sent.object()?);
                self.service.change(write, name, &body).await
            }
            ("patch", Some(name)) => {
                let body = patch_body(write.options, sent)?;
                self.service.change(write, name, &body).await
            }
            _ => Err(Failure::new(
                Reason::MethodNotAllowed,
                "the server does not allow this method on the requested resource",
            )),
        }
    }
}

/// What is said of a field, in Kubernetes' words.
fn told(what: &str, field: &str) -> String {
    format!("{what} field {field:?}")
}

fn patch_body(options: &WriteOptions, sent: &Sent) -> Result<Body> {
    if !matches!(
        sent.media_type.as_str(),
        "application/apply-patch+yaml" | "application/apply-patch+json"
    ) {
        return Ok(Body::Patch(Patch::parse(&sent.media_type, &sent.bytes)?));
    }
    if options.field_manager.is_empty() {
        return Err(Failure::bad_request(
            "fieldManager is required for apply patch: name who applies",
        ));
    }
    let object = body::object("application/yaml", &sent.bytes)?;
    let managed = object.pointer("/metadata/managedFields");
    if managed.is_some_and(|managed| !managed.is_null()) {
        return Err(Failure::bad_request("metadata.managedFields must be nil"));
    }
    Ok(Body::Apply(object))
}

/// The verb of a request, as access is decided by.
pub(super) fn verb(method: &Method, target: &Objects, query: &Query) -> Result<&'static str> {
    let is_watch = query.flag("watch")?.unwrap_or_default();
    match (method.as_str(), target.name.is_some()) {
        ("GET" | "HEAD", _) if is_watch => Ok("watch"),
        ("GET" | "HEAD", true) => Ok("get"),
        ("GET" | "HEAD", false) => Ok("list"),
        ("POST", false) => Ok("create"),
        ("POST", true) if target.subresource.is_some() => Ok("create"),
        ("PUT", true) => Ok("update"),
        ("PATCH", true) => Ok("patch"),
        ("DELETE", true) => Ok("delete"),
        ("DELETE", false) => Ok("deletecollection"),
        _ => Err(method_not_allowed(method)),
    }
}

/// The name of the only object that a list or watch selects, if there is one: as in Kubernetes, rights for that one will do.
fn selected_name(of: &ResourceType, query: &Query, verb: &str) -> Option<String> {
    if !matches!(verb, "list" | "watch") {
        return None;
    }
    // Options that make no sense are refused later.
    let options = query.list_options(of).ok()?;
    let name = options.fields.required("metadata.name")?;
    Some(name.to_owned())
}

/// A type with namespaces may be asked for in all of them, but an object is in one.
pub(super) fn namespace_of<'a>(of: &ResourceType, target: &'a Objects) -> Result<Option<&'a str>> {
    match (of.is_namespaced, target.namespace.as_deref(), &target.name) {
        (true, Some(namespace), _) => Ok(Some(namespace)),
        (true, None, None) | (false, None, _) => Ok(None),
        _ => Err(not_found()),
    }
}

/// Who writes, if the client does not say: the first word of what it calls itself.
fn agent(headers: &HeaderMap) -> String {
    let agent = headers
        .get(header::USER_AGENT)
        .and_then(|agent| agent.to_str().ok());
    let name = agent
        .and_then(|agent| agent.split('/').next())
        .unwrap_or_default();
    let name: String = name.chars().take(128).collect();
    if name.is_empty() {
        "unknown".to_owned()
    } else {
        name
    }
}
