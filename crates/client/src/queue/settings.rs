//! What a queue has besides its messages: metadata and stored access policies.

use super::Queue;
use crate::pipeline::Call;
use crate::sas::QueuePermissions;
use crate::{Result, StoredPolicy, metadata, stored_policy};
use http::Method;
use std::collections::BTreeMap;

impl Queue {
    /// The queue's metadata, names in lower case.
    ///
    /// # Errors
    /// A queue that does not exist.
    pub async fn metadata(&self) -> Result<BTreeMap<String, String>> {
        let reply = self.send(self.settings("GetQueueMetadata", Method::GET, "metadata")).await?;
        Ok(metadata::read(&reply.headers))
    }

    /// Replaces the queue's metadata by these pairs. Names are those of C# identifiers in ASCII and do not tell upper
    /// from lower case; they are sent and read in lower case. Values are printable ASCII.
    ///
    /// # Errors
    /// A queue that does not exist, or metadata that the service would refuse.
    pub async fn set_metadata(&self, pairs: &BTreeMap<String, String>) -> Result<()> {
        let call = self.settings("SetQueueMetadata", Method::PUT, "metadata");
        self.send(metadata::put_on(call, &metadata::checked(pairs)?)?).await?;
        Ok(())
    }

    /// The queue's stored policies.
    ///
    /// # Errors
    /// A queue that does not exist, or a credential other than the account's key.
    pub async fn policies(&self) -> Result<Vec<StoredPolicy<QueuePermissions>>> {
        stored_policy::read(&self.send(self.settings("GetQueueACL", Method::GET, "acl")).await?.body)
    }

    /// Replaces the queue's stored policies by these, at most five.
    ///
    /// # Errors
    /// Policies that the service would refuse, a queue that does not exist, or a credential other than the account's
    /// key.
    pub async fn set_policies(&self, policies: &[StoredPolicy<QueuePermissions>]) -> Result<()> {
        let body = stored_policy::body(policies)?;
        self.send(self.settings("SetQueueACL", Method::PUT, "acl").body("application/xml", body)).await?;
        Ok(())
    }

    fn settings(&self, name: &'static str, method: Method, comp: &str) -> Call {
        Call::new(name, method, self.path("")).parameter("comp", comp)
    }
}
