//! The API over HTTP: from a request to an answer.

mod accept;
mod admission;
mod body;
mod budget;
mod list;
mod metrics;
mod objects;
mod repeated;
mod reply;
mod reviews;
mod stream;
mod tokens;
mod work;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{HttpBody as _, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use serde_json::Value;
use tokio::sync::watch;
use tortie_serve::Identified;
use tracing::Instrument as _;

use self::accept::Accept;
use self::admission::Admission;
pub use self::admission::Places;
use self::body::Sent;
pub use self::budget::DEFAULT_MEMORY;
use self::budget::{Budget, Share};
use self::metrics::{Metrics, Subject};
use self::objects::Asked;
use crate::access::{Access, Tokens, User};
use crate::audit::{Log, Record};
use crate::discovery::{self, Aggregation};
use crate::failure::{Failure, Reason, Result};
use crate::openapi;
use crate::options::Query;
use crate::path::{Health, Objects, Target};
use crate::registry::ResourceType;
use crate::service::Service;

/// How long an answer may take, other than a watch.
const PATIENCE: Duration = Duration::from_mins(1);

/// How much more memory than its body a write takes, and than its JSON an object that is read: as values, as a resource, and
/// written again.
const WRITE_WIDTH: usize = 24;
const READ_WIDTH: usize = 12;

/// The API over HTTP.
pub struct Api {
    service: Arc<Service>,
    access: Arc<dyn Access>,
    documents: Documents,
    metrics: Metrics,
    admission: Admission,
    budget: Arc<Budget>,
    audit: Option<Arc<Log>>,
    tokens: Option<Arc<Tokens>>,
    /// Whether watches have to end, because the server does.
    closing: watch::Sender<bool>,
}

/// How an API is served.
pub struct Options {
    /// How many requests are carried out at a time.
    pub places: Places,
    /// How many bytes they hold at a time.
    pub memory: usize,
    /// Where requests are written down.
    pub audit: Option<Log>,
    /// Signs tokens of service accounts, if any are given.
    pub tokens: Option<Arc<Tokens>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            places: Places::default(),
            memory: DEFAULT_MEMORY,
            audit: None,
            tokens: None,
        }
    }
}

/// What never changes, made when somebody asks for it: most clients never do.
#[derive(Default)]
struct Documents {
    v2: OnceLock<openapi::V2>,
    v3: OnceLock<openapi::V3>,
}

impl Api {
    /// Serves objects to those who may have them.
    pub fn new(service: Arc<Service>, access: Arc<dyn Access>, options: Options) -> Arc<Self> {
        let metrics = Metrics::new();
        Arc::new(Self {
            service,
            access,
            documents: Documents::default(),
            admission: Admission::new(options.places, &metrics),
            budget: Budget::new(options.memory, metrics.flow_control()),
            metrics,
            audit: options.audit.map(Arc::new),
            tokens: options.tokens,
            closing: watch::Sender::new(false),
        })
    }

    /// Ends all watches, which would go on for ever. Whoever watches comes back, then to another server.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// What a server runs.
    pub fn router(self: Arc<Self>) -> Router {
        Router::new().fallback(answer).with_state(self)
    }
}

async fn answer(State(api): State<Arc<Api>>, request: Request) -> Response {
    let start = Instant::now();
    let verb = verb(&request);
    let target = Target::parse(request.uri().path());
    let of = match &target {
        Some(Target::Objects(objects)) => api.find(objects),
        _ => None,
    };
    let span = tracing::error_span!("request", verb, path = request.uri().path());
    let answering = api.answer_in_time(target.clone(), request);
    let response = answering.instrument(span).await;
    let subject = Subject { verb, of };
    let code = response.status().as_u16();
    api.metrics.count(subject, code, start.elapsed());
    response
}

/// The verb of a request, as it is counted.
fn verb(request: &Request) -> &'static str {
    match *request.method() {
        Method::GET | Method::HEAD => {
            let query = request.uri().query().unwrap_or_default();
            // One that cannot be read is refused, and no watch.
            let is_watch = Query::parse(query).flag("watch").ok().flatten();
            if is_watch == Some(true) {
                "WATCH"
            } else {
                "GET"
            }
        }
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

impl Api {
    async fn answer_in_time(
        self: &Arc<Self>,
        target: Option<Target>,
        request: Request,
    ) -> Response {
        match tokio::time::timeout(PATIENCE, self.answer(target, request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(failure)) => refusal(&failure),
            Err(_) => {
                let message = "the request took too long";
                reply::failure(&Failure::new(Reason::Timeout, message))
            }
        }
    }

    /// The type that a path is about, if it is served.
    fn find(&self, objects: &Objects) -> Option<&ResourceType> {
        let registry = self.service.registry();
        registry.find(&objects.group, &objects.version, &objects.resource)
    }

    async fn answer(
        self: &Arc<Self>,
        target: Option<Target>,
        request: Request,
    ) -> Result<Response> {
        let target = target.ok_or_else(not_found)?;
        let (parts, body) = request.into_parts();
        refuse_impersonation(&parts.headers)?;
        if let Target::Health(health) = target
            && (health == Health::Alive || self.access.tells_readiness())
        {
            return self.health(health).await;
        }
        let mut record = self.record(&parts, &target);
        let entered = async {
            let user = self.access.identify(&parts).await?;
            if let Some(record) = &mut record {
                record.set_user(&user);
            }
            let place = match self.admission.enter(&user, &parts.method) {
                Ok(place) => place,
                Err(failure) => {
                    body::discard(body).await;
                    return Err(failure);
                }
            };
            let length = body::length(&body);
            let share = match self.take_share(&user, &target, length).await {
                Ok(share) => share,
                Err(failure) => {
                    body::discard(body).await;
                    return Err(failure);
                }
            };
            let body = Sent::read(&parts.headers, body).await?;
            Ok((user, place, share, body))
        };
        let (user, place, share, body) = match entered.await {
            Ok(entered) => entered,
            Err(failure) => return Ok(recorded(record, refusal(&failure)).await),
        };
        let api = Arc::clone(self);
        let is_known = user.is_authenticated();
        let answer = work::carry_out(async move {
            let _place = place;
            if let Some(record) = &mut record {
                record.set_request(&body.bytes);
            }
            let answer = api.carry_out(&user, target, &parts, body).await;
            let response = answer.unwrap_or_else(|failure| refusal(&failure));
            let response = recorded(record, response).await;
            Ok(covered(response, share).await)
        });
        let mut response = answer.await.unwrap_or_else(|failure| refusal(&failure));
        if is_known {
            response.extensions_mut().insert(Identified);
        }
        Ok(response)
    }

    /// Waits until a request may hold what it needs: for its body, and for the object that is there. Lists take theirs piece
    /// by piece.
    async fn take_share(
        self: &Arc<Self>,
        user: &User,
        target: &Target,
        body: usize,
    ) -> Result<Share> {
        let mut width = body.saturating_mul(WRITE_WIDTH);
        if let Target::Objects(objects) = target
            && objects.name.is_some()
        {
            let (api, objects) = (Arc::clone(self), objects.clone());
            let size = tokio::task::spawn_blocking(move || api.size(&objects));
            // What cannot be told now is a failure of what comes next.
            let size = size.await.unwrap_or_default();
            width = width.saturating_add(size.saturating_mul(READ_WIDTH));
        }
        let client = user.into();
        self.budget.take(&client, width, budget::PATIENCE).await
    }

    /// How large an object is that is stored.
    fn size(&self, objects: &Objects) -> usize {
        let size = || {
            let of = self.find(objects)?;
            let namespace = objects::namespace_of(of, objects).ok()?;
            let name = objects.name.as_deref()?;
            self.service.size(of, namespace, name).ok()
        };
        size().unwrap_or_default()
    }

    /// What is to be written down of a request, if anything is.
    fn record(&self, parts: &Parts, target: &Target) -> Option<Record> {
        let log = Arc::clone(self.audit.as_ref()?);
        let verb = match target {
            Target::Objects(objects) => {
                let query = Query::parse(parts.uri.query().unwrap_or_default());
                objects::verb(&parts.method, objects, &query).ok()
            }
            _ => None,
        };
        let method = parts.method.as_str().to_ascii_lowercase();
        Some(Record::new(log, parts, target, verb.unwrap_or(&method)))
    }

    async fn carry_out(
        &self,
        user: &User,
        target: Target,
        parts: &Parts,
        body: Sent,
    ) -> Result<Response> {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let accept = Accept::parse(&parts.headers);
        match target {
            Target::Objects(objects) => {
                let of = self.find(&objects).ok_or_else(not_found)?;
                let asked = Asked {
                    of,
                    target: &objects,
                    user,
                    query: &query,
                    accept: &accept,
                };
                self.objects(asked, parts, body).await
            }
            other => {
                if !matches!(parts.method, Method::GET | Method::HEAD) {
                    return Err(method_not_allowed(&parts.method));
                }
                let path = parts.uri.path();
                self.access.authorize_path(user, "get", path).await?;
                match other {
                    Target::Health(health) => self.health(health).await,
                    other => self.document(other, &accept, &parts.headers),
                }
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
                let v2 = self
                    .documents
                    .v2
                    .get_or_init(|| openapi::v2(&registry.built_in()));
                return Ok(match accept.openapi_protobuf() {
                    Some(media_type) => reply::document(&v2.protobuf, media_type, headers),
                    None => reply::document(&v2.json, reply::JSON, headers),
                });
            }
            Target::OpenApiV3 => {
                let v3 = self
                    .documents
                    .v3
                    .get_or_init(|| openapi::v3(&registry.built_in()));
                return Ok(reply::document(&v3.index, reply::JSON, headers));
            }
            Target::OpenApiV3Group { group, version } => {
                let v3 = self
                    .documents
                    .v3
                    .get_or_init(|| openapi::v3(&registry.built_in()));
                let document = v3.group(&group, &version);
                let document = document.ok_or_else(not_found)?;
                return Ok(reply::document(document, reply::JSON, headers));
            }
            Target::Root => Some(paths(registry)),
            Target::Metrics => return Ok(reply::metrics(self.metrics.text())),
            Target::Health(_) | Target::Objects(_) => None,
        };
        Ok(reply::json(StatusCode::OK, &found.ok_or_else(not_found)?))
    }
}

/// Writes down what a request led to, before anybody is told.
async fn recorded(record: Option<Record>, response: Response) -> Response {
    let Some(mut record) = record else {
        return response;
    };
    let code = response.status();
    let response = if record.wants_response() {
        let (parts, body) = response.into_parts();
        // It is in memory already, so that reading it does not fail.
        let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
        record.set_response(&bytes);
        Response::from_parts(parts, bytes.into())
    } else {
        response
    };
    record.finish(code);
    response
}

/// Counts an answer that is in memory until the client has taken it. Lists and watches count themselves.
async fn covered(response: Response, share: Share) -> Response {
    if response.body().size_hint().exact().is_none() {
        return response;
    }
    let (parts, body) = response.into_parts();
    // It is in memory already, so that reading it does not fail.
    let bytes = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let bytes = share.cover(vec![bytes]).pop().unwrap_or_default();
    Response::from_parts(parts, bytes.into())
}

fn refusal(failure: &Failure) -> Response {
    if failure.reason == Reason::Internal {
        tracing::error!(error = %failure, "A request failed");
    }
    reply::failure(failure)
}

/// To carry out a request with more rights than its sender meant to use would be wrong.
fn refuse_impersonation(headers: &HeaderMap) -> Result<()> {
    let mut names = headers.keys();
    match names.find(|name| name.as_str().starts_with("impersonate-")) {
        None => Ok(()),
        Some(name) => Err(Failure::bad_request(format!(
            "{name}: this server does not act for others; send the request through the API server of Kubernetes"
        ))),
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
        "/metrics",
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
