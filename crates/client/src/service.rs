//! The three services of an account, and where each is.

use bytes::Bytes;
use http::uri::{Authority, InvalidUri, Parts, PathAndQuery, Scheme};
use http::{HeaderValue, Uri};
pub(crate) use larimar_model::Service;

/// The key of a service's endpoint in a connection string.
pub(crate) const fn endpoint_key(service: Service) -> &'static str {
    match service {
        Service::Table => "TableEndpoint",
        Service::Queue => "QueueEndpoint",
        Service::Blob => "BlobEndpoint",
    }
}

/// The key of a service's secondary endpoint in a connection string.
pub(crate) const fn secondary_endpoint_key(service: Service) -> &'static str {
    match service {
        Service::Table => "TableSecondaryEndpoint",
        Service::Queue => "QueueSecondaryEndpoint",
        Service::Blob => "BlobSecondaryEndpoint",
    }
}

/// The address of a service.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    scheme: Scheme,
    authority: Authority,
    /// The authority as the header `Host` has it.
    host: HeaderValue,
    /// The path before that of the request, without a slash at its end; in path style the account's name.
    path: String,
    /// Parameters that the address came with: a shared access signature, usually.
    query: Option<String>,
}

/// An address that is none of a service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an address such as https://account.table.core.windows.net, found '{0}'")]
pub struct EndpointError(String);

impl Endpoint {
    pub(crate) fn parse(text: &str) -> Result<Self, EndpointError> {
        let refused = || EndpointError(text.split('?').next().unwrap_or_default().chars().take(200).collect());
        let uri: Uri = text.trim().parse().map_err(|_| refused())?;
        let scheme = uri.scheme().filter(|scheme| [&Scheme::HTTP, &Scheme::HTTPS].contains(scheme));
        let (Some(scheme), Some(authority)) = (scheme, uri.authority()) else { return Err(refused()) };
        Ok(Self {
            scheme: scheme.clone(),
            authority: authority.clone(),
            host: HeaderValue::from_str(authority.as_str()).map_err(|_| refused())?,
            path: uri.path().trim_end_matches('/').to_owned(),
            query: uri.query().filter(|query| !query.is_empty()).map(str::to_owned),
        })
    }

    /// The parameters that the address came with, taken off.
    pub(crate) const fn take_query(&mut self) -> Option<String> {
        self.query.take()
    }

    /// The whole address of a path and its parameters.
    pub(crate) fn address(&self, path_and_query: String) -> Result<Uri, InvalidUri> {
        let mut parts = Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(PathAndQuery::from_maybe_shared(Bytes::from(path_and_query))?);
        Ok(Uri::from_parts(parts).expect("scheme, authority and path are an address"))
    }

    /// The authority as the header `Host` has it.
    pub(crate) const fn host(&self) -> &HeaderValue {
        &self.host
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The whole address, without a slash at its end.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}{}", self.scheme, self.authority, self.path)
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// Whether the service is Cosmos DB, which differs in a few ways.
    pub(crate) fn is_cosmos(&self) -> bool {
        let host = self.authority.host();
        host.contains(".table.cosmos.") || host.contains(".table.cosmosdb.")
    }
}
