// Questions to the program.

async function answer(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.error ?? `the viewer answered ${response.status}`);
  return body;
}

function address(parts, query) {
  const path = "api/" + parts.map(encodeURIComponent).join("/");
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

export async function ask(parts, query) {
  return answer(await fetch(address(parts, query)));
}

export async function tell(parts, body) {
  const headers = { "content-type": "application/json" };
  return answer(await fetch(address(parts), { method: "POST", headers, body: JSON.stringify(body) }));
}

export function download(run, trial, path) {
  return address(["run", run, "trial", trial, "download"], { path });
}

// A file as a picture, or one of its pages.
export function picture(run, trial, path, page) {
  return address(["run", run, "trial", trial, "picture"], { path, page });
}

// An HTML file for a frame that can do nothing.
export function frame(run, trial, path) {
  return address(["run", run, "trial", trial, "frame"], { path });
}

// What a run that goes on tells, until it ends or the page is left.
export function follow(run, heard) {
  const source = new EventSource(address(["run", run, "live"]));
  source.onmessage = (event) => {
    const standing = JSON.parse(event.data);
    if (standing.finished) source.close();
    heard(standing);
  };
  return () => source.close();
}
