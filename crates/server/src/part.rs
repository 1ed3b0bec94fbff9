//! Where a request inside of a batch goes: to the account that the batch was sent to, or nowhere.

use crate::address::{host_label, split_host_secondary, split_secondary};
use crate::call::Call;
use larimar_engine::Engine;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;

impl<E: Engine> Call<'_, E> {
    /// The path of a URL inside of a batch below the account. Relative URLs may leave the account out.
    pub(crate) fn below<'p>(&self, authority: Option<&str>, path: &'p str) -> Result<&'p str, ErrorReply> {
        self.check_authority(authority)?;
        let path = path.trim_start_matches('/');
        let (Some(prefix), Some(slash)) = (self.address.prefix, path.find('/')) else { return Ok(path) };
        let (first, rest) = path.split_at(slash);
        if first == prefix {
            return Ok(rest);
        }
        let (account, _) = split_secondary(first);
        // What is not an account is left to those who read the path.
        if self.storage.is_known(account) { self.check_account(first).map(|()| rest) } else { Ok(path) }
    }

    /// Refuses a host inside of a batch that names another account, or the secondary. Other hosts say nothing: proxies
    /// change the host of the batch and not those within.
    pub(crate) fn check_authority(&self, authority: Option<&str>) -> Result<(), ErrorReply> {
        let Some(authority) = authority else { return Ok(()) };
        if self.head.host().is_some_and(|host| host.eq_ignore_ascii_case(authority)) {
            return Ok(());
        }
        let suffixes = &self.storage.settings.host_suffixes;
        match host_label(authority, self.service, suffixes, |_| true).map(split_host_secondary) {
            Some((account, _)) if !account.eq_ignore_ascii_case(self.account()) => {
                Err(ErrorReply::new(ErrorCode::InvalidInput))
            }
            Some((_, true)) => Err(ErrorReply::new(ErrorCode::InsufficientAccountPermissions)),
            Some((_, false)) | None => Ok(()),
        }
    }

    fn check_account(&self, name: &str) -> Result<(), ErrorReply> {
        match split_secondary(name) {
            (account, _) if account != self.account() => Err(ErrorReply::new(ErrorCode::InvalidInput)),
            (_, true) => Err(ErrorReply::new(ErrorCode::InsufficientAccountPermissions)),
            (_, false) => Ok(()),
        }
    }
}
