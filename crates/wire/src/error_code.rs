//! The codes that the service answers errors with: their names, their status and their text.
//!
//! The one place for all three. Texts are the service's own where they have been seen on the wire, and
//! its reference's otherwise; where the service has several texts for a code, the commonest is here and
//! [`crate::error_body::ErrorReply`] carries the others.

macro_rules! error_codes {
    ($($name:ident $status:literal $message:literal)*) => {
        /// An error code of the Table service or of all storage services.
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
    AccountIsDisabled 403
        "The specified account is disabled."
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
    CommandsInBatchActOnDifferentPartitions 400
        "All commands in a batch must operate on same entity group."
    ConditionNotMet 412
        "The condition specified using HTTP conditional header(s) is not met."
    ContentLengthExceeded 400
        "The content length for the requested operation has exceeded the limit."
    CorsPreflightFailure 403
        "CORS not enabled or no matching rule found for this request."
    DuplicatePropertiesSpecified 400
        "A property is specified more than one time."
    EntityAlreadyExists 409
        "The specified entity already exists."
    EntityNotFound 404
        "The specified entity does not exist."
    EntityTooLarge 400
        "The entity is larger than the maximum allowed size (1MB)."
    HostInformationNotPresent 400
        "The required host information is not present in the request. You must send a non-empty Host header or include the absolute URI in the request line."
    InsufficientAccountPermissions 403
        "Write operations are not allowed."
    InternalError 500
        "Server encountered an internal error. Please try again after some time."
    InvalidAuthenticationInfo 400
        "Authentication information is not given in the correct format. Check the value of Authorization header."
    InvalidDuplicateRow 400
        "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request."
    InvalidHeaderValue 400
        "The value for one of the HTTP headers is not in the correct format."
    InvalidHttpVerb 400
        "The HTTP verb specified is invalid - it is not recognized by the server."
    InvalidInput 400
        "One of the request inputs is not valid."
    InvalidQueryParameterValue 400
        "Value for one of the query parameters specified in the request URI is invalid."
    // The service misspells the word, and clients look for it.
    InvalidResourceName 400
        "The specifed resource name contains invalid characters."
    InvalidUri 400
        "The requested URI does not represent any resource on the server."
    InvalidValueType 400
        "The value specified is invalid."
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
    MediaTypeNotSupported 415
        "None of the provided media types are supported."
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
    NoAuthenticationInformation 401
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header."
    NotImplemented 501
        "The requested operation is not implemented on the specified resource."
    OperationTimedOut 500
        "Operation could not be completed within the specified time."
    OutOfRangeInput 400
        "One of the request inputs is out of range."
    OutOfRangeQueryParameterValue 400
        "One of the query parameters specified in the request URI is outside the permissible range."
    PropertiesNeedValue 400
        "The values are not specified for all properties in the entity."
    PropertyNameInvalid 400
        "The property name is invalid."
    PropertyNameTooLong 400
        "The property name exceeds the maximum allowed length (255)."
    PropertyValueTooLarge 400
        "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less."
    RequestBodyTooLarge 413
        "The request body is too large and exceeds the maximum permissible limit."
    RequestUrlFailedToParse 400
        "The url in the request could not be parsed."
    ResourceNotFound 404
        "The specified resource does not exist."
    ServerBusy 503
        "The server is busy."
    TableAlreadyExists 409
        "The table specified already exists."
    TableBeingDeleted 409
        "The specified table is being deleted. Try operation later."
    TableNotFound 404
        "The table specified does not exist."
    TooManyProperties 400
        "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties."
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
