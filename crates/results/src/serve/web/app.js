// From an address to a page.

import { casePage } from "./case.js";
import { comparePage } from "./compare.js";
import { h } from "./dom.js";
import { listen } from "./keys.js";
import { labelPage } from "./label.js";
import { runPage } from "./run.js";
import { runsPage } from "./runs.js";
import { searchPage } from "./search.js";
import { trendsPage } from "./trends.js";
import { trialPage } from "./trial.js";

const page = document.getElementById("page");
let leave = null;
let visit = 0;

function route(parts) {
  const [first, second, third] = parts;
  if (!first) return [runsPage, [], "runs"];
  if (first === "trends") return [trendsPage, [], "trends"];
  if (first === "search") return [searchPage, [], "search"];
  if (first === "compare" && parts.length === 5) return [comparePage, parts.slice(1), ""];
  if (first === "run" && parts.length === 2) return [runPage, [second], "runs"];
  if (first === "run" && third === "label" && parts.length === 3) return [labelPage, [second], "runs"];
  if (first === "run" && third === "case" && parts.length === 5) return [casePage, [second, parts[3], parts[4]], "runs"];
  if (first === "run" && third === "trial" && parts.length === 4) return [trialPage, [second, parts[3]], "runs"];
  return null;
}

async function show() {
  const own = (visit += 1);
  leave?.();
  leave = null;
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const found = route(path ? path.split("/").map(decodeURIComponent) : []);
  // A page that comes too late must not write over the one that is shown by then.
  const room = h("div", { class: "page" });
  page.replaceChildren(room);
  window.scrollTo(0, 0);
  for (const each of document.querySelectorAll("[data-page]")) {
    each.toggleAttribute("aria-current", each.dataset.page === found?.[2]);
  }
  try {
    if (!found) throw new Error("there is no such page");
    const done = await found[0](room, found[1], new URLSearchParams(query ?? ""));
    if (own === visit) leave = done ?? null;
    else done?.();
  } catch (error) {
    room.replaceChildren(h("h1", {}, "That did not work"), h("p", { class: "problem" }, error.message));
  }
  document.title = `${room.querySelector("h1")?.textContent ?? "Practicum"} · Practicum`;
  room.dataset.ready = location.hash;
}

document.getElementById("find").addEventListener("submit", (event) => {
  event.preventDefault();
  const q = new FormData(event.target).get("q");
  location.hash = `#/search?${new URLSearchParams({ q })}`;
  event.target.reset();
  document.activeElement.blur();
});
window.addEventListener("hashchange", show);
listen();
show();
