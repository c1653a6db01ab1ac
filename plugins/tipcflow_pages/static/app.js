// Behaviour shared by all pages. Every page also works without it: links, forms and downloads are plain HTML.
"use strict";

// Inside Airflow's frame its own light/dark choice wins; alone, the system's does (the style sheet's default).
function followTheme() {
  try {
    if (window.parent === window) return;
    const outer = window.parent.document.documentElement;
    const take = () => {
      const dark = outer.classList.contains("dark");
      if (dark || outer.classList.contains("light")) document.documentElement.dataset.theme = dark ? "dark" : "light";
    };
    take();
    new MutationObserver(() => { take(); document.dispatchEvent(new Event("theme")); })
      .observe(outer, { attributes: true, attributeFilter: ["class"] });
  } catch { /* framed by another origin: nothing to follow */ }
}
followTheme();

// Links to Airflow's own pages must leave the frame, which a sandboxed frame may not do by itself.
function leaveFrame(event) {
  const link = event.target.closest("a[data-outside]");
  if (!link || window.parent === window || event.ctrlKey || event.metaKey || event.shiftKey) return;
  try {
    const outer = window.parent.document.createElement("a");
    outer.href = link.href;
    window.parent.document.body.append(outer);
    outer.click();
    outer.remove();
    event.preventDefault();
  } catch { /* the link opens where it is */ }
}

function copyText(event) {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy).textContent;
  const done = () => { button.textContent = "copied"; setTimeout(() => { button.textContent = "copy"; }, 1500); };
  const old = () => {
    // http:// addresses other than localhost have no clipboard API
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    done();
  };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, old); else old();
}

async function loadTail(details) {
  const target = details.querySelector("pre[data-src]");
  if (!target || !details.open) return;
  try {
    const answer = await fetch(target.dataset.src, { headers: { Accept: "text/plain" } });
    const text = await answer.text();
    target.textContent = answer.ok ? text || "(empty)" : `could not be read: ${text}`;
    target.scrollTop = target.scrollHeight;
  } catch (error) {
    target.textContent = `could not be read: ${error}`;
  }
}

// While a run is active its page is fetched periodically, and changed sections are replaced.
const EVERY_MS = 4000;
let failures = 0;

function exchange(fresh) {
  for (const section of fresh.querySelectorAll("main > section")) {
    const old = document.getElementById(section.id);
    if (!old) { document.querySelector("main").append(section.cloneNode(true)); continue; }
    if (old.dataset.hash === section.dataset.hash) continue;
    const open = new Set([...old.querySelectorAll("details[open][id]")].map((one) => one.id));
    const copy = document.importNode(section, true);
    for (const one of copy.querySelectorAll("details[id]")) if (open.has(one.id)) one.open = true;
    old.replaceWith(copy);
    for (const one of copy.querySelectorAll("details[open]")) loadTail(one);
  }
}

async function refresh() {
  if (document.hidden) return schedule();
  try {
    const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
    if (answer.status === 401) return location.reload();
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (answer.ok) {
      exchange(fresh);
      document.title = fresh.title;
      document.dispatchEvent(new Event("fresh"));
      failures = 0;
      if (!fresh.body.dataset.running) { delete document.body.dataset.running; return; }
    } else failures += 1;
  } catch { failures += 1; }
  schedule();
}

function schedule() {
  setTimeout(refresh, EVERY_MS * Math.min(8, 2 ** failures));
}

document.addEventListener("click", (event) => { leaveFrame(event); copyText(event); });
document.addEventListener("toggle", (event) => { if (event.target.tagName === "DETAILS") loadTail(event.target); }, true);
document.addEventListener("DOMContentLoaded", () => {
  for (const one of document.querySelectorAll("details[open]")) loadTail(one);
  for (const one of document.querySelectorAll("select[data-now]")) one.addEventListener("change", () => one.form.submit());
  if (document.body.dataset.running) schedule();
});
