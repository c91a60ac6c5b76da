// The evidence of a page (code of figures and tables, checks, links to claims) shows if the reader asks for it: by the
// switch in the header, by ?evidence=1 in the address, or by following a link to a cell. The switch is remembered, the
// others hold for one page. Without this script all of it is simply there.
const evidence = {
  root: document.documentElement,
  remembered: () => { try { return localStorage.getItem("evidence"); } catch { return null; } },
  remember: value => { try { localStorage.setItem("evidence", value); } catch { /* a private window */ } },
  asked: () => new URLSearchParams(location.search).get("evidence") ?? evidence.remembered(),
  shown: () => evidence.root.dataset.evidence === "on",
  show: on => {
    evidence.root.dataset.evidence = on ? "on" : "off";
    document.querySelector(".evidence-switch")?.setAttribute("aria-pressed", String(on));
  },
  // A cell that a link leads to is shown with its evidence, open where it is folded.
  follow: () => {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id ? document.getElementById(id) : null;
    if (!target?.closest("div.cell")) return;
    evidence.show(true);
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView();
  },
};
evidence.show(evidence.asked() === "1");
document.addEventListener("DOMContentLoaded", () => {
  const buttons = document.querySelector(".article-header-buttons");
  if (buttons && document.querySelector(".evidence")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn btn-sm evidence-switch";
    button.innerHTML = '<span class="wide-only">Show the evidence</span><span class="narrow-only">Evidence</span>';
    button.setAttribute("aria-label", "Show the evidence");
    button.title = "Show the code of figures and tables, the checks, and the claims that they belong to";
    button.addEventListener("click", () => {
      evidence.show(!evidence.shown());
      evidence.remember(evidence.shown() ? "1" : "0");
    });
    buttons.prepend(button);
  }
  evidence.show(evidence.shown());
  evidence.follow();
});
addEventListener("hashchange", evidence.follow);

// The sidebar shows the page that is open, wherever in the list it stands.
document.addEventListener("DOMContentLoaded", () => {
  const bar = document.querySelector(".bd-sidebar-primary"), link = bar?.querySelector("li.current > a.current");
  if (!link) return;
  const place = link.getBoundingClientRect(), frame = bar.getBoundingClientRect();
  if (place.top < frame.top || place.bottom > Math.min(frame.bottom, innerHeight))
    bar.scrollTop += place.top - frame.top - bar.clientHeight / 2;
});

// The arrow that opens a part of the contents has no name of its own.
document.addEventListener("DOMContentLoaded", () => {
  for (const arrow of document.querySelectorAll(".bd-links .has-children summary")) {
    const page = arrow.closest(".has-children").querySelector("a");
    arrow.setAttribute("aria-label", `Pages below ${page ? page.textContent.trim() : "this one"}`);
  }
});

// What is folded is printed, too: code, proofs, solutions and symbols. Afterwards all is as it was.
let openedForPrint = [];
addEventListener("beforeprint", () => {
  openedForPrint = [...document.querySelectorAll(".bd-article details:not([open])")];
  for (const fold of openedForPrint) fold.open = true;
});
addEventListener("afterprint", () => {
  for (const fold of openedForPrint) fold.open = false;
  openedForPrint = [];
});

// What scrolls can be scrolled by the keyboard.
addEventListener("load", () => {
  for (const figure of document.querySelectorAll("figure.schematic"))
    if (figure.scrollWidth > figure.clientWidth) figure.tabIndex = 0;
});

// The book serves one renderer of formulas (scripts/light_book.py), so their menu offers no other.
addEventListener("load", async () => {
  await window.MathJax?.startup?.promise;
  window.MathJax?.startup?.document?.menu?.menu?.findID("Settings", "Renderer")?.disable();
});

// On a phone a formula in a line may be wider than the page, which would cut it off.
addEventListener("load", async () => {
  if (!matchMedia("(max-width: 600px)").matches) return;
  await window.MathJax?.startup?.promise;
  const formulas = [...document.querySelectorAll(".bd-article span.math")];
  const column = formula => formula.closest("p, li, dd, dt, td, div").clientWidth;
  const wide = formulas.filter(formula => formula.firstElementChild?.offsetWidth > column(formula));
  for (const formula of wide) formula.classList.add("wide-formula");
});

// On a phone a table of text stands as cards, each cell under the name of its column, and in a comparison with a paper
// the verdict comes second. A table with cells that span others is left alone.
document.addEventListener("DOMContentLoaded", () => {
  if (!matchMedia("(max-width: 600px)").matches) return;
  for (const table of document.querySelectorAll(".bd-article table")) {
    const rows = [...table.rows], heads = table.tHead?.rows;
    if (heads?.length !== 1 || table.querySelector("[colspan]:not([colspan='1']), [rowspan]:not([rowspan='1'])")) continue;
    const names = [...heads[0].cells].map(cell => cell.textContent.trim());
    if (rows.some(row => row.cells.length !== names.length)) continue;
    const verdict = names.findIndex(name => name.toLowerCase() === "verdict");
    if (verdict > 1) for (const row of rows) row.cells[0].after(row.cells[verdict]);
    if (table.closest(".cell_output, .table-scroll") || names.length > 4 || names.some(name => !name)) continue;
    table.classList.add("as-cards");
    for (const row of rows.slice(1)) [...row.cells].forEach((cell, i) => { cell.dataset.column = names[i]; });
  }
});
