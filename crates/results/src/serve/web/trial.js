// One trial: what was said and done beside what the checks found.

import { ask, download, frame, picture } from "./api.js";
import { h, link, put } from "./dom.js";
import { agreementView, condition, crumbs, mark, money, seconds, size } from "./parts.js";
import { transcript } from "./transcript.js";

function verdictName(verdict) {
  return typeof verdict === "string" ? verdict : "not_scored";
}

function checkView(check, first, label) {
  const verdict = verdictName(check.verdict);
  const quotes = check.evidence.map((quote, at) => h("blockquote", { "data-evidence": String(first + at) },
    h("button", { type: "button", class: "quote", title: "Show where it stands", onclick: () => jump(first + at) }, quote)));
  return h("article", { class: `check ${verdict}`, "data-item": true, tabindex: "0" },
    h("header", {}, mark(verdict), h("h3", {}, check.check), !check.required && h("span", { class: "faint small" }, check.criteria ? "criterion" : "optional"),
      check.score !== null && h("span", { class: "number" }, `${check.score} (${check.scale ?? "score"})`)),
    h("p", {}, check.rationale), quotes,
    (check.flags ?? []).map((flag) => h("p", { class: "flag" }, flag)),
    label && h("p", { class: "label faint small" }, `A person said: ${label.passed ? "pass" : "fail"}${label.blind ? "" : ", after seeing the verdict"}`));
}

function jump(number) {
  const spot = document.querySelector(`mark[data-quote="${number}"]`);
  if (!spot) return;
  spot.closest("details")?.setAttribute("open", "");
  spot.scrollIntoView({ block: "center" });
  document.querySelectorAll("mark.now").forEach((other) => other.classList.remove("now"));
  spot.classList.add("now");
}

const IMAGES = /\.(png|jpe?g)$/i;
const PAGED = /\.(pdf|pptx?|odp|docx?|odt|xlsx?|ods)$/i;
const PAGES = /\.html?$/i;

// A file as people see it: an image, pages, or a page in a frame that can do nothing. Nothing for other files.
async function artefact(run, trial, path) {
  const shown = (page, words) => h("img", { class: "artefact", src: picture(run, trial, path, page), alt: words, loading: "lazy" });
  if (IMAGES.test(path)) return shown(0, path);
  if (PAGES.test(path)) return h("iframe", { class: "artefact", sandbox: "", src: frame(run, trial, path), title: path, loading: "lazy" });
  if (!PAGED.test(path)) return null;
  try {
    const { count } = await ask(["run", run, "trial", trial, "pictures"], { path });
    return Array.from({ length: count }, (_, at) => shown(at, `${path}, page ${at + 1} of ${count}`));
  } catch (error) {
    return h("p", { class: "problem" }, error.message);
  }
}

export function fileView(run, trial, { path, bytes, open }) {
  const body = h("div", {});
  const show = h("details", { class: "file", "data-item": true, tabindex: "0" },
    h("summary", { "data-open": true, tabindex: "-1" }, h("span", { class: "tool" }, path), h("span", { class: "number faint" }, size(bytes))), body);
  show.addEventListener("toggle", async () => {
    if (!show.open || body.childElementCount) return;
    const text = h("pre", { class: "text", dir: "auto" });
    const more = h("button", { type: "button", class: "more" }, "Show more");
    const save = h("a", { class: "button", href: download(run, trial, path), download: path.split("/").pop() }, "Save");
    let from = 0;
    async function next() {
      try {
        const piece = await ask(["run", run, "trial", trial, "file"], { path, from });
        text.append(h("span", {}, piece.text ?? "This is not text."));
        from = piece.next;
        more.hidden = piece.next === null;
      } catch (error) {
        text.append(h("span", { class: "problem" }, error.message));
        more.hidden = true;
      }
    }
    more.addEventListener("click", next);
    const seen = h("div", { class: "artefacts" });
    put(body, seen, text, h("p", {}, more, save));
    const [pictures] = await Promise.all([artefact(run, trial, path), next()]);
    put(seen, pictures);
  });
  show.open = open === true;
  return show;
}

function fact(name, value) {
  return value === null || value === undefined || value === "" ? null : [h("dt", {}, name), h("dd", {}, value)];
}

export async function trialPage(page, [run, id]) {
  const trial = await ask(["run", run, "trial", id]);
  const { record } = trial;
  const labels = new Map(trial.labels.map((label) => [label.check, label]));
  const quotes = [];
  const agreed = h("div", { class: "faint small" });
  const checks = record.checks.map((check) => {
    const first = quotes.length;
    // Only a judge quotes; what code found is its own words.
    quotes.push(...check.evidence.map((quote) => (check.scale === undefined ? "" : quote)));
    return checkView(check, first, labels.get(check.check));
  });
  const look = { quotes, found: new Set() };
  look.changed = () => {
    for (const quote of document.querySelectorAll("[data-evidence]")) {
      quote.classList.toggle("found", look.found.has(Number(quote.dataset.evidence)));
    }
  };
  const told = transcript({ run, id }, look);
  const usage = record.usage;
  const files = trial.stderr ? [...trial.files, { path: "stderr.txt", bytes: trial.stderr, open: record.ended !== "finished" }] : trial.files;
  const facts = h("dl", { class: "facts" },
    fact("Ended", [trial.ended_in_words, record.ended_because ? `: ${record.ended_because}` : ""]),
    fact("Skill fired", record.fired === null ? null : record.fired ? "yes" : "no"),
    fact("Model", record.model), fact("Time", seconds(record.seconds)), fact("Cost", record.cost_usd === null ? "not known" : money(record.cost_usd)),
    fact("Tokens", `${usage.input} in, ${usage.output} out`),
    fact("Taken over from", record.reused_from && h("a", { href: link("run", record.reused_from) }, record.reused_from)));
  put(page,
    crumbs(["Runs", "#/"], [run, link("run", run)], [record.case, link("run", run, "case", record.suite, record.case)], [`attempt ${record.attempt}`]),
    h("h1", {}, h("span", { class: "cell" }, mark(trial.verdict), record.case)),
    h("p", { class: "faint" }, condition(record.condition), ` · ${record.suite} · attempt ${record.attempt}`),
    trial.why && h("p", { class: "notice" }, `Not scored: ${trial.why}${record.ended_because ? `: ${record.ended_because}` : ""}`),
    (record.notes ?? []).map((note) => h("p", { class: "faint small" }, note)),
    h("div", { class: "two" },
      h("section", { class: "main" }, h("h2", {}, "Transcript"), told.whole),
      h("aside", {},
        h("section", {}, h("h2", {}, "Checks"), checks.length ? checks : h("p", { class: "empty" }, "Nothing was checked."), agreed),
        h("section", {}, h("h2", {}, "Files"), files.length ? files.map((file) => fileView(run, id, file)) : h("p", { class: "empty" }, "It left no files.")),
        h("section", {}, h("h2", {}, "Facts"), facts))));
  ask(["run", run, "agreement"]).then((told) => put(agreed, agreementView(told))).catch(() => {});
  await told.ready;
}
