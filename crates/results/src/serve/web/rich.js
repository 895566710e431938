// An agent's Markdown, which the program has read into a tree of texts and elements.

import { h } from "./dom.js";

// The program makes no others. Whatever came in another way is a text.
const ELEMENTS = new Set(["p", "h3", "h4", "h5", "blockquote", "pre", "code", "ul", "ol", "li", "em", "strong", "del", "table", "thead", "tbody", "tr", "th", "td", "hr"]);

function node(part) {
  if (typeof part === "string") return part;
  const parts = (part.parts ?? []).map(node);
  return ELEMENTS.has(part.tag) ? h(part.tag, { dir: part.tag === "p" ? "auto" : undefined }, parts) : parts;
}

// The formatted text, and a button that shows it as it was written.
export function formatted(rich, written) {
  const shown = h("div", { class: "rich" }, rich.map(node));
  const button = h("button", { type: "button", class: "as-written small" }, "As written");
  written.hidden = true;
  button.addEventListener("click", () => {
    written.hidden = !written.hidden;
    shown.hidden = !written.hidden;
    button.textContent = written.hidden ? "As written" : "Formatted";
  });
  return [button, shown, written];
}
