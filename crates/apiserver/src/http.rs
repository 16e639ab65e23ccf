//! The API over HTTP: from a request to an answer.

mod accept;
mod body;
mod reply;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use serde_json::Value;

use self::accept::Accept;
use crate::access::{Access, Attributes, User};
use crate::discovery::{self, Aggregation};
use crate::failure::{Failure, Reason, Result};
use crate::openapi;
use crate::options::{Query, WriteOptions};
use crate::patch::Patch;
use crate::path::{Health, Objects, Target};
use crate::registry::ResourceType;
use crate::service::{Body, Deleted, Service, Write};

/// How long an answer may take, other than a watch.
const PATIENCE: Duration = Duration::from_mins(1);

/// The API over HTTP.
pub struct Api {
    service: Arc<Service>,
    access: Arc<dyn Access>,
    documents: Documents,
}

/// What never changes, made once.
struct Documents {
    v2: openapi::V2,
    v3: openapi::V3,
}

impl Api {
    /// Serves objects to those who may have them.
    pub fn new(service: Arc<Service>, access: Arc<dyn Access>) -> Arc<Self> {
        let registry = service.registry();
        let documents = Documents {
            v2: openapi::v2(registry),
            v3: openapi::v3(registry),
        };
        Arc::new(Self {
            service,
            access,
            documents,
        })
    }

    /// What a server runs.
    pub fn router(self: Arc<Self>) -> Router {
        Router::new().fallback(answer).with_state(self)
    }
}

async fn answer(State(api): State<Arc<Api>>, request: Request) -> Response {
    match tokio::time::timeout(PATIENCE, api.answer(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(failure)) => {
            if failure.reason == Reason::Internal {
                tracing::error!(error = %failure, "A request failed");
            }
            reply::failure(&failure)
        }
        Err(_) => {
            let message = "the request took too long";
            reply::failure(&Failure::new(Reason::Timeout, message))
        }
    }
}

impl Api {
    async fn answer(&self, request: Request) -> Result<Response> {
        let Some(target) = Target::parse(request.uri().path()) else {
            return Err(not_found());
        };
        if let Target::Health(health) = target {
            return self.health(health).await;
        }
        let user = self.access.identify(&request)?;
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let headers = request.headers();
        let accept = Accept::parse(headers);
        match target {
            Target::Objects(objects) => {
                let found = self.service.registry();
                let found = found.find(&objects.group, &objects.version, &objects.resource);
                let of = found.ok_or_else(not_found)?;
                self.objects(of, &objects, &user, &query, &accept, request)
                    .await
            }
            other => {
                if !matches!(*request.method(), Method::GET | Method::HEAD) {
                    return Err(method_not_allowed(request.method()));
                }
                let path = request.uri().path();
                self.access.authorize_path(&user, path).await?;
                self.document(other, &accept, headers)
            }
        }
    }

    async fn health(&self, health: Health) -> Result<Response> {
        if health == Health::Ready {
            self.service.check_ready().await?;
        }
        Ok(reply::text("ok"))
    }

    fn document(&self, target: Target, accept: &Accept, headers: &HeaderMap) -> Result<Response> {
        let registry = self.service.registry();
        let found = match target {
            Target::Version => Some(discovery::version()),
            Target::CoreVersions => match accept.aggregation() {
                Some(aggregation) => {
                    let document = discovery::aggregated_core(registry, aggregation);
                    return Ok(reply::aggregated(&document, aggregation));
                }
                None => discovery::core_versions(registry),
            },
            Target::Groups => match accept.aggregation() {
                Some(aggregation) => {
                    let document = discovery::aggregated_groups(registry, aggregation);
                    return Ok(reply::aggregated(&document, aggregation));
                }
                None => Some(discovery::groups(registry)),
            },
            Target::Group(group) => discovery::group(registry, &group),
            Target::GroupVersion { group, version } => {
                discovery::resources(registry, &group, &version)
            }
            Target::OpenApiV2 => {
                let v2 = &self.documents.v2;
                return Ok(match accept.openapi_protobuf() {
                    Some(media_type) => reply::document(&v2.protobuf, media_type, headers),
                    None => reply::document(&v2.json, reply::JSON, headers),
                });
            }
            Target::OpenApiV3 => {
                return Ok(reply::document(
                    &self.documents.v3.index,
                    reply::JSON,
                    headers,
                ));
            }
            Target::OpenApiV3Group { group, version } => {
                let document = self.documents.v3.group(&group, &version);
                let document = document.ok_or_else(not_found)?;
                return Ok(reply::document(document, reply::JSON, headers));
            }
            Target::Root => Some(paths(registry)),
            Target::Metrics | Target::Health(_) | Target::Objects(_) => None,
        };
        Ok(reply::json(StatusCode::OK, &found.ok_or_else(not_found)?))
    }

    async fn objects(
        &self,
        of: &ResourceType,
        target: &Objects,
        user: &User,
        query: &Query,
        accept: &Accept,
        request: Request,
    ) -> Result<Response> {
        let namespace = namespace_of(of, target)?;
        let is_status = match target.subresource.as_deref() {
            None => false,
            Some("status") if of.has_status => true,
            Some(_) => return Err(not_found()),
        };
        let verb = verb(request.method(), target.name.is_some(), query)?;
        let attributes = Attributes {
            verb,
            of,
            namespace,
            name: target.name.as_deref(),
            is_status,
        };
        self.access.authorize(user, &attributes).await?;
        let view = accept.view(query)?;
        match (verb, &target.name) {
            ("get", Some(name)) => {
                let object = self.service.get(of, namespace, name).await?;
                Ok(view.object(of, StatusCode::OK, &object))
            }
            ("watch", _) => {
                let mut options = query.list_options(of)?;
                if let Some(name) = &target.name {
                    options.fields = options.fields.and_name(name);
                }
                let watching = self.service.watch(of, namespace, &options).await?;
                Ok(stream::response(watching, view, options.timeout))
            }
            ("list", _) => {
                let options = query.list_options(of)?;
                let page = self.service.list(of, namespace, &options).await?;
                Ok(view.list(of, &page))
            }
            ("deletecollection", _) => {
                let selected = query.list_options(of)?;
                let options = body::delete_options(request, query).await?;
                let deleted = self
                    .service
                    .delete_all(of, namespace, &selected, &options)
                    .await?;
                Ok(view.deleted_all(of, &deleted))
            }
            ("delete", Some(name)) => {
                let options = body::delete_options(request, query).await?;
                let deleted = self.service.delete(of, namespace, name, &options).await?;
                Ok(match &deleted {
                    Deleted::Gone(object) => accept::View::gone(of, name, object),
                    Deleted::Marked(object) => view.object(of, StatusCode::OK, object),
                })
            }
            (_, name) => {
                let options = query.write_options()?;
                let agent = agent(request.headers());
                let write = Write {
                    of,
                    namespace,
                    is_status,
                    options: &options,
                    agent: &agent,
                };
                self.write(write, verb, name.as_deref(), view, request)
                    .await
            }
        }
    }

    async fn write(
        &self,
        write: Write<'_>,
        verb: &str,
        name: Option<&str>,
        view: accept::View,
        request: Request,
    ) -> Result<Response> {
        let (media_type, bytes) = body::read(request).await?;
        match (verb, name) {
            ("create", None) => {
                let object = body::object(&media_type, &bytes)?;
                let created = self.service.create(write, object).await?;
                Ok(view.object(write.of, StatusCode::CREATED, &created))
            }
            ("update", Some(name)) => {
                let body = Body::Whole(body::object(&media_type, &bytes)?);
                let (changed, _) = self.service.change(write, name, &body).await?;
                Ok(view.object(write.of, StatusCode::OK, &changed))
            }
            ("patch", Some(name)) => {
                let body = patch_body(write.options, &media_type, &bytes)?;
                let (changed, is_new) = self.service.change(write, name, &body).await?;
                let code = if is_new {
                    StatusCode::CREATED
                } else {
                    StatusCode::OK
                };
                Ok(view.object(write.of, code, &changed))
            }
            _ => Err(Failure::new(
                Reason::MethodNotAllowed,
                "the server does not allow this method on the requested resource",
            )),
        }
    }
}

fn patch_body(options: &WriteOptions, media_type: &str, bytes: &[u8]) -> Result<Body> {
    if !matches!(
        media_type,
        "application/apply-patch+yaml" | "application/apply-patch+json"
    ) {
        return Ok(Body::Patch(Patch::parse(media_type, bytes)?));
    }
    if options.field_manager.is_empty() {
        return Err(Failure::bad_request(
            "fieldManager is required for apply patch: name who applies",
        ));
    }
    Ok(Body::Apply(body::object("application/yaml", bytes)?))
}

/// The verb of a request, as access is decided by.
fn verb(method: &Method, has_name: bool, query: &Query) -> Result<&'static str> {
    let is_watch = matches!(query.get("watch"), Some("true" | "1"));
    match (method.as_str(), has_name) {
        ("GET" | "HEAD", _) if is_watch => Ok("watch"),
        ("GET" | "HEAD", true) => Ok("get"),
        ("GET" | "HEAD", false) => Ok("list"),
        ("POST", false) => Ok("create"),
        ("PUT", true) => Ok("update"),
        ("PATCH", true) => Ok("patch"),
        ("DELETE", true) => Ok("delete"),
        ("DELETE", false) => Ok("deletecollection"),
        _ => Err(method_not_allowed(method)),
    }
}

/// A type with namespaces may be asked for in all of them, but an object is in one.
fn namespace_of<'a>(of: &ResourceType, target: &'a Objects) -> Result<Option<&'a str>> {
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

fn paths(registry: &crate::registry::Registry) -> Value {
    let mut paths = vec!["/api".to_owned(), "/apis".to_owned()];
    for (group, version) in registry.groups() {
        match group {
            "" => paths.push(format!("/api/{version}")),
            group => {
                paths.push(format!("/apis/{group}"));
                paths.push(format!("/apis/{group}/{version}"));
            }
        }
    }
    for path in [
        "/healthz",
        "/livez",
        "/openapi/v2",
        "/openapi/v3",
        "/readyz",
        "/version",
    ] {
        paths.push(path.to_owned());
    }
    serde_json::json!({"paths": paths})
}

fn not_found() -> Failure {
    Failure::new(
        Reason::NotFound,
        "the server could not find the requested resource",
    )
}

fn method_not_allowed(method: &Method) -> Failure {
    Failure::new(
        Reason::MethodNotAllowed,
        format!("the server does not allow {method} on the requested resource"),
    )
}

/// So that documents about an aggregation are found from here.
impl Accept {
    fn aggregation(&self) -> Option<Aggregation> {
        self.ranges().find_map(|range| match range.of_discovery()? {
            "v2" => Some(Aggregation::V2),
            "v2beta1" => Some(Aggregation::V2Beta1),
            _ => None,
        })
    }
}
