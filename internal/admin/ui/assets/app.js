// Pages work without this script. With it, a thread unfolds in place.
"use strict";

async function unfold(details) {
  const room = details.querySelector("[data-older]");
  const source = details.dataset.source;
  if (!room || !source) return;
  delete details.dataset.source;
  room.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(source, { credentials: "same-origin", headers: { Accept: "text/html" } });
    if (answer.status === 401) {
      location.reload(); // the session has ended: the page leads to the login
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const older = page.querySelector("[data-older]");
    if (!older) throw new Error("no rows");
    room.replaceWith(older);
  } catch {
    details.dataset.source = source; // its link still works, and so does another try
    room.removeAttribute("aria-busy");
  }
}

document.addEventListener("toggle", (event) => {
  if (event.target instanceof HTMLDetailsElement && event.target.open) unfold(event.target);
}, true);

document.addEventListener("click", (event) => {
  const link = event.target instanceof Element && event.target.closest("[data-unfold]");
  const details = link && link.closest("details[data-source]");
  if (details && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    unfold(details);
  }
});
