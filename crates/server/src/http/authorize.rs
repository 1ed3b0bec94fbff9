//! Authorisation: the one place that compares what a caller may do with what an operation needs.

use crate::auth::Caller;
use larimar_wire::error_body::ErrorReply;
use larimar_wire::error_code::ErrorCode;
use larimar_wire::operation::{Facts, Operation};
use std::fmt;
use std::ops::Deref;

/// An operation with its facts, which are built once for a request.
#[derive(Debug)]
pub(crate) struct Declared<'r, O> {
    operation: &'r O,
    facts: Facts<'r>,
}

impl<'r, O: Operation> Declared<'r, O> {
    pub(crate) fn new(operation: &'r O) -> Self {
        Self { operation, facts: operation.facts() }
    }

    /// What the pipeline must know about the operation.
    pub(crate) const fn facts(&self) -> &Facts<'r> {
        &self.facts
    }
}

/// An operation that the caller may run. Only [`authorize`] makes one, so a handler that takes it cannot run without the
/// check.
///
/// Without credentials an operation is authorised only if the container's public access allows it, which is known when
/// the container is found.
pub(crate) struct Authorized<'r, O> {
    operation: &'r O,
    facts: &'r Facts<'r>,
}

/// Checks that the caller may run an operation, or a part of a batch.
pub(crate) fn authorize<'r, O>(
    caller: &Caller,
    declared: &'r Declared<'r, O>,
) -> Result<Authorized<'r, O>, ErrorReply> {
    let Declared { operation, facts } = declared;
    match caller {
        Caller::Owner => {}
        Caller::Guest(_) => facts.needs.iter().flatten().try_for_each(|need| caller.permits(need))?,
        Caller::Anonymous if facts.public.is_some() => {}
        Caller::Anonymous => return Err(ErrorReply::new(ErrorCode::NoAuthenticationInformation)),
    }
    match facts.is_reserved {
        true => Err(ErrorReply::new(ErrorCode::AuthorizationFailure)),
        false => Ok(Authorized { operation, facts }),
    }
}

impl<'r, O> Authorized<'r, O> {
    /// The operation.
    pub(crate) const fn operation(self) -> &'r O {
        self.operation
    }

    /// The facts that the operation was authorised by.
    pub(crate) const fn facts(self) -> &'r Facts<'r> {
        self.facts
    }

    /// A part of the operation that has the same facts, such as the write in a table operation.
    pub(crate) const fn part<P>(self, part: &'r P) -> Authorized<'r, P> {
        Authorized { operation: part, facts: self.facts }
    }
}

impl<O> Clone for Authorized<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for Authorized<'_, O> {}

impl<O> Deref for Authorized<'_, O> {
    type Target = O;

    fn deref(&self) -> &O {
        self.operation
    }
}

impl<O: fmt::Debug> fmt::Debug for Authorized<'_, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Authorized").field(self.operation).finish()
    }
}
