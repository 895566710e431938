// What several pages show the same way.

import { h, link } from "./dom.js";

const VERDICTS = {
  pass: ["✓", "passed"],
  fail: ["✗", "failed"],
  not_scored: ["?", "not scored"],
  running: ["…", "running"],
};

// Colour, sign and shape each say it, for those who cannot see one of them.
export function mark(verdict) {
  const [sign, word] = VERDICTS[verdict] ?? VERDICTS.not_scored;
  return h("span", { class: `mark ${verdict}`, role: "img", "aria-label": word, title: word }, sign);
}

export function verdictOf(passed) {
  return passed === true ? "pass" : passed === false ? "fail" : "not_scored";
}

// The mark of a run that stands like this.
export function stateMark(state) {
  return { passed: "pass", failed: "fail", running: "running" }[state] ?? "not_scored";
}

// The verdict of a case: what its rate says where that decides, else any failure is one, else any missing answer.
export function together({ passed, failed, not_scored: unscored, passes }) {
  if (typeof passes === "boolean") return verdictOf(passes);
  return failed > 0 ? "fail" : unscored > 0 || passed === 0 ? "not_scored" : "pass";
}

export function bar({ passed, failed, not_scored: unscored }, planned) {
  const whole = Math.max(planned ?? 0, passed + failed + unscored, 1);
  const words = `${passed} passed, ${failed} failed, ${unscored} not scored`;
  const part = (name, count) => {
    const piece = h("span", { class: name });
    piece.style.setProperty("flex-grow", String(count));
    return count > 0 && piece;
  };
  const rest = part("rest", whole - passed - failed - unscored);
  const parts = [part("pass", passed), part("fail", failed), part("not_scored", unscored), rest];
  return h("span", { class: "bar", role: "img", "aria-label": words, title: words }, parts);
}

// How many of all passed, as every report says it.
export function counts({ passed, failed, not_scored: unscored }) {
  const words = `${passed} passed, ${failed} failed, ${unscored} not scored`;
  return h("span", { class: "counts", title: words }, `${passed}/${passed + failed + unscored}`);
}

export function unscoredWords({ not_scored: unscored }) {
  return unscored > 0 && h("span", { class: "unscored small" }, `${unscored} not scored`);
}

// What is not fresh about a run: how many of its trials were reused, and what answered in place of a model.
export function origin({ reused, scripted, replayed }) {
  return [reused > 0 && `${reused} reused`, scripted && "scripted", replayed && "replayed"].filter(Boolean).join(", ") || null;
}

export function money(value) {
  if (value === null || value === undefined) return "–";
  return value >= 1 ? `$${value.toFixed(2)}` : `$${value.toFixed(4).replace(/0{1,2}$/, "")}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 90) return `${value.toFixed(value < 10 ? 1 : 0)} s`;
  const minutes = Math.round(value / 60);
  return minutes < 90 ? `${minutes} min` : `${(minutes / 60).toFixed(1)} h`;
}

export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1048576).toFixed(1)} MB`;
}

export function share(value) {
  return value === null || value === undefined ? "–" : value.toFixed(2);
}

export function interval({ low, high }) {
  return low === null || low === undefined ? "" : ` [${share(low)}, ${share(high)}]`;
}

// How far people agree with the judge, beyond chance where that can be told.
export function agreementView({ labels, agree, kappa }) {
  if (!labels) return null;
  const beyond = kappa ? [`, κ ${share(kappa.value)}`, h("span", { class: "faint" }, interval(kappa))] : ", too alike for κ";
  return h("p", { id: "agreement" }, `People agree with the judge on ${agree} of ${labels} ${labels === 1 ? "check" : "checks"}`, beyond);
}

export function when(started) {
  const date = new Date(started);
  if (Number.isNaN(date.getTime())) return "";
  const options = { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" };
  return h("time", { datetime: started, title: started }, date.toLocaleString(undefined, options));
}

export function crumbs(...parts) {
  const steps = parts.map(([words, href], at) => {
    const last = at === parts.length - 1;
    if (last) return h("span", { "aria-current": "page" }, words);
    return h("a", { href, "data-up": at === parts.length - 2 }, words);
  });
  return h("p", { class: "crumbs" }, steps);
}

export function condition({ agent, model, arm, mode }) {
  const words = [agent, model, mode === "baseline" ? null : mode].filter(Boolean).join(" · ");
  return [words, " ", h("span", { class: `arm ${arm}` }, arm === "without" ? "without skill" : arm === "with" ? "with skill" : arm)];
}

// A list that grows by pages: the next is fetched when its end comes near, and never all of them.
export function pages(fetchPage, row, empty, list = h("div", { class: "rows" })) {
  const more = h("button", { type: "button", class: "more", "data-more": true, hidden: true }, "Show more");
  const whole = list.tagName === "DIV" ? h("div", {}, list, more) : null;
  let from, busy = false, age = 0;
  async function next() {
    if (busy) return;
    busy = true;
    const own = age;
    try {
      const page = await fetchPage(from);
      if (own !== age) return;
      list.append(...page.rows.flatMap(row));
      from = page.next;
      if (!list.childElementCount) list.append(h("p", { class: "empty" }, empty));
    } catch (error) {
      list.append(h("p", { class: "problem" }, error.message));
      from = undefined;
    } finally {
      busy = false;
    }
    more.hidden = from === undefined;
  }
  more.addEventListener("click", next);
  new IntersectionObserver((seen) => seen.some((entry) => entry.isIntersecting) && next(), { rootMargin: "400px" }).observe(more);
  const restart = () => {
    age += 1;
    busy = false;
    from = undefined;
    more.hidden = true;
    list.replaceChildren();
    return next();
  };
  return { list, more, whole, restart };
}

// The trials that are marked to be compared.
const marked = [];

export function marker(run, trial) {
  const key = `${run}\n${trial}`;
  const box = h("input", { type: "checkbox", "data-mark": true, "aria-label": "mark to compare", title: "Mark to compare (x)" });
  box.checked = marked.includes(key);
  box.addEventListener("change", () => {
    const at = marked.indexOf(key);
    if (at >= 0) marked.splice(at, 1);
    if (box.checked) marked.push(key);
    if (marked.length === 2) {
      const [one, other] = marked.splice(0).map((each) => each.split("\n"));
      location.hash = link("compare", ...one, ...other);
    }
  });
  return box;
}

// One row for a trial, in any list of them.
export function trialRow(trial, { showRun }) {
  const why = trial.why ?? (trial.ended === "finished" ? null : trial.ended.replaceAll("_", " "));
  const about = [showRun ? [h("a", { class: "id", href: link("run", trial.run), tabindex: "-1" }, trial.run)] : trial.suite, why].filter(Boolean);
  return h("div", { class: "row trial", "data-item": true, tabindex: "0" },
    mark(verdictOf(trial.passed)),
    h("div", { class: "name" },
      h("a", { href: link("run", trial.run, "trial", trial.id), "data-open": true, tabindex: "-1" }, trial.case, h("span", { class: "faint" }, ` #${trial.attempt}`)),
      h("div", { class: "faint small" }, about.map((part, at) => [at > 0 && " · ", part]))),
    h("span", { class: "what" }, condition(trial)),
    h("span", { class: "number" }, seconds(trial.seconds)),
    h("span", { class: "number cost" }, money(trial.cost_usd)),
    marker(trial.run, trial.id));
}

// A choice among words that the address remembers.
export function choice(state, name, options, chosen) {
  const select = h("select", { id: name, "aria-label": name }, options.map(([value, words]) => h("option", { value, selected: state[name] === value }, words)));
  select.addEventListener("change", () => {
    state[name] = select.value;
    chosen();
  });
  return select;
}

// The address of a page with what was chosen on it.
export function remember(page, state) {
  const given = Object.entries(state).filter(([, value]) => value);
  history.replaceState(null, "", `#/${page}` + (given.length ? `?${new URLSearchParams(given)}` : ""));
}

// The names of suites, or of many the first few.
export function named(suites) {
  if (suites.length <= 6) return suites.join(", ");
  return `${suites.slice(0, 3).join(", ")} and ${suites.length - 3} more suites`;
}
