//! The properties of an entity, in the order of their names.

use crate::Value;
use std::fmt;

/// Properties by name, in a list: entities have few, and one piece of memory is made and searched faster than a tree.
#[derive(Clone, Default, PartialEq)]
pub(super) struct Sorted(Vec<(String, Value)>);

impl Sorted {
    pub(super) fn insert(&mut self, name: String, value: Value) -> Option<Value> {
        match self.place(&name) {
            Ok(place) => Some(std::mem::replace(&mut self.0[place].1, value)),
            Err(place) => {
                self.0.insert(place, (name, value));
                None
            }
        }
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Value> {
        self.place(name).ok().map(|place| self.0.remove(place).1)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.place(name).ok().map(|place| &self.0[place].1)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.place(name).ok().map(|place| &mut self.0[place].1)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Where a property is, or would be.
    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.as_str().cmp(name))
    }
}

/// Takes properties in any order; of those with one name the last counts.
impl From<Vec<(String, Value)>> for Sorted {
    fn from(mut properties: Vec<(String, Value)>) -> Self {
        properties.sort_by(|(one, _), (other, _)| one.cmp(other));
        properties.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                std::mem::swap(&mut later.1, &mut kept.1);
            }
            is_same
        });
        Self(properties)
    }
}

impl fmt::Debug for Sorted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl IntoIterator for Sorted {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn properties_are_as_a_map_has_them(
            read in prop::collection::vec(("[a-e]{0,2}", any::<i32>()), 0..40),
            steps in prop::collection::vec(("[a-e]{0,2}", any::<Option<i32>>()), 0..20),
        ) {
            let read: Vec<_> = read.into_iter().map(|(name, number)| (name, Value::Int32(number))).collect();
            let mut map: BTreeMap<_, _> = read.iter().cloned().collect();
            let mut sorted = Sorted::from(read);
            for (name, number) in steps {
                match number.map(Value::Int32) {
                    Some(value) => prop_assert_eq!(sorted.insert(name.clone(), value.clone()), map.insert(name.clone(), value)),
                    None => prop_assert_eq!(sorted.remove(&name), map.remove(&name)),
                }
                prop_assert_eq!(sorted.get(&name), map.get(&name));
                prop_assert_eq!(sorted.get_mut(&name), map.get_mut(&name));
            }
            prop_assert_eq!(format!("{sorted:?}"), format!("{map:?}"));
            prop_assert!(sorted.iter().eq(map.iter().map(|(name, value)| (name.as_str(), value))));
            prop_assert!(sorted.into_iter().eq(map));
        }
    }
}
