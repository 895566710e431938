//! The parts of a skill's Markdown that lint rules need.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use practicum_core::model::Span;

/// The parts of a body's Markdown that rules need. All spans point into the whole file.
#[derive(Debug, Clone, Default)]
pub(super) struct SkillMarkdown {
    pub headings: Vec<Span>,
    pub links: Vec<MarkdownLink>,
    pub code_spans: Vec<Span>,
    pub code_blocks: Vec<CodeBlock>,
    pub tables: Vec<MarkdownTable>,
    /// Running text, without code and markup.
    pub prose: Vec<Span>,
}

#[derive(Debug, Clone)]
pub(super) struct MarkdownLink {
    pub target: String,
    pub span: Span,
    pub is_image: bool,
}

#[derive(Debug, Clone)]
pub(super) struct CodeBlock {
    /// The first word after the fence, in lowercase; empty if there is none.
    pub language: String,
    pub span: Span,
    pub lines: usize,
}

#[derive(Debug, Clone)]
pub(super) struct MarkdownTable {
    pub span: Span,
    pub rows: usize,
}

impl SkillMarkdown {
    /// Parses `text` from `start` on.
    pub fn parse(text: &str, start: usize) -> Self {
        let mut page = Self::default();
        let mut in_code = false;
        let body = &text[start..];
        for (event, range) in Parser::new_ext(body, Options::ENABLE_TABLES).into_offset_iter() {
            let span = Span::new(start + range.start, start + range.end);
            match event {
                Event::Start(Tag::Heading { .. }) => page.headings.push(span),
                Event::Start(Tag::Link { dest_url, .. }) => page.add_link(&dest_url, span, false),
                Event::Start(Tag::Image { dest_url, .. }) => page.add_link(&dest_url, span, true),
                Event::Start(Tag::CodeBlock(kind)) => {
                    in_code = true;
                    let language = match &kind {
                        CodeBlockKind::Fenced(info) => {
                            info.split_whitespace().next().unwrap_or_default().to_lowercase()
                        }
                        CodeBlockKind::Indented => String::new(),
                    };
                    page.code_blocks.push(CodeBlock { language, span, lines: 0 });
                }
                Event::End(TagEnd::CodeBlock) => in_code = false,
                Event::Start(Tag::Table(_)) => page.tables.push(MarkdownTable { span, rows: 0 }),
                Event::Start(Tag::TableRow) => {
                    if let Some(table) = page.tables.last_mut() {
                        table.rows += 1;
                    }
                }
                Event::Code(_) => page.code_spans.push(span),
                Event::Text(text) if in_code => {
                    if let Some(block) = page.code_blocks.last_mut() {
                        block.lines += text.bytes().filter(|&byte| byte == b'\n').count();
                    }
                }
                Event::Text(_) => page.prose.push(span),
                _ => {}
            }
        }
        page
    }

    fn add_link(&mut self, target: &str, span: Span, image: bool) {
        self.links.push(MarkdownLink { target: target.to_owned(), span, is_image: image });
    }
}
