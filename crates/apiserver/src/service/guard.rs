//! Whether objects may be touched, where that depends on what they hold.

use async_trait::async_trait;
use serde_json::Value;

use crate::failure::Result;

/// Decides whether an object may be touched, by what it holds. A change is asked about with the object before and after.
#[async_trait]
pub trait Guard: Send + Sync {
    /// Fails if this object may not be touched.
    async fn check(&self, object: &Value) -> Result<()>;

    /// Fails if this object may not be created by a request that would have changed it, had it been there.
    async fn check_creation(&self, object: &Value) -> Result<()>;

    /// Fails if an object may not get this content, which is all that is stored but what the server fills in itself. There
    /// is none before if the object is new.
    async fn check_content(&self, _before: Option<&Value>, _after: &Value) -> Result<()> {
        Ok(())
    }
}

/// Every object may be touched.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unguarded;

#[async_trait]
impl Guard for Unguarded {
    async fn check(&self, _: &Value) -> Result<()> {
        Ok(())
    }

    async fn check_creation(&self, _: &Value) -> Result<()> {
        Ok(())
    }
}
