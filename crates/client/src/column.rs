//! Columns: names of properties with their types, from which comparisons are made.

mod literal;
mod name;
mod prefix;

pub use literal::IntoLiteral;
pub use name::ColumnError;
pub(crate) use name::is_same;

use crate::Filter;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// The name of a property, with the type that its values have.
///
/// `#[derive(Entity)]` makes a function for each field, `Employee::last_name()`, so that names and types are checked
/// when the program is built. [`Column::named`] serves where there is no such type, and [`crate::keys`] has the keys.
///
/// ```
/// use larimar_client::Column;
/// const AGE: Column<i32> = Column::named("Age");
/// assert_eq!(AGE.gt(30).as_str(), "Age gt 30");
///
/// let hired: Column<larimar_client::Timestamp> = Column::named("HiredAt");
/// let new_year: larimar_client::Timestamp = "2024-01-01T00:00:00Z".parse()?;
/// assert_eq!(hired.lt(new_year).as_str(), "HiredAt lt datetime'2024-01-01T00:00:00Z'");
/// # Ok::<(), larimar_client::TimestampError>(())
/// ```
///
/// A value of the wrong type does not compile:
///
/// ```compile_fail
/// # use larimar_client::Column;
/// const AGE: Column<i32> = Column::named("Age");
/// AGE.gt("thirty");
/// ```
///
/// `Column<Value>` compares with anything that converts into a [`crate::Value`].
pub struct Column<T> {
    name: Cow<'static, str>,
    type_: PhantomData<fn(T)>,
}

impl<T> Column<T> {
    /// The column of a name that the program spells out: ASCII letters, digits and underscores, no digit first.
    ///
    /// ```
    /// # use larimar_client::Column;
    /// const LAST_NAME: Column<String> = Column::named("LastName");
    /// ```
    ///
    /// In a constant, a name that is none does not compile:
    ///
    /// ```compile_fail
    /// # use larimar_client::Column;
    /// const LAST_NAME: Column<String> = Column::named("Last Name");
    /// ```
    ///
    /// # Panics
    /// If the name has other characters, is longer than 255, or is a word of the filter language such as `and`. For
    /// names in other alphabets and names known only at run time there is [`Column::try_named`].
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        assert!(name::is_plain(name), "expected a property name of ASCII letters, digits and underscores");
        Self { name: Cow::Borrowed(name), type_: PhantomData }
    }

    /// The column of a name known at run time.
    ///
    /// ```
    /// # use larimar_client::Column;
    /// let size = Column::<f64>::try_named("Größe")?;
    /// assert_eq!(size.lt(2.0).as_str(), "Größe lt 2.0");
    /// assert!(Column::<f64>::try_named("1 eq 1 or x").is_err());
    /// # Ok::<(), larimar_client::ColumnError>(())
    /// ```
    ///
    /// # Errors
    /// A name that no property has, or that is a word of the filter language such as `and`.
    pub fn try_named(name: impl Into<Cow<'static, str>>) -> Result<Self, ColumnError> {
        let name = name.into();
        name::check(&name)?;
        Ok(Self { name, type_: PhantomData })
    }

    /// The same column of a struct that another one flattens with a prefix to its names.
    ///
    /// ```
    /// # use larimar_client::Column;
    /// const CITY: Column<String> = Column::named("City");
    /// assert_eq!(CITY.prefixed("Home_").eq("Oslo").as_str(), "Home_City eq 'Oslo'");
    /// ```
    ///
    /// # Panics
    /// If no property has such a name.
    #[must_use]
    pub fn prefixed(&self, prefix: &str) -> Self {
        Self::try_named(format!("{prefix}{}", self.name)).expect("a prefix of letters, digits and underscores")
    }

    /// The property's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the property equals the value.
    #[must_use]
    pub fn eq(&self, value: impl IntoLiteral<T>) -> Filter {
        self.compare("eq", value)
    }

    /// Whether the property is there and differs from the value.
    #[must_use]
    pub fn ne(&self, value: impl IntoLiteral<T>) -> Filter {
        self.compare("ne", value)
    }

    /// Whether the property is greater than the value. Texts compare by their UTF-16 code units, which tell upper
    /// from lower case.
    #[must_use]
    pub fn gt(&self, value: impl IntoLiteral<T>) -> Filter {
        self.compare("gt", value)
    }

    /// Whether the property is greater than the value or equal to it.
    #[must_use]
    pub fn ge(&self, value: impl IntoLiteral<T>) -> Filter {
        self.compare("ge", value)
    }

    /// Whether the property is less than the value.
    #[must_use]
    pub fn lt(&self, value: impl IntoLiteral<T>) -> Filter {
        self.compare("lt", value)
    }

    /// Whether the property is less than the value or equal to it.
    #[must_use]
    pub fn le(&self, value: impl IntoLiteral<T>) -> Filter {
        self.compare("le", value)
    }

    /// Whether the property lies between two values, the first one included and the last one not.
    ///
    /// ```
    /// # use larimar_client::Column;
    /// const AGE: Column<i32> = Column::named("Age");
    /// assert_eq!(AGE.between(30, 40).as_str(), "Age ge 30 and Age lt 40");
    /// ```
    #[must_use]
    pub fn between(&self, first: impl IntoLiteral<T>, end: impl IntoLiteral<T>) -> Filter {
        self.ge(first).and(self.lt(end))
    }

    /// Whether the property equals one of the values; never, if there are none.
    ///
    /// ```
    /// # use larimar_client::Column;
    /// const AGE: Column<i32> = Column::named("Age");
    /// assert_eq!(AGE.in_values([30, 40]).as_str(), "Age eq 30 or Age eq 40");
    /// ```
    ///
    /// The service reads filters of bounded length: for many values, ask for each or read a range.
    #[must_use]
    pub fn in_values(&self, values: impl IntoIterator<Item = impl IntoLiteral<T>>) -> Filter {
        Filter::any(values.into_iter().map(|value| self.eq(value)))
    }

    fn compare(&self, operator: &str, value: impl IntoLiteral<T>) -> Filter {
        Filter::comparison(&self.name, operator, &literal::storable(value.into_literal()))
    }
}

impl Column<String> {
    /// Whether the text starts with the prefix.
    ///
    /// The service has no such comparison, so this asks for the range of texts from the prefix up to the first one
    /// that does not start with it. On a key the service reads only that range.
    ///
    /// ```
    /// use larimar_client::keys;
    /// assert_eq!(keys::row_key().starts_with("empid_").as_str(), "RowKey ge 'empid_' and RowKey lt 'empid`'");
    /// ```
    #[must_use]
    pub fn starts_with(&self, prefix: impl AsRef<str>) -> Filter {
        let prefix = prefix.as_ref();
        match prefix::end(prefix) {
            Some(end) => self.between(prefix, end),
            None => self.ge(prefix),
        }
    }
}

impl<T> Clone for Column<T> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), type_: PhantomData }
    }
}

impl<T> fmt::Debug for Column<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Column").field(&self.name).finish()
    }
}

impl<T> fmt::Display for Column<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
