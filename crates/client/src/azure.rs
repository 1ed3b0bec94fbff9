//! Credentials of the official Azure crates as token providers.

use crate::credential::{AccessToken, TokenProvider};
use crate::transport::{BoxError, BoxFuture};
use azure_core::credentials::TokenCredential;
use std::sync::Arc;
use std::time::SystemTime;

/// A credential of the official Azure crates, such as those of `azure_identity`, as a [`TokenProvider`].
///
/// ```
/// use azure_core::credentials::TokenCredential;
/// use larimar_client::{Account, AccountError, AzureCredential};
/// use std::sync::Arc;
///
/// fn connect(credential: Arc<dyn TokenCredential>) -> Result<Account, AccountError> {
///     Account::builder()
///         .table_endpoint("https://example.table.core.windows.net")
///         .token(Arc::new(AzureCredential::new(credential)))
///         .build()
/// }
/// ```
#[derive(Clone, Debug)]
pub struct AzureCredential(Arc<dyn TokenCredential>);

impl AzureCredential {
    /// Takes tokens from this credential.
    #[must_use]
    pub fn new(credential: Arc<dyn TokenCredential>) -> Self {
        Self(credential)
    }
}

impl From<Arc<dyn TokenCredential>> for AzureCredential {
    fn from(credential: Arc<dyn TokenCredential>) -> Self {
        Self::new(credential)
    }
}

impl TokenProvider for AzureCredential {
    fn token<'a>(&'a self, scope: &'a str) -> BoxFuture<'a, Result<AccessToken, BoxError>> {
        Box::pin(async move {
            let token = self.0.get_token(&[scope], None).await?;
            let expires_on = SystemTime::from(token.expires_on);
            Ok(AccessToken::new(token.token.secret(), expires_on))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use azure_core::credentials::{AccessToken as AzureToken, TokenRequestOptions};
    use std::time::{Duration, UNIX_EPOCH};

    /// Gives out the scope that it was asked for.
    #[derive(Debug)]
    struct Echo;

    #[async_trait::async_trait]
    impl TokenCredential for Echo {
        async fn get_token(
            &self,
            scopes: &[&str],
            _: Option<TokenRequestOptions<'_>>,
        ) -> azure_core::Result<AzureToken> {
            match scopes {
                ["refused"] => Err(azure_core::Error::new(azure_core::error::ErrorKind::Credential, "no such user")),
                scopes => {
                    let expiry = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
                    Ok(AzureToken::new(scopes.join(" "), expiry.into()))
                }
            }
        }
    }

    #[tokio::test]
    async fn a_credential_of_the_official_crates_gives_its_token_or_its_reason() {
        let provider = AzureCredential::new(Arc::new(Echo));
        let token = provider.token("https://storage.azure.com/.default").await.expect("a token");
        assert_eq!(token.secret, "https://storage.azure.com/.default");
        assert_eq!(token.expires_on, UNIX_EPOCH + Duration::from_secs(1_700_000_000));
        let error = provider.token("refused").await.expect_err("refused");
        assert!(error.to_string().contains("no such user"), "{error}");
    }
}
