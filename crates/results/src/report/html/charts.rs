//! Charts as SVG. They use attributes only, because the page's policy allows no inline style.

use maud::{Markup, html};

use crate::report::figures;
use practicum_core::model::{ActivationRates, Estimate};

const WIDTH: f64 = 160.0;
const HORIZONTAL_MARGIN: f64 = 6.0;
const LINE_HEIGHT: f64 = 14.0;

fn x_position(share: f64) -> f64 {
    HORIZONTAL_MARGIN + share.clamp(0.0, 1.0) * (WIDTH - 2.0 * HORIZONTAL_MARGIN)
}

/// Draws rates between 0 and 1, one below the other, each as a dot on its interval, with the threshold.
pub fn rate_chart(rates: &[(Estimate, &str)], threshold: Option<f64>) -> Markup {
    let words: Vec<String> = rates.iter().map(|(rate, _)| figures::format_estimate(*rate)).collect();
    draw_rates(&words.join(" / "), rates, threshold)
}

fn draw_rates(title: &str, rates: &[(Estimate, &str)], threshold: Option<f64>) -> Markup {
    let height = LINE_HEIGHT * rates.len().max(1) as f64 + 4.0;
    html! {
        svg class="rate" viewBox={ "0 0 " (WIDTH) " " (height) } width=(WIDTH) height=(height) role="img" {
            title { (title) }
            @for (index, (rate, class)) in rates.iter().enumerate() {
                (draw_rate(*rate, class, 2.0 + LINE_HEIGHT * (index as f64 + 0.5)))
            }
            @if let Some(x) = threshold.map(x_position).map(one_decimal) {
                line class="threshold" x1=(x) x2=(x) y1="1" y2=(height - 1.0) {}
            }
        }
    }
}

fn draw_rate(rate: Estimate, class: &str, y: f64) -> Markup {
    html! {
        line class="track" x1=(x_position(0.0)) x2=(x_position(1.0)) y1=(y) y2=(y) {}
        @if let Some((low, high)) = rate.low.zip(rate.high).map(|(low, high)| (x_position(low), x_position(high))) {
            rect class={ "bar " (class) } x=(one_decimal(low)) y=(y - 3.0)
                width=(one_decimal((high - low).max(2.0))) height="6" rx="3" {}
        }
        @if let Some(value) = rate.value {
            circle class={ "dot " (class) } cx=(one_decimal(x_position(value))) cy=(y) r="4" {}
        }
    }
}

fn one_decimal(number: f64) -> String {
    format!("{number:.1}")
}

/// Draws a difference of rates between −1 and 1, around a line at 0.
pub fn difference_chart(of: Estimate) -> Markup {
    let onto = |difference: f64| (difference + 1.0) / 2.0;
    let shifted =
        Estimate { value: of.value.map(onto), low: of.low.map(onto), high: of.high.map(onto), n: of.n };
    let class = match (of.low, of.high) {
        (Some(low), _) if low > 0.0 => "pass",
        (_, Some(high)) if high < 0.0 => "fail",
        _ => "none",
    };
    draw_rates(&figures::format_difference(of), &[(shifted, class)], Some(0.5))
}

/// Draws expected against observed activation, each field coloured by its count.
pub fn confusion_chart(of: &ActivationRates) -> Markup {
    let most = [of.tp, of.fp, of.tn, of.fn_].into_iter().max().unwrap_or(0).max(1) as f64;
    let fields = [
        (of.tp, "TP", "pass", 88.0, 24.0),
        (of.fn_, "FN", "fail", 167.0, 24.0),
        (of.fp, "FP", "fail", 88.0, 90.0),
        (of.tn, "TN", "pass", 167.0, 90.0),
    ];
    let strength = |count: u64| if count == 0 { 0.04 } else { 0.12 + 0.33 * count as f64 / most };
    html! {
        svg class="confusion" viewBox="0 0 250 156" width="250" height="156" role="img" {
            title { "Confusion matrix" }
            text class="axis" x="125" y="16" { "activated" }
            text class="axis" x="204" y="16" { "not" }
            text class="axis side" x="78" y="56" { "expected" }
            text class="axis side" x="78" y="122" { "not expected" }
            @for (count, word, class, left, top) in fields {
                rect class={ "field " (class) } x=(left) y=(top) width="75" height="62" rx="6"
                    fill-opacity=(format!("{:.2}", strength(count))) {}
                text class="count" x=(left + 37.5) y=(top + 34.0) { (count) }
                text x=(left + 37.5) y=(top + 52.0) { (word) }
            }
        }
    }
}
