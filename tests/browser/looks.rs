//! That every page can be read: on light and dark screens, and on paper.

use serde_json::json;

use super::driver::{Browser, there_is_a_browser};
use super::{Viewer, harbour, runs};

/// The contrast of every text with what is behind it; the least of them, and whose it is.
const FAINTEST: &str = r#"
const channels = (colour) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const light = (rgb) => {
  const [r, g, b] = rgb.map((value) => { const part = value / 255; return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let each = element; each; each = each.parentElement) {
    const [r, g, b, a] = channels(getComputedStyle(each).backgroundColor);
    if (a === 255) return [r, g, b];
  }
  return [255, 255, 255];
};
let least = [99, ""];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const element = walk.currentNode.parentElement;
  // What is the same on both sides is meant to step back.
  if (!walk.currentNode.data.trim() || !element.offsetParent || element.closest(".same, option, svg")) continue;
  const [ink, paper] = [light(channels(getComputedStyle(element).color).slice(0, 3)), light(behind(element))];
  const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  if (contrast < least[0]) least = [contrast, `${element.className} ${walk.currentNode.data}`];
}
return least;
"#;

fn pages(browser: &Browser, run: &str) -> Vec<(&'static str, String)> {
    browser.go(&format!("#/search?run={run}"));
    let trials = browser.script("return [...document.querySelectorAll('.row.trial [data-open]')].map((each) => each.hash.split('/').at(-1))", &[]);
    let trial = |at: usize| trials[at].as_str().expect("a trial").to_owned();
    vec![
        ("runs", "#/".to_owned()),
        ("run", format!("#/run/{run}")),
        ("case", format!("#/run/{run}/case/harbour/tide-table")),
        ("trial", format!("#/run/{run}/trial/{}", trial(0))),
        ("compare", format!("#/compare/{run}/{}/{run}/{}", trial(0), trial(2))),
        ("search", format!("#/search?run={run}")),
        ("trends", "#/trends".to_owned()),
    ]
}

#[test]
fn every_text_stands_out_in_light_and_dark() {
    if !there_is_a_browser() {
        return;
    }
    let project = harbour();
    let viewer = Viewer::start(&project);
    let browser = Browser::start(1280, 900, false);
    browser.open(&viewer.url);
    browser.settled();
    let run = runs(&project).pop().expect("a run");
    let pages = pages(&browser, &run);
    let mut backs = Vec::new();
    for scheme in ["light", "dark"] {
        browser.emulate("screen", scheme);
        backs.push(browser.script("return getComputedStyle(document.body).backgroundColor", &[]));
        for (name, page) in &pages {
            browser.go("#/search");
            browser.go(page);
            let faintest = browser.script(FAINTEST, &[]);
            assert!(faintest[0].as_f64() >= Some(4.5), "{scheme} {name}: {faintest}");
        }
    }
    assert_ne!(backs[0], backs[1], "the page follows the scheme of the machine");
}

/// Printed from a dark screen, a page is black on white, as wide as paper, and without what only a
/// screen can use.
#[test]
fn every_page_can_be_printed() {
    if !there_is_a_browser() {
        return;
    }
    let project = harbour();
    let viewer = Viewer::start(&project);
    let browser = Browser::start(720, 1000, false);
    browser.open(&viewer.url);
    browser.settled();
    let run = runs(&project).pop().expect("a run");
    for (name, page) in pages(&browser, &run) {
        browser.emulate("screen", "dark");
        browser.go("#/search");
        browser.go(&page);
        browser.emulate("print", "dark");
        let seen = browser.script(
            "const seen = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.offsetParent !== null).length;
             const style = getComputedStyle(document.body);
             const wide = [...document.querySelectorAll('main *')].filter((each) => each.getBoundingClientRect().right > innerWidth + 1);
             return { ink: style.color, back: style.backgroundColor, useless: seen('.top, select, input, .label button, .more'),
                      wide: wide.map((each) => each.className).slice(0, 3) }",
            &[],
        );
        let expected = json!({"ink": "rgb(0, 0, 0)", "back": "rgb(255, 255, 255)", "useless": 0, "wide": []});
        assert_eq!(seen, expected, "{name}");
    }
}

/// The report of a run is opened from a mail, on a train: it has everything in it and asks nobody.
#[test]
fn the_html_report_opens_offline_and_asks_for_nothing() {
    if !there_is_a_browser() {
        return;
    }
    let project = harbour();
    project.run(&["report", "latest", "--format", "html", "-o", "report.html"]).exits(0);
    let browser = Browser::start(1000, 900, false);
    browser.go_offline();
    browser.open(&format!("file://{}", project.path().join("report.html").display()));
    assert!(browser.text("h1").contains("harbour"));
    let asked =
        browser.script("return performance.getEntriesByType('resource').map((each) => each.name)", &[]);
    assert_eq!(asked, json!([]), "nothing else is loaded");
    // A failed case is opened, then what was said in it.
    let open = "let each = document.querySelector('[data-verdict=fail]'); each.querySelectorAll('details').forEach((inner) => { inner.open = true; });
                for (; each; each = each.parentElement) if (each.tagName === 'DETAILS') each.open = true;
                return document.querySelector('[data-verdict=fail] .step').offsetParent !== null";
    browser.wait(open);
    assert!(browser.text("[data-verdict=fail]").contains("Sail out at once!"));
    let wider = browser
        .script("return document.documentElement.scrollWidth - document.documentElement.clientWidth", &[]);
    assert!(wider.as_i64() <= Some(0), "it is {wider} pixels too wide");
    browser.picture("html");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
