//! Calls to etcd: which member, with which token, and what to do when a call fails.
//!
//! # Invariants
//! - A write is sent again only if it certainly was not carried out: when no connection could be
//!   made. Reads are sent again, to the next endpoint.
//! - Neither passwords nor tokens get into errors or logs.

use std::error::Error as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use http::uri::PathAndQuery;
use prost::Message;
use tokio::sync::Mutex;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::config::EtcdConfig;
use super::messages::{
    AuthenticateRequest, AuthenticateResponse, CompactionRequest, CompactionResponse, RangeRequest,
    RangeResponse, TxnRequest, TxnResponse, WatchAction, WatchCreateRequest, WatchRequest,
    WatchResponse,
};
use crate::cause::plainly;
use crate::error::{Error, Result};

/// Larger answers are refused. A page of a list with large objects fits; what does not is asked for
/// in smaller pages.
const MAX_MESSAGE: usize = 64 << 20;

/// The pause before the only member is asked again.
const SAME_MEMBER: Duration = Duration::from_millis(50);

/// Calls to a cluster of etcd.
#[derive(Debug)]
pub(super) struct Client {
    members: Vec<Member>,
    /// Which member is used now.
    current: AtomicUsize,
    credentials: Option<Credentials>,
    token: Mutex<Option<Token>>,
}

#[derive(Debug)]
struct Member {
    endpoint: String,
    channel: Channel,
}

struct Credentials {
    username: String,
    password: String,
}

/// Marked as sensitive, so that it is not printed.
type Token = MetadataValue<Ascii>;

/// Whether a call that may have been carried out can be sent again.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeatable {
    Yes,
    No,
}

// === impl Client ===

impl Client {
    /// Prepares connections; nothing is dialled yet. Needs a tokio runtime.
    pub(super) fn new(config: &EtcdConfig) -> Result<Self> {
        let endpoints = config.to_endpoints()?;
        let members = endpoints
            .iter()
            .map(|endpoint| Member {
                endpoint: endpoint.uri().to_string(),
                channel: endpoint.connect_lazy(),
            })
            .collect();
        let credentials = config
            .credentials()
            .map(|(username, password)| Credentials { username, password });
        let token = Mutex::new(None);
        Ok(Self {
            members,
            current: AtomicUsize::new(0),
            credentials,
            token,
        })
    }

    pub(super) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, Status> {
        self.call("/etcdserverpb.KV/Range", request, Repeatable::Yes)
            .await
    }

    /// A transaction that only reads.
    pub(super) async fn read_txn(&self, request: TxnRequest) -> Result<TxnResponse, Status> {
        self.call("/etcdserverpb.KV/Txn", request, Repeatable::Yes)
            .await
    }

    pub(super) async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, Status> {
        self.call("/etcdserverpb.KV/Txn", request, Repeatable::No)
            .await
    }

    pub(super) async fn compact(
        &self,
        request: CompactionRequest,
    ) -> Result<CompactionResponse, Status> {
        self.call("/etcdserverpb.KV/Compact", request, Repeatable::Yes)
            .await
    }

    /// Starts a watch on the current member.
    pub(super) async fn watch(
        &self,
        create: WatchCreateRequest,
    ) -> Result<Streaming<WatchResponse>, Status> {
        let (_, member) = self.member();
        let mut grpc = grpc(&member.channel).await?;
        let create = WatchRequest {
            action: Some(WatchAction::Create(create)),
        };
        // Stays open: etcd ends the watch when the client has nothing more to say.
        let requests = futures::stream::iter([create]).chain(futures::stream::pending());
        let mut request = Request::new(requests);
        // Without it, a member cut off from the others would go on silently with nothing to tell.
        request
            .metadata_mut()
            .insert("hasleader", MetadataValue::from_static("true"));
        self.authorize(&mut request).await?;
        let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
        Ok(grpc
            .streaming(request, path, ProstCodec::default())
            .await?
            .into_inner())
    }

    pub(super) fn member_count(&self) -> usize {
        self.members.len()
    }

    /// Uses the next member from now on.
    pub(super) fn fail_over(&self) {
        let (index, _) = self.member();
        self.fail_over_from(index);
    }

    /// Asks for a new token at the next call.
    pub(super) async fn forget_token(&self) {
        *self.token.lock().await = None;
    }

    /// A failed call, for the caller of the store.
    pub(super) fn error(&self, status: Status) -> Error {
        let message = status.message();
        let endpoints: Vec<&str> = self.members.iter().map(|m| m.endpoint.as_str()).collect();
        let endpoints = endpoints.join(", ");
        match status.code() {
            Code::Unauthenticated | Code::PermissionDenied => Error::Unauthorized(message.into()),
            Code::InvalidArgument if is_about_user(message) => Error::Unauthorized(message.into()),
            Code::Unavailable
            | Code::DeadlineExceeded
            | Code::Cancelled
            | Code::ResourceExhausted
            | Code::Aborted
            | Code::Unknown => Error::Unavailable {
                message: match status.source() {
                    Some(cause) => {
                        format!("etcd at {endpoints} cannot be reached: {}", plainly(cause))
                    }
                    None => format!("etcd at {endpoints}: {message}"),
                },
                source: None,
            },
            _ => Error::other(
                format!("etcd at {endpoints} refused a request: {message}"),
                status,
            ),
        }
    }

    async fn call<Q, R>(
        &self,
        path: &'static str,
        message: Q,
        repeatable: Repeatable,
    ) -> Result<R, Status>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        // A lone endpoint gets more chances as well: it may just have been restarted.
        let mut chances = self.members.len().max(3);
        let mut may_authenticate = self.credentials.is_some();
        loop {
            let (index, member) = self.member();
            let mut request = Request::new(message.clone());
            let result = match self.authorize(&mut request).await {
                Ok(()) => unary(&member.channel, path, request).await,
                Err(status) => Err(status),
            };
            let status = match result {
                Ok(response) => return Ok(response),
                Err(status) => status,
            };
            if is_stale_token(&status) && may_authenticate {
                may_authenticate = false;
                self.forget_token().await;
                continue;
            }
            chances -= 1;
            if chances == 0 || !may_repeat(&status, repeatable) {
                return Err(status);
            }
            tracing::debug!(
                endpoint = member.endpoint,
                error = status.message(),
                "Trying again"
            );
            self.fail_over_from(index);
            if self.members.len() == 1 {
                // That the connection is lost may not have got round yet.
                tokio::time::sleep(SAME_MEMBER).await;
            }
        }
    }

    fn member(&self) -> (usize, &Member) {
        let index = self.current.load(Ordering::Relaxed) % self.members.len();
        (index, &self.members[index])
    }

    /// Many calls fail at once when a member goes; only the first of them moves on.
    fn fail_over_from(&self, index: usize) {
        let next = (index + 1) % self.members.len();
        let _ = self
            .current
            .compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Adds the token, and asks for it first if there is none yet.
    async fn authorize<T>(&self, request: &mut Request<T>) -> Result<(), Status> {
        let Some(credentials) = &self.credentials else {
            return Ok(());
        };
        let mut token = self.token.lock().await;
        if token.is_none() {
            *token = self.authenticate(credentials).await?;
        }
        if let Some(token) = &*token {
            request.metadata_mut().insert("token", token.clone());
        }
        Ok(())
    }

    /// None if etcd does not ask for users at all.
    async fn authenticate(&self, credentials: &Credentials) -> Result<Option<Token>, Status> {
        let Credentials { username, password } = credentials;
        let request = AuthenticateRequest {
            name: username.clone(),
            password: password.clone(),
        };
        let (_, member) = self.member();
        let path = "/etcdserverpb.Auth/Authenticate";
        match unary::<_, AuthenticateResponse>(&member.channel, path, Request::new(request)).await {
            Ok(response) => {
                let mut token = Token::try_from(response.token)
                    .map_err(|_| Status::internal("etcd gave a token that cannot be sent"))?;
                token.set_sensitive(true);
                Ok(Some(token))
            }
            Err(status) if status.message().contains("authentication is not enabled") => Ok(None),
            Err(status) => Err(status),
        }
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

async fn unary<Q, R>(
    channel: &Channel,
    path: &'static str,
    request: Request<Q>,
) -> Result<R, Status>
where
    Q: Message + 'static,
    R: Message + Default + 'static,
{
    let mut grpc = grpc(channel).await?;
    let path = PathAndQuery::from_static(path);
    Ok(grpc
        .unary(request, path, ProstCodec::default())
        .await?
        .into_inner())
}

async fn grpc(channel: &Channel) -> Result<Grpc<Channel>, Status> {
    let mut grpc = Grpc::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE);
    grpc.ready()
        .await
        .map_err(|error| Status::from_error(error.into()))?;
    Ok(grpc)
}

fn may_repeat(status: &Status, repeatable: Repeatable) -> bool {
    match repeatable {
        Repeatable::Yes => is_transient(status),
        Repeatable::No => never_sent(status),
    }
}

/// Whether another try, perhaps elsewhere, may do better.
pub(super) fn is_transient(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable
            | Code::Unknown
            | Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
    ) || never_sent(status)
}

/// Whether etcd said that the token is no longer good.
pub(super) fn is_stale_token(status: &Status) -> bool {
    status.code() == Code::Unauthenticated
        || status.message().contains("invalid auth token")
        || status.message().contains("revision of auth store is old")
}

/// Whether there was no connection to send the request over.
fn never_sent(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// etcd has no code of its own for these.
fn is_about_user(message: &str) -> bool {
    message.contains("authentication failed") || message.contains("user name is empty")
}
