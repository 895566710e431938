//! The prices of tokens: a table with a date, and before it the user's own rows.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use practicum_core::model::TokenUsage;
use practicum_core::tree::read_regular_text;

const BUILTIN_PRICES: &str = include_str!("prices.toml");

const TOKENS_PER_PRICE: f64 = 1_000_000.0;

/// The price of a model, in USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

/// The prices of models.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    /// The date at which the prices were right.
    pub date: String,
    models: BTreeMap<String, ModelPrice>,
}

/// An error: a file of prices cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the prices {path} cannot be used: {problem}")]
pub struct PricesError {
    path: String,
    problem: String,
}

impl Default for PriceTable {
    fn default() -> Self {
        toml::from_str(BUILTIN_PRICES).expect("our own table is in order")
    }
}

impl PriceTable {
    /// Reads the user's rows and puts them before those of this program.
    pub fn with_user_file(path: &Path) -> Result<Self, PricesError> {
        let error = |problem: String| PricesError { path: path.display().to_string(), problem };
        let text = read_regular_text(path).map_err(|problem| error(problem.to_string()))?;
        let own: PriceTable = toml::from_str(&text).map_err(|problem| error(problem.to_string()))?;
        let wrong = |price: &ModelPrice| {
            let ModelPrice { input, output, cache_read, cache_write } = *price;
            [input, output, cache_read, cache_write].iter().any(|usd| !usd.is_finite() || *usd < 0.0)
        };
        if let Some((model, _)) = own.models.iter().find(|(_, price)| wrong(price)) {
            return Err(error(format!("{model} has a price that is not a valid number")));
        }
        let Self { mut models, .. } = Self::default();
        models.extend(own.models);
        Ok(Self { date: own.date, models })
    }

    /// Finds the price of a model or of a dated version of it. A longer name is another model with its own price:
    /// a "pro" costs ten times as much.
    pub fn price_of(&self, model: &str) -> Option<&ModelPrice> {
        let fits = |name: &str| model.strip_prefix(name).is_some_and(is_version);
        self.models.iter().find(|(name, _)| fits(name)).map(|(_, price)| price)
    }

    /// Gives the cost of tokens; `None` if the price is unknown.
    pub fn cost(&self, model: &str, usage: TokenUsage) -> Option<f64> {
        let price = self.price_of(model)?;
        let parts = [
            (usage.input, price.input),
            (usage.output, price.output),
            (usage.cache_read, price.cache_read),
            (usage.cache_write, price.cache_write),
        ];
        Some(parts.iter().map(|(tokens, usd)| *tokens as f64 * usd / TOKENS_PER_PRICE).sum())
    }
}

/// Says whether the text after a model's name leaves it the same model: nothing, `-latest`, or a date.
fn is_version(rest: &str) -> bool {
    let Some(version) = rest.strip_prefix(['-', '@']) else { return rest.is_empty() };
    let digits = version.bytes().filter(u8::is_ascii_digit).count();
    version == "latest" || (digits == 8 && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_model_costs_nobody_knows_what() {
        let prices = PriceTable::default();
        let usage = TokenUsage { input: 1_000_000, output: 100_000, cache_read: 10_000_000, cache_write: 0 };
        for (model, expected) in [
            ("claude-sonnet-4-6", Some(3.0 + 1.5 + 3.0)),
            ("claude-sonnet-4-6-20260101", Some(7.5)),
            ("claude-sonnet-4-6-latest", Some(7.5)),
            ("claude-sonnet-4-20250514", Some(7.5)),
            ("gpt-5.4-2026-03-05", Some(2.5 + 1.5 + 2.5)),
            ("gpt-5.4-pro", None),
            ("claude-sonnet-4-9", None),
            ("claude-sonnet-4-6x", None),
            ("gpt-5", None),
            ("", None),
        ] {
            let found = prices.cost(model, usage);
            assert_eq!(found.map(|usd| (usd * 1000.0).round()), expected.map(|usd| usd * 1000.0), "{model}");
        }
        assert!(prices.date.parse::<jiff::civil::Date>().is_ok(), "{}", prices.date);
    }

    #[test]
    fn own_prices_come_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("p.toml");
        let row = |price: f64| {
            format!("{{ input = {price:?}, output = 0.0, cache_read = 0.0, cache_write = 0.0 }}")
        };
        let write = |text: String| std::fs::write(&path, text).expect("written");
        write(format!("date = \"2030-01-01\"\n[models]\nmine = {}\n\"gpt-5.4\" = {}", row(1.0), row(9.0)));
        let prices = PriceTable::with_user_file(&path).expect("prices");
        let million = TokenUsage { input: 1_000_000, ..TokenUsage::default() };
        assert_eq!(prices.cost("mine", million), Some(1.0));
        assert_eq!(prices.cost("gpt-5.4", million), Some(9.0));
        assert_eq!(prices.cost("claude-opus-4-6", million), Some(5.0));
        for wrong in [format!("date = \"x\"\n[models]\nm = {}", row(-1.0)), "models = 3".to_owned()] {
            write(wrong.clone());
            assert!(PriceTable::with_user_file(&path).is_err(), "{wrong}");
        }
    }
}
