//! Finds cases in JSON of any length, and in JSON Lines, without keeping it in memory.

use std::cell::Cell;
use std::io::{BufReader, Read};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::eval_document::{CASE_LIST_KEYS, has_keys_of_case};

/// Says whether one of the JSON documents in a text is a case, or has cases in a list.
pub fn holds_cases(text: impl Read) -> bool {
    let found = Cell::new(false);
    let mut documents = serde_json::Deserializer::from_reader(BufReader::new(text));
    // The first error is the end of the text, something that is not JSON, or a case.
    while documents.deserialize_any(Cases { found: &found, depth: 0 }).is_ok() {}
    found.get()
}

/// A visitor of a JSON value that stops with an error at the first case in it.
struct Cases<'f> {
    found: &'f Cell<bool>,
    /// The number of lists and objects around the value.
    depth: usize,
}

/// The greatest depth at which cases are looked for: in a list of the document, or in a list of one of its parts.
const DEEPEST: usize = 4;

impl Cases<'_> {
    fn inside(&self) -> Self {
        Self { found: self.found, depth: self.depth + 1 }
    }
}

impl<'de> DeserializeSeed<'de> for Cases<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        if self.depth > DEEPEST {
            return value.deserialize_ignored_any(IgnoredAny).map(|_| ());
        }
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Cases<'_> {
    type Value = ();

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("JSON")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let mut keys: Vec<String> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            match CASE_LIST_KEYS.contains(&key.as_str()) || key == "skills" {
                true => map.next_value_seed(self.inside())?,
                false => map.next_value::<IgnoredAny>().map(|_| ())?,
            }
            keys.push(key);
            // An object with very many keys has all kinds of keys, so they prove nothing.
            if keys.len() < 100 && has_keys_of_case(|key| keys.iter().any(|known| known == key)) {
                self.found.set(true);
                return Err(M::Error::custom("a case"));
            }
        }
        Ok(())
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<(), S::Error> {
        while list.next_element_seed(self.inside())?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
