//! Charts as SVG. They use attributes only, because the page's policy allows no inline style.

use crate::report::escaping::escape_html;
use crate::report::figures;
use practicum_core::model::{ActivationRates, Estimate};

const WIDTH: f64 = 160.0;
const HORIZONTAL_MARGIN: f64 = 6.0;
const LINE_HEIGHT: f64 = 14.0;

fn x_position(share: f64) -> f64 {
    HORIZONTAL_MARGIN + share.clamp(0.0, 1.0) * (WIDTH - 2.0 * HORIZONTAL_MARGIN)
}

/// Draws rates between 0 and 1, one below the other, each as a dot on its interval, with the threshold.
pub fn rate_chart(rates: &[(Estimate, &str)], threshold: Option<f64>) -> String {
    let height = LINE_HEIGHT * rates.len().max(1) as f64 + 4.0;
    let words: Vec<String> = rates.iter().map(|(rate, _)| figures::format_estimate(*rate)).collect();
    let mut out = format!(
        "<svg class=\"rate\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\"><title>{}</title>",
        escape_html(&words.join(" / "))
    );
    for (index, (rate, class)) in rates.iter().enumerate() {
        let y = 2.0 + LINE_HEIGHT * (index as f64 + 0.5);
        out.push_str(&format!(
            "<line class=\"track\" x1=\"{}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"/>",
            x_position(0.0),
            x_position(1.0)
        ));
        if let Some((low, high)) = rate.low.zip(rate.high) {
            let width = (x_position(high) - x_position(low)).max(2.0);
            out.push_str(&format!(
                "<rect class=\"bar {class}\" x=\"{:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"6\" rx=\"3\"/>",
                x_position(low),
                y - 3.0
            ));
        }
        if let Some(value) = rate.value {
            out.push_str(&format!(
                "<circle class=\"dot {class}\" cx=\"{:.1}\" cy=\"{y}\" r=\"4\"/>",
                x_position(value)
            ));
        }
    }
    if let Some(threshold) = threshold {
        let at = x_position(threshold);
        out.push_str(&format!(
            "<line class=\"threshold\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"1\" y2=\"{}\"/>",
            height - 1.0
        ));
    }
    out.push_str("</svg>");
    out
}

/// Draws a difference of rates between −1 and 1, around a line at 0.
pub fn difference_chart(of: Estimate) -> String {
    let onto = |difference: f64| (difference + 1.0) / 2.0;
    let shifted =
        Estimate { value: of.value.map(onto), low: of.low.map(onto), high: of.high.map(onto), n: of.n };
    let class = match (of.low, of.high) {
        (Some(low), _) if low > 0.0 => "pass",
        (_, Some(high)) if high < 0.0 => "fail",
        _ => "none",
    };
    // The title of the chart would show the shifted figure.
    let drawing = rate_chart(&[(shifted, class)], Some(0.5));
    let told = format!("<title>{}</title>", escape_html(&figures::format_estimate(shifted)));
    drawing.replace(&told, &format!("<title>{}</title>", escape_html(&figures::format_difference(of))))
}

/// Draws expected against observed activation, each field coloured by its count.
pub fn confusion_chart(of: &ActivationRates) -> String {
    let most = [of.tp, of.fp, of.tn, of.fn_].into_iter().max().unwrap_or(0).max(1) as f64;
    let mut out = String::from(
        "<svg class=\"confusion\" viewBox=\"0 0 250 156\" width=\"250\" height=\"156\" role=\"img\"><title>Confusion matrix</title>\
         <text class=\"axis\" x=\"125\" y=\"16\">fired</text><text class=\"axis\" x=\"204\" y=\"16\">did not</text>\
         <text class=\"axis side\" x=\"78\" y=\"56\">should fire</text><text class=\"axis side\" x=\"78\" y=\"122\">should not</text>",
    );
    for (count, word, class, column, row) in [
        (of.tp, "TP", "pass", 0.0, 0.0),
        (of.fn_, "FN", "fail", 1.0, 0.0),
        (of.fp, "FP", "fail", 0.0, 1.0),
        (of.tn, "TN", "pass", 1.0, 1.0),
    ] {
        let (left, top) = (88.0 + column * 79.0, 24.0 + row * 66.0);
        let strength = if count == 0 { 0.04 } else { 0.12 + 0.33 * count as f64 / most };
        out.push_str(&format!(
            "<rect class=\"field {class}\" x=\"{left}\" y=\"{top}\" width=\"75\" height=\"62\" rx=\"6\" fill-opacity=\"{strength:.2}\"/>\
             <text class=\"count\" x=\"{}\" y=\"{}\">{count}</text><text x=\"{}\" y=\"{}\">{word}</text>",
            left + 37.5,
            top + 34.0,
            left + 37.5,
            top + 52.0
        ));
    }
    out.push_str("</svg>");
    out
}
