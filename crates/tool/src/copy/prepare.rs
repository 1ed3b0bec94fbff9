//! Creates what the copy fills, also where something of the same name is still being deleted.

use crate::{Error, Result};
use std::time::Duration;

/// Creates something, and waits while the service is still deleting what had its name: it answers 409 for half a minute
/// or more (service reference).
pub(super) async fn create<F>(create: impl Fn() -> F) -> Result<()>
where
    F: Future<Output = larimar_client::Result<bool>>,
{
    for _ in 0..TRIES_MAX {
        match create().await {
            Ok(_) => return Ok(()),
            Err(error) if error.code().is_some_and(|code| code.ends_with("BeingDeleted")) => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Failed("what had the same name at TO is still being deleted; try again later".to_owned()))
}

const PAUSE: Duration = Duration::from_secs(2);
const TRIES_MAX: u32 = 150;
