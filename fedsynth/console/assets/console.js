// Brings a page up to date when the server says that something changed. Without it, the page is brought up to date by
// reloading. What somebody is typing, and where they are, stays.
"use strict";
const live = document.getElementById("live");
let wanted = false, busy = false;

async function refresh() {
  if (busy) { wanted = true; return; }
  busy = true;
  try {
    const answer = await fetch(location.href, { credentials: "same-origin" });
    if (answer.ok) {
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const next = fresh.getElementById(part.id);
        if (next && next.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) {
          part.innerHTML = next.innerHTML;
        }
      }
      const summary = fresh.getElementById("live");
      if (live && summary && live.textContent !== summary.textContent) { live.textContent = summary.textContent; }
      filter();
    }
  } catch (error) {
    document.body.classList.add("away");
  }
  busy = false;
  if (wanted) { wanted = false; setTimeout(refresh, 500); }
}

function filter() {
  const box = document.getElementById("filter");
  if (!box) { return; }
  const words = box.value.toLowerCase();
  for (const row of document.querySelectorAll("#runs tbody tr")) {
    row.hidden = !row.textContent.toLowerCase().includes(words);
  }
}

document.addEventListener("input", (event) => { if (event.target.id === "filter") { filter(); } });
if (live) {
  const events = new EventSource("/events");
  events.addEventListener("change", refresh);
  events.onopen = () => { document.body.classList.remove("away"); };
  events.onerror = () => { document.body.classList.add("away"); };
}
