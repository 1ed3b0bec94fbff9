//! `#[derive(Entity)]` and `#[derive(Properties)]`: how a struct writes and reads itself.

use crate::attributes::Container;
use crate::column_functions;
use crate::fields::{self, Absent, Field, Format, Kind, Property, option_of};
use crate::name;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::HashMap;
use syn::spanned::Spanned as _;
use syn::{DeriveInput, Error, Expr, Ident, LitStr, Path, Type};

/// The property that distinguishes the types of entities.
const ENTITY_TYPE: &str = "EntityType";

pub(crate) fn derive_entity(input: &DeriveInput) -> syn::Result<TokenStream> {
    let known = ["partition_key", "row_key", "rename_all", "entity_type", "no_columns", "crate"];
    let container = Container::read(&input.attrs, &known)?;
    let fields = fields::read(input, "Entity", container.property_case()?)?;
    check_names(&fields, container.entity_type.as_ref())?;
    let partition = key(input, &fields, "partition_key", container.partition_key.as_ref())?;
    let row = key(input, &fields, "row_key", container.row_key.as_ref())?;
    single(&fields, "timestamp", |kind| matches!(kind, Kind::Timestamp))?;
    single(&fields, "etag", |kind| matches!(kind, Kind::ETag))?;

    let client = &container.client;
    let code = Code { client, is_part: false };
    let (write, read, columns) = (code.write(&fields), code.read(&fields), code.columns(&fields));
    let encrypted = encrypted(client, &fields);
    let functions = column_functions::of(input, &container, &fields);
    let (write_type, read_type, type_name, type_column) = entity_type(client, container.entity_type.as_ref());
    let (name, (generics, arguments, bounds)) = (&input.ident, input.generics.split_for_impl());
    Ok(quote! {
        #[automatically_derived]
        // A struct may have nothing to write or to read, and its fields are the caller's to deprecate.
        #[allow(deprecated, unused_mut, unused_variables)]
        impl #generics #client::Entity for #name #arguments #bounds {
            #encrypted
            #type_name

            fn to_dynamic(
                &self,
            ) -> ::std::result::Result<::std::borrow::Cow<'_, #client::DynamicEntity>, #client::EntityError> {
                let mut __entity = #client::DynamicEntity::new(#partition, #row);
                #write
                #write_type
                ::std::result::Result::Ok(::std::borrow::Cow::Owned(__entity))
            }

            fn from_dynamic(
                mut __entity: #client::DynamicEntity,
            ) -> ::std::result::Result<Self, #client::EntityError> {
                #read_type
                #read
            }

            fn columns() -> ::std::option::Option<::std::vec::Vec<::std::borrow::Cow<'static, str>>> {
                let mut __columns = ::std::vec::Vec::new();
                #columns
                #type_column
                ::std::option::Option::Some(__columns)
            }
        }
        #functions
    })
}

pub(crate) fn derive_properties(input: &DeriveInput) -> syn::Result<TokenStream> {
    let container = Container::read(&input.attrs, &["rename_all", "no_columns", "crate"])?;
    let fields = fields::read(input, "Properties", container.property_case()?)?;
    check_names(&fields, None)?;
    for field in &fields {
        match &field.kind {
            Kind::Property(Property { encrypt: Some(encrypt), .. }) => {
                return Err(Error::new(encrypt.span, "only properties of an entity itself are encrypted"));
            }
            Kind::PartitionKey | Kind::RowKey | Kind::Timestamp | Kind::ETag => {
                return Err(Error::new(field.ident.span(), "only an entity itself has keys, a time and an ETag"));
            }
            _ => {}
        }
    }
    let client = &container.client;
    let code = Code { client, is_part: true };
    let (write, read, columns) = (code.write(&fields), code.read(&fields), code.columns(&fields));
    let functions = column_functions::of(input, &container, &fields);
    let flattened = fields.iter().filter(|field| matches!(field.kind, Kind::Flatten(_))).map(|field| &field.type_);
    let (name, (generics, arguments, bounds)) = (&input.ident, input.generics.split_for_impl());
    Ok(quote! {
        #[automatically_derived]
        #[allow(deprecated, unused_mut, unused_variables)]
        impl #generics #client::Properties for #name #arguments #bounds {
            const TAKES_REST: bool = false #(|| <#flattened as #client::Properties>::TAKES_REST)*;

            fn write_to(
                &self,
                __entity: &mut #client::DynamicEntity,
                __prefix: &str,
            ) -> ::std::result::Result<(), #client::EntityError> {
                #write
                ::std::result::Result::Ok(())
            }

            fn read_from(
                __entity: &mut #client::DynamicEntity,
                __prefix: &str,
            ) -> ::std::result::Result<Self, #client::EntityError> {
                #read
            }

            fn columns(
                __prefix: &str,
            ) -> ::std::option::Option<::std::vec::Vec<::std::borrow::Cow<'static, str>>> {
                let mut __columns = ::std::vec::Vec::new();
                #columns
                ::std::option::Option::Some(__columns)
            }
        }
        #functions
    })
}

/// No two fields have one property.
fn check_names(fields: &[Field], entity_type: Option<&LitStr>) -> syn::Result<()> {
    let mut taken = HashMap::new();
    taken.extend(entity_type.map(|_| (ENTITY_TYPE.to_owned(), "entity_type".to_owned())));
    for field in fields {
        let Kind::Property(property) = &field.kind else { continue };
        let hashed = property.encrypt.as_ref().and_then(|encrypt| encrypt.hashed.as_ref());
        let names = [Some((property.name.clone(), property.span)), hashed.map(|name| (name.value(), name.span()))];
        for (name, span) in names.into_iter().flatten() {
            if let Some(other) = taken.get(&name) {
                return Err(Error::new(span, format!("the property `{name}` is that of `{other}` already")));
            }
            taken.insert(name, field.ident.to_string());
        }
    }
    Ok(())
}

/// The expression of a key: of the type, or of the one field that is marked.
fn key(input: &DeriveInput, fields: &[Field], word: &str, expression: Option<&Expr>) -> syn::Result<TokenStream> {
    let field = single(fields, word, |kind| match kind {
        Kind::PartitionKey => word == "partition_key",
        Kind::RowKey => word == "row_key",
        _ => false,
    })?;
    match (field, expression) {
        (Some(field), None) => {
            let ident = &field.ident;
            Ok(quote_spanned!(field.type_.span()=> ::std::string::ToString::to_string(&self.#ident)))
        }
        (None, Some(expression)) => {
            Ok(quote_spanned!(expression.span()=> ::std::string::ToString::to_string(&(#expression))))
        }
        (Some(field), Some(_)) => {
            Err(Error::new(field.ident.span(), format!("`{word}` is given by an expression on the type already")))
        }
        (None, None) => Err(Error::new(
            input.ident.span(),
            format!(
                "no `{word}`: mark a field with #[entity({word})], or give an expression for it on the type, \
                 such as #[entity({word} = self.department.to_lowercase())]"
            ),
        )),
    }
}

/// The one field of a kind, if there is one.
fn single<'a>(fields: &'a [Field], word: &str, is_kind: impl Fn(&Kind) -> bool) -> syn::Result<Option<&'a Field>> {
    let mut found = fields.iter().filter(|field| is_kind(&field.kind));
    let first = found.next();
    match found.next() {
        Some(second) => Err(Error::new(second.ident.span(), format!("a second field is marked `{word}`"))),
        None => Ok(first),
    }
}

fn encrypted(client: &Path, fields: &[Field]) -> TokenStream {
    let properties = fields.iter().filter_map(|field| {
        let Kind::Property(Property { name, encrypt: Some(encrypt), .. }) = &field.kind else { return None };
        let hashed = match &encrypt.hashed {
            Some(hashed) => quote!(::std::option::Option::Some(#hashed)),
            None => quote!(::std::option::Option::None),
        };
        Some(quote!(#client::EncryptedProperty::new(#name, #hashed)))
    });
    quote!(const ENCRYPTED: &'static [#client::EncryptedProperty] = &[#(#properties),*];)
}

/// How the constant that names the type is written, read, given as a constant, and listed.
fn entity_type(client: &Path, name: Option<&LitStr>) -> (TokenStream, TokenStream, TokenStream, TokenStream) {
    let Some(name) = name else { return Default::default() };
    (
        quote!(__entity.set(#ENTITY_TYPE, #name);),
        quote!(#client::__private::check_type(&mut __entity, #name)?;),
        quote!(const ENTITY_TYPE: ::std::option::Option<&'static str> = ::std::option::Option::Some(#name);),
        quote!(__columns.push(::std::borrow::Cow::Borrowed(#ENTITY_TYPE));),
    )
}

/// Writes the code of the functions. Locals start with underscores: expressions of the caller's stand among them.
struct Code<'a> {
    client: &'a Path,
    /// Whether names get a prefix known only at run time.
    is_part: bool,
}

impl Code<'_> {
    /// Statements that put the fields into `__entity`. Maps come last, and leave out what fields have set.
    fn write(&self, fields: &[Field]) -> TokenStream {
        let client = self.client;
        let target = if self.is_part { quote!(__entity) } else { quote!(&mut __entity) };
        let flattened = |takes_rest: bool| {
            let target = &target;
            fields.iter().filter_map(move |field| {
                let Kind::Flatten(prefix) = &field.kind else { return None };
                let (ident, type_, prefix) = (&field.ident, &field.type_, self.name(prefix));
                Some(quote_spanned! {field.type_.span()=>
                    if <#type_ as #client::Properties>::TAKES_REST == #takes_rest {
                        <#type_ as #client::Properties>::write_to(&self.#ident, #target, #prefix)?;
                    }
                })
            })
        };
        let (parts, rest) = (flattened(false), flattened(true));
        let others = fields.iter().map(|field| {
            let (ident, span) = (&field.ident, field.type_.span());
            match &field.kind {
                Kind::Timestamp => quote_spanned! {span=>
                    __entity.timestamp = #client::__private::time(self.#ident);
                },
                Kind::ETag => quote_spanned!(span=> __entity.etag = ::std::clone::Clone::clone(&self.#ident);),
                Kind::Property(property) => {
                    let (check, put) = (self.check_encrypted(property, field), self.put(property, field, &target));
                    quote_spanned!(span=> #check #put?;)
                }
                Kind::PartitionKey | Kind::RowKey | Kind::Skip | Kind::Flatten(_) => TokenStream::new(),
            }
        });
        quote!(#(#parts)* #(#others)* #(#rest)*)
    }

    /// What is encrypted is text, for the client encrypts no other type.
    fn check_encrypted(&self, property: &Property, field: &Field) -> TokenStream {
        if property.encrypt.is_none() || property.format != Format::Plain {
            return TokenStream::new();
        }
        let (client, type_) = (self.client, &field.type_);
        quote_spanned!(type_.span()=> #client::__private::assert_text::<#type_>();)
    }

    /// An expression that reads the struct from `__entity`. Maps that take the rest are read when all else was.
    fn read(&self, fields: &[Field]) -> TokenStream {
        let client = self.client;
        let source = if self.is_part { quote!(__entity) } else { quote!(&mut __entity) };
        let mut early = Vec::new();
        let mut late = Vec::new();
        let mut idents = Vec::new();
        let mut values = Vec::new();
        for (at, field) in fields.iter().enumerate() {
            let (type_, span) = (&field.type_, field.type_.span());
            let value = quote::format_ident!("__field{at}", span = Span::mixed_site());
            match &field.kind {
                Kind::Flatten(prefix) => {
                    let prefix = self.name(prefix);
                    early.push(quote_spanned! {span=>
                        let #value = if <#type_ as #client::Properties>::TAKES_REST {
                            ::std::option::Option::None
                        } else {
                            ::std::option::Option::Some(
                                <#type_ as #client::Properties>::read_from(#source, #prefix)?
                            )
                        };
                    });
                    late.push(quote_spanned! {span=>
                        let #value = match #value {
                            ::std::option::Option::Some(value) => value,
                            ::std::option::Option::None => {
                                <#type_ as #client::Properties>::read_from(#source, #prefix)?
                            }
                        };
                    });
                }
                _ => {
                    let read = self.read_field(field, &source);
                    early.push(quote_spanned!(span=> let #value: #type_ = #read;));
                }
            }
            idents.push(&field.ident);
            values.push(value);
        }
        quote! {
            #(#early)*
            #(#late)*
            ::std::result::Result::Ok(Self { #(#idents: #values),* })
        }
    }

    fn read_field(&self, field: &Field, source: &TokenStream) -> TokenStream {
        let client = self.client;
        match &field.kind {
            Kind::PartitionKey => quote_spanned! {field.type_.span()=>
                #client::__private::key("PartitionKey", ::std::mem::take(&mut __entity.partition_key))?
            },
            Kind::RowKey => quote_spanned! {field.type_.span()=>
                #client::__private::key("RowKey", ::std::mem::take(&mut __entity.row_key))?
            },
            Kind::Timestamp => quote_spanned!(field.type_.span()=> #client::__private::time(__entity.timestamp)),
            Kind::ETag => quote!(__entity.etag.take()),
            Kind::Skip | Kind::Flatten(_) => {
                quote_spanned!(field.type_.span()=> ::std::default::Default::default())
            }
            Kind::Property(property) => {
                let (name, take) = (self.name(&property.name), self.take(property, field, source));
                let take = quote_spanned!(field.type_.span()=> #take?);
                let default = match &property.default {
                    None => return take,
                    Some(Absent::OfType) => quote_spanned! {field.type_.span()=> ::std::default::Default::default() },
                    Some(Absent::Value(expression)) => expression.to_token_stream(),
                };
                quote!(if __entity.value(#name).is_some() { #take } else { #default })
            }
        }
    }

    /// An expression that sets a field's property. Types are spelled out here and below, so that the compiler reports
    /// one that does not fit where the program names it, and reports it once.
    fn put(&self, property: &Property, field: &Field, target: &TokenStream) -> TokenStream {
        let (client, ident, type_) = (self.client, &field.ident, &field.type_);
        let name = self.name(&property.name);
        if property.format == Format::Plain {
            let value = quote_spanned!(type_.span()=> <#type_ as #client::Property>::to_value(&self.#ident));
            return quote_spanned!(type_.span()=> #client::__private::put(#target, #name, #value));
        }
        let (function, type_) = function("put", property, field);
        quote_spanned!(type_.span()=> #client::__private::#function::<#type_>(#target, #name, &self.#ident))
    }

    /// An expression that takes a field's property out.
    fn take(&self, property: &Property, field: &Field, source: &TokenStream) -> TokenStream {
        let (client, type_, name) = (self.client, &field.type_, self.name(&property.name));
        if property.format == Format::Plain {
            let value =
                quote_spanned!(type_.span()=> <#type_ as #client::Property>::from_value(__entity.remove(#name)));
            return quote_spanned!(type_.span()=> #client::__private::take(#name, #value));
        }
        let (function, type_) = function("take", property, field);
        quote_spanned!(type_.span()=> #client::__private::#function::<#type_>(#source, #name))
    }

    /// Statements that put the names of what is read into `__columns`, or return if a field reads everything.
    fn columns(&self, fields: &[Field]) -> TokenStream {
        let client = self.client;
        let columns = fields.iter().map(|field| {
            let name = match &field.kind {
                Kind::PartitionKey => "PartitionKey",
                Kind::RowKey => "RowKey",
                Kind::Timestamp => "Timestamp",
                Kind::Property(property) => &property.name,
                Kind::ETag | Kind::Skip => return TokenStream::new(),
                Kind::Flatten(prefix) => {
                    let (type_, prefix) = (&field.type_, self.name(prefix));
                    return quote!(__columns.extend(<#type_ as #client::Properties>::columns(#prefix)?););
                }
            };
            if self.is_part {
                let name = quote!(#client::__private::prefixed(__prefix, #name).into_owned());
                quote!(__columns.push(::std::borrow::Cow::Owned(#name));)
            } else {
                quote!(__columns.push(::std::borrow::Cow::Borrowed(#name));)
            }
        });
        quote!(#(#columns)*)
    }

    /// An expression for the name of a property, as text that is borrowed.
    fn name(&self, name: &str) -> TokenStream {
        let client = self.client;
        if self.is_part { quote!(&#client::__private::prefixed(__prefix, #name)) } else { quote!(#name) }
    }
}

/// The client's function that puts or takes a field as text, and the type it is called with.
fn function<'a>(verb: &str, property: &Property, field: &'a Field) -> (Ident, &'a Type) {
    let form = if property.format == Format::Json { "json" } else { "text" };
    let (optional, inner) = option_of(&field.type_).map_or(("", &field.type_), |inner| ("_option", inner));
    (Ident::new(&format!("{verb}_{form}{optional}"), field.type_.span()), inner)
}

/// Whether a filter can speak of a field's property, and under which name.
pub(crate) fn column_name(field: &Field) -> Option<&str> {
    match &field.kind {
        Kind::PartitionKey => Some("PartitionKey"),
        Kind::RowKey => Some("RowKey"),
        Kind::Timestamp => Some("Timestamp"),
        Kind::Property(property) if property.encrypt.is_some() || property.format == Format::Json => None,
        Kind::Property(property) => Some(property.name.as_str()).filter(|name| name::is_filterable(name)),
        Kind::ETag | Kind::Skip | Kind::Flatten(_) => None,
    }
}
