//! How often a call must occur: `min` and `max` of the checks `tool_used` and `mock_called`.

use serde_json::{Map, Value, json};

use practicum_core::model::{Diagnostics, count_with_noun};
use practicum_core::tree::ObjectReader;
use practicum_core::tree::json_schema::{self, MappingSchema};

/// How many calls there must be at least, and may be at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCount {
    min: u32,
    max: Option<u32>,
}

impl CallCount {
    /// At least one call.
    pub const SOME: Self = Self { min: 1, max: None };

    /// Reads `min` and `max`, and refuses every key that was not read before.
    pub fn decode(mut object: ObjectReader<'_>, rule: &str, diagnostics: &mut Diagnostics) -> Option<Self> {
        let mut number = |key| {
            let given = object.get_non_null(key).is_some();
            let number = object.int(key, 0, u32::MAX.into(), diagnostics);
            (given == number.is_some()).then_some(number.and_then(|number| u32::try_from(number).ok()))
        };
        let (min, max) = (number("min"), number("max"));
        object.reject_unknown_keys(rule, diagnostics);
        let (min, max) = (min?.unwrap_or(1), max?);
        if max.is_some_and(|max| max < min) {
            let message = "\"max\" is less than \"min\" (which is 1 unless given)";
            diagnostics.error("contradiction", object.span, message);
            return None;
        }
        Some(Self { min, max })
    }

    /// Adds what is not the default to the value of a check.
    pub fn add_to(self, map: &mut Map<String, Value>) {
        if self.min != 1 {
            map.insert("min".to_owned(), json!(self.min));
        }
        if let Some(max) = self.max {
            map.insert("max".to_owned(), json!(max));
        }
    }

    /// Says whether so many calls are right, and what was found and wanted.
    pub fn compare(self, what: &str, times: usize) -> (bool, String) {
        let wanted = match self.max {
            Some(max) => format!("{} to {max} wanted", self.min),
            None => format!("at least {} wanted", self.min),
        };
        let enough = times >= self.min as usize && self.max.is_none_or(|max| times <= max as usize);
        (enough, format!("{what} was called {}, {wanted}", count_with_noun(times, "time")))
    }

    /// Adds `min` and `max` to the schema of a call.
    pub fn add_to_schema(call: MappingSchema) -> MappingSchema {
        let count = || json_schema::integer_between(0, u32::MAX.into());
        call.optional(
            "min",
            "How many such calls there must be at least.",
            json_schema::with_default(count(), 1),
        )
        .optional("max", "How many such calls there may be at most.", count())
    }
}
