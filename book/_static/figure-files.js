/* Below each figure a fold, "Download". The numbers of a computed figure are a file of their own (scripts/figure_files.py),
   which is loaded when they are asked for; a schematic and a moving figure are part of the page, so this script makes a file of them, with
   the colours of the light theme and, of a moving figure, the numbers of the setting that is shown. */
(() => {
  "use strict";
  const LICENCE = "MIT", AUTHORS = "The ibukit authors", BOOK = "The Iterative Bayesian Update";
  const SVG = "http://www.w3.org/2000/svg", FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";
  const COPIED = ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "stroke-linecap",
    "stroke-linejoin", "opacity", "font-size", "font-weight", "font-style", "text-anchor", "dominant-baseline", "visibility"];
  const ABOUT = {
    computed: "With its source and licence, and the numbers that the figure shows, to six significant digits.",
    disk: "The drawing names its source and licence; the table has the numbers, to six significant digits.",
    schematic: "A schematic: it shows no data.",
    moving: "The numbers of the setting that you see, rounded as on the screen.",
  };

  const made = (name, attributes, ...inside) => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...inside);
    return node;
  };

  // in the light theme whatever the reader's is: what is saved has a white ground
  function inTheLight(act) {
    const root = document.documentElement, theme = root.dataset.theme;
    root.dataset.theme = "light";
    try {
      for (const change of document.getAnimations()) try { change.finish(); } catch { /* it never ends */ }
      return act();
    } finally { root.dataset.theme = theme; }
  }

  // a drawing that looks the same without the styles of the page, which only a browser reads
  function frozen(svg) {
    const copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
    from.forEach((node, i) => {
      const style = getComputedStyle(node), plain = to[i];
      for (const name of ["class", "style", "role", "aria-label", "aria-hidden"]) plain.removeAttribute(name);
      for (const name of COPIED) {
        const value = style.getPropertyValue(name), above = node === svg ? "" : getComputedStyle(node.parentNode).getPropertyValue(name);
        if (name.endsWith("opacity") ? value !== "1" : value !== above) plain.setAttribute(name, value.replace(/(\d)px/g, "$1"));
        else plain.removeAttribute(name);
      }
      if (node.localName === "circle") plain.setAttribute("r", parseFloat(style.r));
      if (node.matches(".moving-pad")) plain.remove();
    });
    return copy;
  }

  const textOf = figure => {
    const caption = figure.querySelector("figcaption").cloneNode(true);
    for (const node of caption.querySelectorAll(".headerlink, mjx-assistive-mml")) node.remove();
    return caption.textContent.trim().replace(/\s+/g, " ");
  };

  function source(figure) {
    const url = new URL(document.querySelector("link[rel=canonical]")?.href ?? location.href);
    if (url.protocol === "file:") return `book/${url.pathname.split("/book/").pop()}#${figure.id}`;
    url.hash = figure.id;
    return url.href;
  }

  // drawings one below the other, as one file
  function file(figure, drawings, data) {
    const boxes = drawings.map(each => each.viewBox.baseVal), wide = Math.max(...boxes.map(box => box.width));
    let high = 0;
    const all = made("svg", { "font-family": FONT });
    const about = { figure: figure.id, book: BOOK, source: source(figure), creator: AUTHORS, licence: LICENCE, ...data };
    all.append(made("title", {}, textOf(figure)));
    all.append(made("desc", {}, drawings.map(each => each.ariaLabel ?? "").join(" ").trim()));
    all.append(made("metadata", {}, JSON.stringify(about)));
    all.append(made("rect", { width: "100%", height: "100%", fill: "#fff" }));
    inTheLight(() => drawings.forEach((each, i) => {
      const copy = frozen(each);
      for (const [key, value] of Object.entries({ x: 0, y: high, width: boxes[i].width, height: boxes[i].height }))
        copy.setAttribute(key, value);
      all.append(copy);
      high += boxes[i].height + 6;
    }));
    const size = { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high };
    for (const [key, value] of Object.entries(size)) all.setAttribute(key, value);
    return new XMLSerializer().serializeToString(all);
  }

  // what each line of a moving figure is, as drawings of one line
  function key(figure) {
    return [...figure.querySelectorAll(".moving-key li")].map(entry => {
      const line = made("svg", { viewBox: "0 0 360 16" }), sample = entry.querySelector("svg").cloneNode(true);
      for (const [name, value] of Object.entries({ x: 40, y: 2, width: 26, height: 12 })) sample.setAttribute(name, value);
      const box = figure.querySelector(".moving"), words = made("text", { x: 74, y: 13 }, entry.textContent);
      line.append(sample, words);
      box.append(line); // styles are those of its place
      return line;
    });
  }

  // rows of a table: one for each number of a series
  function rows(panel, series) {
    const { kind, label = "", x, y, value } = series, head = [panel, label, kind];
    const cell = (list, i) => (Array.isArray(list) ? list[i] : list) ?? "";
    if (series.omitted) return [[...head, "", "", "too many numbers: see the code"]];
    if (kind === "picture") {
      const middle = (edges, i, many) => !edges ? i : edges.length === many + 1 ? (edges[i] + edges[i + 1]) / 2
        : edges[0] + (i + 0.5) * (edges[edges.length - 1] - edges[0]) / many;
      return value.flatMap((row, r) => row.map((number, c) =>
        [...head, middle(x, c, row.length), middle(y, r, value.length), number ?? ""]));
    }
    const many = Math.max(...[x, y].map(list => Array.isArray(list) ? list.length : 1));
    return Array.from({ length: many }, (_, i) => [...head, cell(x, i), cell(y, i), cell(value, i), cell(series.width, i), cell(series.height, i)]);
  }

  function csv(data) {
    const quoted = word => /[",\n]/.test(word) ? `"${String(word).replaceAll('"', '""')}"` : word;
    const lines = data.panels.flatMap((panel, i) => panel.series.flatMap(series => rows(panel.title || i + 1, series)));
    const full = lines.map(line => [...line, "", "", ""].slice(0, 8).map(quoted).join(","));
    return ["panel,series,kind,x,y,value,width,height", ...full, ""].join("\n");
  }

  function save(name, text, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  function button(words, act) {
    const found = document.createElement("button");
    found.type = "button";
    found.textContent = words;
    found.addEventListener("click", act);
    return found;
  }

  // the numbers of a computed figure: a script, because a page on the disk may read nothing else
  const numbers = (image, id) => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    window.ibukitFigure = resolve;
    script.src = image.src.replace(/_images\/[^/]*$/, `_static/figures/${id}.js`);
    script.onload = () => script.remove();
    script.onerror = reject;
    document.head.append(script);
  });

  function computed(image, name, id) {
    const table = button("CSV", async () => save(`${name}.csv`, csv(await numbers(image, id)), "text/csv"));
    const whole = button("SVG with its data", async () => {
      const text = await (await fetch(image.src)).text(), svg = new DOMParser().parseFromString(text, "image/svg+xml");
      const held = svg.querySelector("metadata");
      held.textContent = JSON.stringify({ ...JSON.parse(held.textContent), ...await numbers(image, id) });
      held.before(Object.assign(svg.createElementNS(SVG, "desc"), { textContent: image.alt }));
      save(`${name}.svg`, new XMLSerializer().serializeToString(svg), "image/svg+xml");
    });
    // a page on the disk may not read the drawing either, so it can only link it
    const link = document.createElement("a");
    link.href = image.src;
    link.download = `${name}.svg`;
    link.textContent = "SVG";
    return [location.protocol === "file:" ? link : whole, table];
  }

  function moving(figure, name) {
    const shown = () => figure.querySelector(".moving").numbers();
    const drawing = () => {
      const lines = key(figure);
      const text = file(figure, [...figure.querySelectorAll(".moving-panels > svg"), ...lines], shown());
      for (const line of lines) line.remove();
      save(`${name}.svg`, text, "image/svg+xml");
    };
    return [button("SVG with its data", drawing), button("CSV", () => save(`${name}.csv`, csv(shown()), "text/csv"))];
  }

  function fold(figure) {
    const page = location.pathname.split("/").pop().replace(/\.html$/, ""), name = `ibukit-${page}-${figure.id.replace(/^fig-/, "")}`;
    const image = figure.querySelector("img[src*='/_images/'][src$='.svg']"), drawing = figure.querySelector(":scope > svg");
    let kind, files;
    if (figure.querySelector(".moving")) [kind, files] = ["moving", moving(figure, name)];
    else if (image) [kind, files] = [location.protocol === "file:" ? "disk" : "computed", computed(image, name, figure.id)];
    else if (drawing) [kind, files] = ["schematic", [button("SVG", () => save(`${name}.svg`, file(figure, [drawing], {}), "image/svg+xml"))]];
    else return;
    const box = document.createElement("details"), title = document.createElement("summary"), about = document.createElement("span");
    const number = figure.querySelector(".caption-number")?.textContent.trim() ?? "this figure";
    box.className = "figure-files";
    title.textContent = "Download";
    title.setAttribute("aria-label", `Download ${number}`);
    about.textContent = ABOUT[kind];
    box.append(title, ...files, about);
    figure.append(box);
  }

  addEventListener("load", () => {
    for (const figure of document.querySelectorAll(".bd-article figure[id]")) if (figure.querySelector("figcaption")) fold(figure);
  });
})();
