//! Lets the API server of Kubernetes decide: who has a token, and who may do what.

mod memory;

use std::time::Duration;

use async_trait::async_trait;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};

use self::memory::Memory;
use super::{Attributes, Authorize, User, denied, denied_path};
use crate::failure::{Failure, Reason, Result};

/// How many answers are remembered.
const MOST_ANSWERS: usize = 8192;

/// Asks the API server what somebody may do, and remembers the answer for a while.
pub struct SubjectAccess {
    client: kube::Client,
    answers: Memory<Answer>,
}

#[derive(Clone)]
struct Answer {
    is_allowed: bool,
    reason: String,
}

impl SubjectAccess {
    /// Asks with this client, and remembers answers for so long.
    pub fn new(client: kube::Client, memory: Duration) -> Self {
        Self {
            client,
            answers: Memory::new(memory, MOST_ANSWERS),
        }
    }

    async fn ask(&self, user: &User, what: What<'_>) -> Result<Answer> {
        let spec = spec(user, what);
        let key = memory::key(&spec);
        if let Some(answer) = self.answers.get(&key) {
            return Ok(answer);
        }
        let review = SubjectAccessReview {
            spec,
            ..SubjectAccessReview::default()
        };
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review = api.create(&PostParams::default(), &review).await;
        let review = review.map_err(|error| unanswered("what a user may do", &error))?;
        let status = review.status.unwrap_or_default();
        let answer = Answer {
            is_allowed: status.allowed,
            reason: status.reason.unwrap_or_default(),
        };
        self.answers.put(key, answer.clone());
        Ok(answer)
    }
}

#[async_trait]
impl Authorize for SubjectAccess {
    async fn authorize(&self, user: &User, attributes: &Attributes<'_>) -> Result<()> {
        if user.is_administrator() {
            return Ok(());
        }
        let answer = self.ask(user, What::Objects(*attributes)).await?;
        if answer.is_allowed {
            return Ok(());
        }
        Err(denied(user, attributes, &answer.reason))
    }

    async fn authorize_path(&self, user: &User, verb: &str, path: &str) -> Result<()> {
        if user.is_administrator() {
            return Ok(());
        }
        let answer = self.ask(user, What::Path { verb, path }).await?;
        if answer.is_allowed {
            return Ok(());
        }
        Err(denied_path(user, verb, path, &answer.reason))
    }
}

#[derive(Clone, Copy)]
enum What<'a> {
    Objects(Attributes<'a>),
    Path { verb: &'a str, path: &'a str },
}

fn spec(user: &User, what: What<'_>) -> SubjectAccessReviewSpec {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let mut spec = SubjectAccessReviewSpec {
        user: Some(user.name.clone()),
        uid: some(&user.uid),
        groups: Some(user.groups.clone()),
        extra: (!user.extra.is_empty()).then(|| user.extra.clone()),
        ..SubjectAccessReviewSpec::default()
    };
    match what {
        What::Objects(attributes) => {
            spec.resource_attributes = Some(ResourceAttributes {
                verb: some(attributes.verb),
                group: some(attributes.group),
                version: some(attributes.version),
                resource: some(attributes.resource),
                subresource: some(attributes.subresource),
                namespace: attributes.namespace.map(ToOwned::to_owned),
                name: attributes.name.map(ToOwned::to_owned),
                ..ResourceAttributes::default()
            });
        }
        What::Path { verb, path } => {
            spec.non_resource_attributes = Some(NonResourceAttributes {
                path: some(path),
                verb: some(verb),
            });
        }
    }
    spec
}

/// Asks the API server whose a token is, and remembers the answer for a while.
pub struct Tokens {
    client: kube::Client,
    answers: Memory<Option<User>>,
}

impl Tokens {
    /// Asks with this client, and remembers answers for so long.
    pub fn new(client: kube::Client, memory: Duration) -> Self {
        Self {
            client,
            answers: Memory::new(memory, MOST_ANSWERS),
        }
    }

    /// Whose a token is, if it is anybody's.
    pub async fn user_of(&self, token: &str) -> Result<Option<User>> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let key = memory::key(&review.spec);
        if let Some(user) = self.answers.get(&key) {
            return Ok(user);
        }
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let review = api.create(&PostParams::default(), &review).await;
        let review = review.map_err(|error| unanswered("whose a token is", &error))?;
        let status = review.status.unwrap_or_default();
        let is_somebody = status.authenticated == Some(true);
        let user = status.user.filter(|_| is_somebody).map(|user| User {
            name: user.username.unwrap_or_default(),
            uid: user.uid.unwrap_or_default(),
            groups: user.groups.unwrap_or_default(),
            extra: user.extra.unwrap_or_default(),
        });
        self.answers.put(key, user.clone());
        Ok(user)
    }
}

fn unanswered(question: &str, error: &kube::Error) -> Failure {
    let reason = match error {
        kube::Error::Api(_) => Reason::Internal,
        _ => Reason::Unavailable,
    };
    let message = format!("the API server of Kubernetes does not tell {question}: {error}");
    Failure::new(reason, message)
}
