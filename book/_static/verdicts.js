/* The page of verdicts: filters and order, kept in the address behind ?; and tables that say when there is more to the right. */
(() => {
  "use strict";
  const FILTERS = ["q", "paper", "chapter", "kind", "verdict", "settings", "sort"];
  const ORDER = [
    "deviates", "error", "conditional error", "holds with a condition", "missing condition", "not checkable", "irreproducible",
    "fitted", "reproduced", "remark", "setting", "ours",
  ];

  function explorer(form) {
    const sections = [...document.querySelectorAll(".verdict-chapter")];
    const lists = sections.map(section => section.querySelector(".verdict-rows"));
    const rows = [...document.querySelectorAll(".verdict-row")];
    rows.forEach((row, i) => {
      row.place = i;
      row.home = row.parentElement;
      row.words = `${row.textContent} ${row.dataset.words || ""}`.replace(/\s+/g, " ").toLowerCase();
    });
    const flat = document.createElement("ul");
    flat.className = "verdict-rows";
    form.after(flat);
    const said = form.querySelector("output");
    const code = new Intl.Collator("en", { numeric: true });
    const compare = {
      code: (a, b) => code.compare(a.id, b.id),
      verdict: (a, b) => ORDER.indexOf(a.dataset.verdict) - ORDER.indexOf(b.dataset.verdict) || compare.error(a, b),
      chapter: (a, b) => code.compare(a.dataset.chapter, b.dataset.chapter) || a.place - b.place,
      error: (a, b) => Number(b.dataset.error || -1) - Number(a.dataset.error || -1) || a.place - b.place,
    };
    const field = name => form.elements[name];
    const usual = field("sort").options[0].value; // the order of the page before anything is chosen
    const chosen = () => Object.fromEntries(
      FILTERS.map(name => [name, field(name) ? field(name).value.trim() : ""]).filter(([name, value]) =>
        value && !(name === "sort" && value === usual)));

    function draw() {
      const want = chosen();
      const words = (want.q || "").toLowerCase().split(/\s+/).filter(Boolean);
      const order = want.sort || usual, is_flat = order !== "book";
      // a setting is no result: it is shown where it is asked for, by its verdict, by a text or by its address
      const with_settings = !field("settings") || want.settings || want.verdict === "setting" || words.length > 0;
      let shown = 0;
      for (const row of rows) {
        const fits = ["paper", "chapter", "kind", "verdict"].every(name => !want[name] || row.dataset[name] === want[name]);
        const is_asked_for = with_settings || row.dataset.verdict !== "setting" || row.classList.contains("is-target");
        row.hidden = !(fits && is_asked_for && words.every(word => row.words.includes(word)));
        shown += !row.hidden;
      }
      const sorted = is_flat ? [...rows].sort(compare[order]) : rows;
      for (const row of sorted) (is_flat ? flat : row.home).append(row);
      sections.forEach((section, i) => {
        section.hidden = is_flat || ![...lists[i].children].some(row => !row.hidden);
      });
      said.textContent = `${shown} of ${rows.length} rows`;
    }
    function keep() {
      const query = new URLSearchParams(chosen()).toString();
      const target = document.querySelector(".verdict-row.is-target");
      const hash = target && !target.hidden ? location.hash : "";
      try {
        history.replaceState(null, "", location.pathname + (query ? `?${query}` : "") + hash);
      } catch { /* a page opened from the disk: its address may not be changed */ }
    }
    function take(address) {
      const want = new URLSearchParams(address);
      for (const name of FILTERS) {
        if (!field(name)) continue;
        field(name).value = want.get(name) || (name === "sort" ? usual : "");
        if (field(name).selectedIndex === -1) field(name).value = name === "sort" ? usual : "";
      }
      draw();
      return Object.keys(chosen()).length > 0;
    }
    function go() {
      rows.forEach(row => row.classList.remove("is-target"));
      const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (place && place.matches(".verdict-chapter")) { // a heading of the contents: the rows in the order of the book
        field("sort").value = "book";
        draw();
        place.scrollIntoView();
      }
      const row = place && place.closest(".verdict-row");
      if (!row) return;
      if (row.hidden) form.reset();
      row.hidden = false; // at once: the form draws its rows after this
      row.querySelector("details").open = true;
      row.classList.add("is-target");
      row.scrollIntoView();
    }
    form.hidden = false;
    form.addEventListener("input", () => { draw(); keep(); });
    form.addEventListener("submit", event => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(() => { draw(); keep(); }));
    window.addEventListener("hashchange", go);
    const is_narrowed = take(location.search);
    if (location.hash) go();
    else if (is_narrowed) form.scrollIntoView();
  }

  function scroller(box) {
    const look = () => {
      const wide = box.scrollWidth > box.clientWidth + 1;
      box.classList.toggle("has-more", wide && box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
      if (wide && !box.hasAttribute("tabindex")) {
        box.tabIndex = 0;
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", "Table, scrolls sideways");
      }
    };
    box.addEventListener("scroll", look, { passive: true });
    new ResizeObserver(look).observe(box);
  }

  document.querySelectorAll(".verdict-filters").forEach(explorer);
  document.querySelectorAll(".table-scroll, .pst-scrollable-table-container").forEach(scroller);
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll(".verdict-row details").forEach(row => { row.open = true; });
  });
})();
