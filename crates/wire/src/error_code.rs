//! The codes that the service answers errors with: their names, their status and their text.
//!
//! The one place for all three. Texts are the service's own where they have been seen on the wire, and
//! its reference's otherwise; where the service has several texts for a code, the commonest is here and
//! [`crate::error_body::ErrorReply`] carries the others.

macro_rules! error_codes {
    ($($name:ident $status:literal $message:literal)*) => {
        /// An error code of the Table, Queue or Blob service, or of all of them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $message] $name,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The code's name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The HTTP status that goes with the code.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$name => $status,)* }
            }

            /// The text that goes with the code when there is nothing more precise to say.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self { $(Self::$name => $message,)* }
            }
        }
    };
}

error_codes! {
    AccountAlreadyExists 409
        "The specified account already exists."
    AccountBeingCreated 409
        "The specified account is in the process of being created."
    AccountIsDisabled 403
        "The specified account is disabled."
    AppendPositionConditionNotMet 412
        "The append position condition specified was not met."
    AtomFormatNotSupported 415
        "Atom format is not supported."
    AuthenticationFailed 403
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."
    AuthorizationFailure 403
        "This request is not authorized to perform this operation."
    AuthorizationPermissionMismatch 403
        "This request is not authorized to perform this operation using this permission."
    AuthorizationProtocolMismatch 403
        "This request is not authorized to perform this operation using this protocol."
    AuthorizationResourceTypeMismatch 403
        "This request is not authorized to perform this operation using this resource type."
    AuthorizationServiceMismatch 403
        "This request is not authorized to perform this operation using this service."
    AuthorizationSourceIPMismatch 403
        "This request is not authorized to perform this operation using this source IP."
    BlobAlreadyExists 409
        "The specified blob already exists."
    BlobArchived 409
        "This operation is not permitted on an archived blob."
    BlobBeingRehydrated 409
        "This operation is not permitted because the blob is being rehydrated."
    BlobImmutableDueToLegalHold 409
        "This operation is not permitted as the blob is immutable due to one or more legal holds."
    BlobImmutableDueToPolicy 409
        "This operation is not permitted as the blob is immutable due to a policy."
    BlobIsSealed 409
        "The specified blob is sealed and its contents can't be modified unless the blob is re-created after a delete."
    BlobNotArchived 409
        "The blob is not archived."
    BlobNotFound 404
        "The specified blob does not exist."
    BlobOperationNotSupported 409
        "The operation is not supported in this scenario."
    BlobOverwritten 409
        "The blob has been recreated since the previous snapshot was taken."
    BlobTierInadequateForContentLength 409
        "The specified blob tier size limit cannot be less than content length."
    BlockCountExceedsLimit 409
        "The committed block count cannot exceed the maximum limit of 50,000 blocks."
    BlockListTooLong 400
        "The block list may not contain more than 50,000 blocks."
    BothCrc64AndMd5HeaderPresent 400
        "Both x-ms-content-crc64 header and Content-MD5 header are present."
    CannotChangeToLowerTier 409
        "A higher blob tier has already been explicitly set."
    CannotVerifyCopySource 500
        "Could not verify the copy source within the specified time."
    CommandsInBatchActOnDifferentPartitions 400
        "All commands in a batch must operate on same entity group."
    ConditionHeadersNotSupported 400
        "Condition headers are not supported."
    ConditionNotMet 412
        "The condition specified using HTTP conditional header(s) is not met."
    ContainerAlreadyExists 409
        "The specified container already exists."
    ContainerBeingDeleted 409
        "The specified container is being deleted. Try operation later."
    ContainerDisabled 409
        "The specified container has been disabled by the administrator."
    ContainerNotFound 404
        "The specified container does not exist."
    ContentLengthExceeded 400
        "The content length for the requested operation has exceeded the limit."
    CopyAcrossAccountsNotSupported 400
        "The copy source account and destination account must be the same."
    CopyIdMismatch 409
        "The specified copy ID did not match the copy ID for the pending copy operation."
    CorsPreflightFailure 403
        "CORS not enabled or no matching rule found for this request."
    Crc64Mismatch 400
        "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server."
    DuplicatePropertiesSpecified 400
        "A property is specified more than one time."
    DuplicateTagNames 400
        "The tags specified contain duplicate names."
    EmptyTagName 400
        "The name of one of the tag key-value pairs is empty."
    EmptyMetadataKey 400
        "The key for one of the metadata key-value pairs is empty."
    EntityAlreadyExists 409
        "The specified entity already exists."
    EntityNotFound 404
        "The specified entity does not exist."
    EntityTooLarge 400
        "The entity is larger than the maximum allowed size (1MB)."
    ExceedsMaxBatchRequestCount 400
        "The batch operation exceeds maximum number of allowed subrequests."
    FeatureVersionMismatch 409
        "The operation for Azure Storage is not permitted because the blob uses a feature that the version of the request does not know."
    HostInformationNotPresent 400
        "The required host information is not present in the request. You must send a non-empty Host header or include the absolute URI in the request line."
    IncrementalCopyBlobMismatch 409
        "The specified source blob is different than the copy source of the existing incremental copy blob."
    // The service misspells the code, and clients look for it.
    IncrementalCopyOfEralierVersionSnapshotNotAllowed 409
        "The specified snapshot is earlier than the last snapshot copied into the incremental copy blob."
    IncrementalCopySourceMustBeSnapshot 409
        "The source for incremental copy request must be a snapshot."
    InfiniteLeaseDurationRequired 412
        "The lease ID matched, but the specified lease must be an infinite-duration lease."
    InsufficientAccountPermissions 403
        "Write operations are not allowed."
    InternalError 500
        "Server encountered an internal error. Please try again after some time."
    InvalidAuthenticationInfo 400
        "Authentication information is not given in the correct format. Check the value of Authorization header."
    InvalidBlobOrBlock 400
        "The specified blob or block content is invalid."
    InvalidBlobTier 400
        "The specified blob tier is invalid."
    InvalidBlobType 409
        "The blob type is invalid for this operation."
    InvalidBlockId 400
        "The specified block ID is invalid. The block ID must be Base64-encoded."
    InvalidBlockList 400
        "The specified block list is invalid."
    InvalidDuplicateRow 400
        "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."
    InvalidHeaderValue 400
        "The value for one of the HTTP headers is not in the correct format."
    InvalidHttpVerb 400
        "The HTTP verb specified is invalid - it is not recognized by the server."
    InvalidInput 400
        "One of the request inputs is not valid."
    InvalidMarker 400
        "The specified marker is invalid."
    InvalidMd5 400
        "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64 encoded."
    InvalidMetadata 400
        "The metadata specified is invalid. It has characters that are not permitted."
    InvalidOperation 400
        "Invalid operation against a blob snapshot."
    InvalidPageRange 416
        "The page range specified is invalid."
    InvalidQueryParameterValue 400
        "Value for one of the query parameters specified in the request URI is invalid."
    InvalidRange 416
        "The range specified is invalid for the current size of the resource."
    // The service misspells the word, and clients look for it.
    InvalidResourceName 400
        "The specifed resource name contains invalid characters."
    InvalidSourceBlobType 409
        "The copy source blob type is invalid for this operation."
    InvalidSourceBlobUrl 409
        "The source URL for incremental copy operation must be valid Azure Storage blob URL."
    InvalidTag 400
        "The tags specified are invalid. It contains characters that are not permitted."
    InvalidUri 400
        "The requested URI does not represent any resource on the server."
    InvalidValueType 400
        "The value specified is invalid."
    InvalidVersionForPageBlobOperation 400
        "All operations on page blobs require at least version 2009-09-19."
    InvalidXmlDocument 400
        "XML specified is not syntactically valid."
    InvalidXmlNodeValue 400
        "The value for one of the XML nodes is not in the correct format."
    JsonFormatNotSupported 415
        "JSON format is not supported."
    JsonVerboseFormatNotSupported 415
        "Verbose JSON format is not supported."
    KeyValueTooLarge 400
        "The key value exceeds the maximum allowed size (1KB)."
    LeaseAlreadyBroken 409
        "The lease has already been broken and cannot be broken again."
    LeaseAlreadyPresent 409
        "There is already a lease present."
    LeaseIdMismatchWithBlobOperation 412
        "The lease ID specified did not match the lease ID for the blob."
    LeaseIdMismatchWithContainerOperation 412
        "The lease ID specified did not match the lease ID for the container."
    LeaseIdMismatchWithLeaseOperation 409
        "The lease ID specified did not match the lease ID for the blob/container."
    LeaseIdMissing 412
        "There is currently a lease on the resource and no lease ID was specified in the request."
    LeaseIsBreakingAndCannotBeAcquired 409
        "There is already a breaking lease, and it cannot be acquired until it has been broken."
    LeaseIsBreakingAndCannotBeChanged 409
        "The lease ID matched, but the lease is currently in breaking state and cannot be changed."
    LeaseIsBrokenAndCannotBeRenewed 409
        "The lease ID matched, but the lease has been broken explicitly and cannot be renewed."
    LeaseLost 412
        "A lease ID was specified, but the lease for the resource has expired."
    LeaseNotPresentWithBlobOperation 412
        "There is currently no lease on the blob."
    LeaseNotPresentWithContainerOperation 412
        "There is currently no lease on the container."
    LeaseNotPresentWithLeaseOperation 409
        "There is currently no lease on the blob/container."
    MaxBlobSizeConditionNotMet 412
        "The max blob size condition specified was not met."
    Md5Mismatch 400
        "The MD5 value specified in the request did not match with the MD5 value calculated by the server."
    MediaTypeNotSupported 415
        "None of the provided media types are supported."
    MessageNotFound 404
        "The specified message does not exist."
    MessageTooLarge 400
        "The message exceeds the maximum allowed size."
    MetadataTooLarge 400
        "The size of the specified metadata exceeds the maximum size permitted."
    MethodNotAllowed 405
        "The requested method is not allowed on the specified resource."
    MissingContentLengthHeader 411
        "Content-Length HTTP header is missing."
    MissingRequiredHeader 400
        "An HTTP header that's mandatory for this request is not specified."
    MissingRequiredQueryParameter 400
        "A query parameter that's mandatory for this request is not specified."
    MissingRequiredXmlNode 400
        "An XML node that's mandatory for this request is not specified."
    MultipleConditionHeadersNotSupported 400
        "Multiple condition headers are not supported."
    NoAuthenticationInformation 401
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
    NoPendingCopyOperation 409
        "There is currently no pending copy operation."
    NotImplemented 501
        "The requested operation is not implemented on the specified resource."
    OperationNotAllowedOnIncrementalCopyBlob 409
        "The specified operation is not allowed on an incremental copy blob."
    OperationTimedOut 500
        "Operation could not be completed within the specified time."
    OutOfRangeInput 400
        "One of the request inputs is out of range."
    OutOfRangeQueryParameterValue 400
        "One of the query parameters specified in the request URI is outside the permissible range."
    PendingCopyOperation 409
        "There is currently a pending copy operation."
    PopReceiptMismatch 400
        "The specified pop receipt did not match the pop receipt for a dequeued message."
    PreviousSnapshotCannotBeNewer 400
        "The prevsnapshot query parameter value cannot be newer than snapshot query parameter value."
    PreviousSnapshotNotFound 409
        "The previous snapshot is not found."
    PreviousSnapshotOperationNotSupported 409
        "Differential Get Page Ranges is not supported on the previous snapshot."
    PropertiesNeedValue 400
        "The values are not specified for all properties in the entity."
    PropertyNameInvalid 400
        "The property name is invalid."
    PropertyNameTooLong 400
        "The property name exceeds the maximum allowed length (255)."
    PropertyValueTooLarge 400
        "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less."
    PublicAccessNotPermitted 409
        "Public access is not permitted on this storage account."
    QueueAlreadyExists 409
        "The specified queue already exists."
    QueueBeingDeleted 409
        "The specified queue is being deleted."
    QueueDisabled 409
        "The specified queue has been disabled by the administrator."
    QueueNotEmpty 409
        "The specified queue is not empty."
    QueueNotFound 404
        "The specified queue does not exist."
    RequestBodyTooLarge 413
        "The request body is too large and exceeds the maximum permissible limit."
    RequestUrlFailedToParse 400
        "The url in the request could not be parsed."
    ResourceAlreadyExists 409
        "The specified resource already exists."
    ResourceNotFound 404
        "The specified resource does not exist."
    ResourceTypeMismatch 409
        "The specified resource type does not match the type of the existing resource."
    SequenceNumberConditionNotMet 412
        "The sequence number condition specified was not met."
    SequenceNumberIncrementTooLarge 409
        "The sequence number increment cannot be performed because it would result in overflow of the sequence number."
    ServerBusy 503
        "The server is busy."
    SnapshotCountExceeded 409
        "The snapshot count against this blob has been exceeded."
    SnapshotOperationRateExceeded 409
        "The rate of snapshot operations against this blob has been exceeded."
    SnapshotsPresent 409
        "This operation is not permitted while the blob has snapshots."
    SourceConditionNotMet 412
        "The source condition specified using HTTP conditional header(s) is not met."
    SystemInUse 409
        "This blob is in use by the system."
    TableAlreadyExists 409
        "The table specified already exists."
    TableBeingDeleted 409
        "The specified table is being deleted. Try operation later."
    TableNotFound 404
        "The table specified does not exist."
    TagsTooLarge 400
        "The tags specified exceed the maximum permissible limit."
    TargetConditionNotMet 412
        "The target condition specified using HTTP conditional header(s) is not met."
    TooManyProperties 400
        "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties."
    UnauthorizedBlobOverwrite 403
        "This request is not authorized to perform blob overwrites."
    UnsatisfiableCondition 400
        "The request includes an unsatisfiable condition for this operation."
    UnsupportedHeader 400
        "One of the HTTP headers specified in the request is not supported."
    UnsupportedHttpVerb 405
        "The resource doesn't support specified Http Verb."
    UnsupportedQueryParameter 400
        "One of the query parameters specified in the request URI is not supported."
    UnsupportedXmlNode 400
        "One of the XML nodes specified in the request body is not supported."
    UpdateConditionNotSatisfied 412
        "The update condition specified in the request was not satisfied."
    XMethodIncorrectCount 400
        "More than one X-HTTP-Method is specified."
    XMethodIncorrectValue 400
        "The specified X-HTTP-Method is invalid."
    XMethodNotUsingPost 400
        "The request uses X-HTTP-Method with an HTTP verb other than POST."
}

#[cfg(test)]
mod tests {
    use super::ErrorCode as C;

    #[test]
    fn codes_have_the_status_and_text_of_the_service() {
        for (code, name, status, text) in [
            (C::EntityAlreadyExists, "EntityAlreadyExists", 409, "The specified entity already exists."),
            (C::ResourceNotFound, "ResourceNotFound", 404, "The specified resource does not exist."),
            (C::TableNotFound, "TableNotFound", 404, "The table specified does not exist."),
            (C::InvalidXmlDocument, "InvalidXmlDocument", 400, "XML specified is not syntactically valid."),
            (
                C::UpdateConditionNotSatisfied,
                "UpdateConditionNotSatisfied",
                412,
                "The update condition specified in the request was not satisfied.",
            ),
            (
                C::InvalidResourceName,
                "InvalidResourceName",
                400,
                "The specifed resource name contains invalid characters.",
            ),
        ] {
            assert_eq!((code.as_str(), code.status(), code.message()), (name, status, text));
        }
    }

    #[test]
    fn every_code_is_an_error_with_a_text() {
        for code in C::ALL {
            assert!((400..=503).contains(&code.status()), "{code:?}");
            assert!(code.message().ends_with('.'), "{code:?}");
            assert_eq!(code.as_str(), format!("{code:?}"));
        }
    }
}
