//! Long lists of numbers, serialized as bytes in native order: `#[serde(with = "nvlab_units::plain")]`. One copy
//! instead of a step per number; for files that are read on the same machine.

use bytemuck::{Pod, cast_slice, pod_collect_to_vec};
use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// Serializes a list as its bytes.
pub fn serialize<T: Pod, S: Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(cast_slice(list))
}

/// Reads a list back; fails if the length is not a whole number of elements.
pub fn deserialize<'de, T: Pod, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Bytes<T>(PhantomData<T>);

    impl<T: Pod> Visitor<'_> for Bytes<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "the bytes of numbers of {} B", size_of::<T>())
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<T>, E> {
            match bytes.len().is_multiple_of(size_of::<T>()) {
                true => Ok(pod_collect_to_vec(bytes)),
                false => Err(E::invalid_length(bytes.len(), &self)),
            }
        }
    }

    from.deserialize_bytes(Bytes(PhantomData))
}
