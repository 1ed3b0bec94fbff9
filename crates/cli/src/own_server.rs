//! The server of the settings, asked over its admin endpoint.

use crate::settings::Resolved;
use crate::{admin_token, banner};
use anyhow::Context;
use larimar_tool::admin::{AdminAnswer, AdminEndpoint};

/// A server on this machine that runs with the same settings.
pub(crate) struct OwnServer {
    url: String,
    endpoint: AdminEndpoint,
}

impl OwnServer {
    /// The server of the settings; its token has to be readable.
    pub(crate) fn find(resolved: &Resolved) -> anyhow::Result<Self> {
        let settings = &resolved.settings;
        let url = banner::local_admin_url(settings);
        let shown = settings.data_dir.display();
        let token = admin_token::of_server(resolved)?.with_context(|| {
            format!("its admin token was not found: is a server running on {shown}? See --data-dir and --admin-port")
        })?;
        let mut endpoint = AdminEndpoint::new(&url, token);
        if let Some(certificate) = &settings.tls_certificate {
            let cannot_read = || format!("cannot read {}, as the setting tls_certificate says", certificate.display());
            endpoint = endpoint.with_certificate(certificate).with_context(cannot_read)?;
        }
        Ok(Self { endpoint, url })
    }

    /// The address of its admin endpoint.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) async fn post(&self, path: &str) -> anyhow::Result<AdminAnswer> {
        self.endpoint.post(path).await.with_context(|| self.no_answer())
    }

    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<AdminAnswer> {
        self.endpoint.get(path).await.with_context(|| self.no_answer())
    }

    pub(crate) async fn delete(&self, path: &str) -> anyhow::Result<AdminAnswer> {
        self.endpoint.delete(path).await.with_context(|| self.no_answer())
    }

    fn no_answer(&self) -> String {
        format!("the admin endpoint {} did not answer", self.url)
    }
}
