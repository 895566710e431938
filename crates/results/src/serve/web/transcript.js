// What was said and done, in order. Tool calls are folded.

import { ask } from "./api.js";
import { clean, h } from "./dom.js";
import { size } from "./parts.js";
import { formatted } from "./rich.js";

// A text with the parts that someone quoted marked in it. Gives how often each was found.
export function quoted(text, quotes, found) {
  const whole = clean(text);
  const spots = [];
  quotes.forEach((quote, number) => {
    const wanted = clean(quote).trim();
    if (!wanted) return;
    for (let at = whole.indexOf(wanted), guard = 0; at >= 0 && guard < 50; at = whole.indexOf(wanted, at + wanted.length), guard += 1) {
      spots.push([at, at + wanted.length, number]);
    }
  });
  spots.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  const parts = [];
  let at = 0;
  for (const [from, to, number] of spots) {
    if (from < at) continue;
    found?.add(number);
    parts.push(whole.slice(at, from), h("mark", { "data-quote": String(number) }, whole.slice(from, to)));
    at = to;
  }
  parts.push(whole.slice(at));
  return parts;
}

// A text of which only the beginning is here; the rest comes piece by piece, when it is wanted.
function piece(trial, step, part, { text, whole, next }, look) {
  const body = h("pre", { class: "text", dir: "auto" }, quoted(text, look.quotes, look.found));
  if (next === null) return body;
  const left = (from) => `Show more (${size(whole - from)} left)`;
  const more = h("button", { type: "button", class: "more" }, left(next));
  more.addEventListener("click", async () => {
    more.disabled = true;
    try {
      const rest = await ask(["run", trial.run, "trial", trial.id, "step"], { step, part, from: next });
      body.append(...quoted(rest.text, look.quotes, look.found).map((each) => (each instanceof Node ? each : document.createTextNode(each))));
      next = rest.next;
      more.disabled = false;
      if (next === null) more.remove();
      else more.textContent = left(next);
    } catch (error) {
      more.textContent = clean(error.message);
    }
  });
  return [body, more];
}

// What was said, formatted, unless a judge quoted from it: a quote is marked in the text as it was written.
function said(trial, step, number, look) {
  const written = piece(trial, number, "text", step.text, look);
  const isQuoted = !(written instanceof Element) || written.querySelector("mark[data-quote]");
  return step.rich && !isQuoted ? formatted(step.rich, written) : written;
}

const WHO = { user: "User", text: "Agent" };

// Where a trial's room was is another place each time, and says nothing.
const ROOM = /\/\S*?\/practicum-\d+-\d+-[0-9a-f]+\/[0-9a-f]+\//g;

export function placeless(text) {
  return text.replace(ROOM, "…/");
}

export function stepView(trial, step, number, look) {
  if (step.kind !== "tool") {
    const head = h("p", { class: "who" }, WHO[step.kind], h("span", { class: "number faint" }, `${number + 1}`));
    return h("section", { class: `step by-${step.kind}`, "data-item": true, tabindex: "0", "data-step": String(number) }, head, said(trial, step, number, look));
  }
  const outcome = step.ok === true ? "ok" : step.ok === false ? "failed" : "no result";
  const summary = h("summary", { "data-open": true, tabindex: "-1" },
    h("span", { class: "tool" }, step.name), h("span", { class: "gist" }, placeless(step.gist)),
    h("span", { class: `outcome ${step.ok === false ? "bad" : ""}` }, outcome), h("span", { class: "number faint" }, `${number + 1}`));
  const folded = h("details", { class: "step call", "data-item": true, tabindex: "0", "data-step": String(number) }, summary,
    h("h4", {}, "Asked"), piece(trial, number, "input", step.input, look),
    step.result ? [h("h4", {}, "Result"), piece(trial, number, "result", step.result, look)] : h("p", { class: "faint" }, "There is no result."));
  // What a judge quoted is not to be looked for.
  if (folded.querySelector("mark[data-quote]")) folded.open = true;
  return folded;
}

// The whole transcript, a page at a time.
export function transcript(trial, look) {
  const list = h("div", { class: "steps" });
  const more = h("button", { type: "button", class: "more", "data-more": true, hidden: true }, "Show more steps");
  let from = 0;
  async function next() {
    const page = await ask(["run", trial.run, "trial", trial.id, "steps"], { from });
    list.append(...page.steps.map((step, at) => stepView(trial, step, from + at, look)));
    if (!page.total) list.append(h("p", { class: "empty" }, "Nothing was said."));
    more.hidden = page.next === null;
    from = page.next;
    look.changed?.();
  }
  const safely = () => next().catch((error) => list.append(h("p", { class: "problem" }, error.message)));
  more.addEventListener("click", safely);
  return { whole: h("div", {}, list, more), ready: safely() };
}
