// Elements are made here and nowhere else, so that every text is only ever a text.

const SVG = "http://www.w3.org/2000/svg";

// Control characters and marks that turn the reading direction are shown, not obeyed.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

export function clean(text) {
  return String(text).replace(UNSEEN, (c) => (c === "\u001b" ? "\\e" : "\ufffd"));
}

export function text(value) {
  return document.createTextNode(clean(value));
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), value);
    } else if ((name === "href" || name === "src") && !/^(#|api\/)/.test(value)) {
      throw new Error("a link leads elsewhere");
    } else {
      element.setAttribute(name, value === true ? "" : clean(value));
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : text(child));
  }
  return element;
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Puts these, and nothing else, into an element; what is absent is left out.
export function put(element, ...children) {
  element.replaceChildren();
  return fill(element, {}, children);
}

// The address of a page, each part of it one thing whatever it is made of.
export function link(...parts) {
  return "#/" + parts.map(encodeURIComponent).join("/");
}
