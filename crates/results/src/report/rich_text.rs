//! Reads the Markdown of an agent into a tree of elements, for pages that show it formatted.
//!
//! Every text stays a text: raw HTML is shown as it was written, links and images are shown with their addresses and lead
//! nowhere. The names of elements are ours, and never those of the text.

use maud::{Markup, PreEscaped, Render, html};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use serde::Serialize;

/// The deepest nesting that is shown. What lies deeper is shown on this level.
const DEEPEST: usize = 24;

/// A part of a formatted text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum RichNode {
    /// A text.
    Text(String),
    /// An element with its parts.
    Element {
        /// The name of the element in HTML.
        tag: &'static str,
        parts: Vec<RichNode>,
    },
}

/// Reads Markdown. Gives `None` if it says no more than the plain text does.
pub fn read_rich_text(text: &str) -> Option<Vec<RichNode>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut builder = TreeBuilder::default();
    for event in Parser::new_ext(text, options) {
        builder.add(event);
    }
    let nodes = builder.finish();
    let is_plain = |node: &RichNode| match node {
        RichNode::Text(_) => true,
        RichNode::Element { tag, parts } => {
            *tag == "p" && parts.iter().all(|part| matches!(part, RichNode::Text(_)))
        }
    };
    (!nodes.iter().all(is_plain)).then_some(nodes)
}

/// The elements that are open, each with what it has so far. An element without a name adds its parts to the one
/// around it.
#[derive(Default)]
struct TreeBuilder {
    open: Vec<(Option<&'static str>, Vec<RichNode>)>,
    done: Vec<RichNode>,
    /// The addresses of links and images that are open.
    addresses: Vec<String>,
    in_head: bool,
}

impl TreeBuilder {
    fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(end) => self.end(end),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.add_text(&text),
            Event::Code(text) => {
                self.push(RichNode::Element { tag: "code", parts: vec![RichNode::Text(text.into_string())] });
            }
            Event::SoftBreak | Event::HardBreak => self.add_text("\n"),
            Event::Rule => self.push(RichNode::Element { tag: "hr", parts: Vec::new() }),
            Event::TaskListMarker(is_done) => self.add_text(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let name = match tag {
            Tag::Paragraph => Some("p"),
            Tag::Heading { level, .. } => Some(match level {
                HeadingLevel::H1 => "h3",
                HeadingLevel::H2 => "h4",
                HeadingLevel::H3 | HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => "h5",
            }),
            Tag::BlockQuote(_) => Some("blockquote"),
            Tag::CodeBlock(CodeBlockKind::Indented | CodeBlockKind::Fenced(_)) => Some("pre"),
            Tag::List(None) => Some("ul"),
            Tag::List(Some(_)) => Some("ol"),
            Tag::Item => Some("li"),
            Tag::Emphasis => Some("em"),
            Tag::Strong => Some("strong"),
            Tag::Strikethrough => Some("del"),
            Tag::Table(columns) => {
                let _: Vec<Alignment> = columns;
                Some("table")
            }
            Tag::TableHead => {
                self.in_head = true;
                self.open_element(Some("thead"));
                Some("tr")
            }
            Tag::TableRow => Some("tr"),
            Tag::TableCell => Some(if self.in_head { "th" } else { "td" }),
            Tag::Link { dest_url, .. } => {
                self.addresses.push(dest_url.into_string());
                None
            }
            Tag::Image { dest_url, .. } => {
                self.addresses.push(dest_url.into_string());
                self.add_text("image: ");
                None
            }
            _ => None,
        };
        self.open_element(name);
    }

    fn end(&mut self, end: TagEnd) {
        if matches!(end, TagEnd::Link | TagEnd::Image)
            && let Some(address) = self.addresses.pop()
        {
            // An address that is its own text is not said twice.
            let shown = self.open.last().map(|(_, parts)| parts.as_slice()).unwrap_or_default();
            if shown != [RichNode::Text(address.clone())] && !address.is_empty() {
                self.add_text(&format!(" ({address})"));
            }
        }
        self.close_element();
        if matches!(end, TagEnd::TableHead) {
            self.in_head = false;
            self.close_element();
        }
    }

    fn open_element(&mut self, name: Option<&'static str>) {
        let is_too_deep = self.open.iter().filter(|(name, _)| name.is_some()).count() >= DEEPEST;
        self.open.push((name.filter(|_| !is_too_deep), Vec::new()));
    }

    fn close_element(&mut self) {
        match self.open.pop() {
            Some((Some(tag), parts)) => self.push(RichNode::Element { tag, parts }),
            Some((None, parts)) => parts.into_iter().for_each(|part| self.push(part)),
            None => {}
        }
    }

    fn add_text(&mut self, text: &str) {
        self.push(RichNode::Text(text.to_owned()));
    }

    fn push(&mut self, node: RichNode) {
        let parts = self.open.last_mut().map_or(&mut self.done, |(_, parts)| parts);
        match (parts.last_mut(), node) {
            (Some(RichNode::Text(before)), RichNode::Text(text)) => before.push_str(&text),
            (_, node) => parts.push(node),
        }
    }

    fn finish(mut self) -> Vec<RichNode> {
        while !self.open.is_empty() {
            self.close_element();
        }
        self.done
    }
}

impl Render for RichNode {
    fn render(&self) -> Markup {
        match self {
            RichNode::Text(text) => html! { (text) },
            RichNode::Element { tag: "hr", .. } => html! { hr; },
            // The name is one of ours, and not of the text.
            RichNode::Element { tag, parts } => html! {
                (PreEscaped(format!("<{tag}>"))) @for part in parts { (part) } (PreEscaped(format!("</{tag}>")))
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The elements of which a tree is made.
    const ELEMENTS: [&str; 20] = [
        "p",
        "h3",
        "h4",
        "h5",
        "blockquote",
        "pre",
        "code",
        "ul",
        "ol",
        "li",
        "em",
        "strong",
        "del",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "hr",
    ];

    fn shown(text: &str) -> String {
        let nodes = read_rich_text(text);
        nodes.map_or("plain".to_owned(), |nodes| html! { @for node in &nodes { (node) } }.into_string())
    }

    #[test]
    fn rows() {
        for (text, expected) in [
            ("Just words.", "plain"),
            ("Two\n\nparagraphs.", "plain"),
            ("", "plain"),
            ("# Title\n\ntext", "<h3>Title</h3><p>text</p>"),
            ("- a\n- **b**", "<ul><li>a</li><li><strong>b</strong></li></ul>"),
            ("1. a\n2. `b`", "<ol><li>a</li><li><code>b</code></li></ol>"),
            ("```rust\nfn a() {}\n```", "<pre>fn a() {}\n</pre>"),
            ("> said", "<blockquote><p>said</p></blockquote>"),
            (
                "|a|b|\n|-|-|\n|1|2|",
                "<table><thead><tr><th>a</th><th>b</th></tr></thead><tr><td>1</td><td>2</td></tr></table>",
            ),
            ("*a* [b](https://c.example)", "<p><em>a</em> b (https://c.example)</p>"),
            ("*a* <https://c.example>", "<p><em>a</em> https://c.example</p>"),
            ("*a* ![b](x.png)", "<p><em>a</em> image: b (x.png)</p>"),
            // What an attacker would write.
            (
                "*a* [b](javascript:alert(1)) <script>alert(1)</script>",
                "<p><em>a</em> b (javascript:alert(1)) &lt;script&gt;alert(1)&lt;/script&gt;</p>",
            ),
            ("---\n<img src=x onerror=alert(1)>", "<hr>&lt;img src=x onerror=alert(1)&gt;"),
            ("**<b onclick=x>**", "<p><strong>&lt;b onclick=x&gt;</strong></p>"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn deep_nesting_ends_somewhere() {
        let depth = |text: &str| shown(text).matches("<blockquote>").count();
        assert_eq!(depth(&format!("{} x", "> ".repeat(10_000))), DEEPEST);
        let list: String = (0..500).map(|level| format!("{}- x\n", " ".repeat(2 * level))).collect();
        assert!(shown(&list).len() < 100_000);
    }

    fn tags(nodes: &[RichNode]) -> Vec<&'static str> {
        let of = |node: &RichNode| match node {
            RichNode::Text(_) => Vec::new(),
            RichNode::Element { tag, parts } => [vec![*tag], tags(parts)].concat(),
        };
        nodes.iter().flat_map(of).collect()
    }

    proptest! {
        #[test]
        fn only_known_elements_are_made(text in "[-#*_>|`~<a-c0-9()\\[\\]!:/ \n\\\\&;]{0,200}") {
            for tag in tags(&read_rich_text(&text).unwrap_or_default()) {
                prop_assert!(ELEMENTS.contains(&tag), "{}", tag);
            }
            // What is not one of our elements is escaped.
            let page = shown(&text);
            for part in page.split('<').skip(1) {
                let name = part.trim_start_matches('/').split('>').next().unwrap_or_default();
                prop_assert!(ELEMENTS.contains(&name), "{}", page);
            }
        }
    }
}
