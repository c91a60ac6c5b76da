/* Try your own counts: the picture. Names stand below one another, each with its bar; values on a line stand side by side. */
(() => {
  "use strict";
  const kit = globalThis.ibukitTry ||= {};
  const ROW = 34, HIGH = 190, MAX_ROWS = 24;

  function node(name, attributes, words) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (words !== undefined) made.textContent = words; // a label is text, whatever it holds
    return made;
  }

  // a round step of an axis from 0 to the top, of which there are two to five
  function tick(top) {
    const power = 10 ** Math.floor(Math.log10(top)), many = top / power;
    return power * (many > 5 ? 2 : many > 2.5 ? 1 : many > 1.2 ? 0.5 : 0.25);
  }

  const percent = share => `${Number((100 * share).toPrecision(3))} %`;
  const cut = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;

  // "M" of the ends of a line, and the places of marks
  const SHAPES = {
    bar: (a, width, to, isUpright) => isUpright ? `M${a - width / 2} 0V${-to}h${width}V0Z` : `M0 ${a - width / 2}H${to}v${width}H0Z`,
    range: (a, from, to, isUpright) => isUpright ? `M${a} ${-from}V${-to}` : `M${from} ${a}H${to}`,
    at: (a, value, isUpright) => isUpright ? { cx: a, cy: -value } : { cx: value, cy: a },
  };

  function axis(svg, top, length, breadth, isUpright) {
    for (let value = 0; value <= top * 1.0001; value += tick(top)) {
      const place = value / top * length;
      svg.append(node("path", { class: "try-grid", d: isUpright ? `M0 ${-place}H${breadth}` : `M${place} 0V${breadth}` }));
      svg.append(isUpright ? node("text", { x: -6, y: -place + 4, "text-anchor": "end" }, percent(value))
        : node("text", { x: place, y: breadth + 16, "text-anchor": "middle" }, percent(value)));
    }
  }

  function names(svg, labels, place, room, isUpright) {
    if (!isUpright) {
      labels.forEach((label, x) => svg.append(node("text", { x: -8, y: place(x) + 4, "text-anchor": "end" }, cut(label, Math.floor(room / 7)))));
      return;
    }
    const longest = Math.min(10, Math.max(...labels.map(label => label.length)));
    const every = Math.ceil((longest * 7 + 10) / (place(1) - place(0)));
    labels.forEach((label, x) => {
      if (x % every === 0) svg.append(node("text", { x: place(x), y: 18, "text-anchor": "middle" }, cut(label, 10)));
    });
  }

  /* One drawing: `labels`, and what is known of each: `bars` (reports), `ibu`, `mle`, `ends` (intervals) and `ranges` (of
     all maximisers), each a list of shares or null. `title` is what is read out. */
  function draw(box, { title, labels, isLine, bars, ibu, mle, ends, ranges }) {
    const isUpright = isLine || labels.length > MAX_ROWS, width = Math.max(280, box.clientWidth || 600);
    const longest = Math.max(...labels.map(label => label.length));
    const room = isUpright ? 52 : Math.min(width * 0.35, Math.max(40, longest * 7 + 14));
    const breadth = isUpright ? width - room - 12 : labels.length * ROW, length = isUpright ? HIGH : width - room - 26;
    const known = [bars, ibu, mle, ends?.flat(), ranges?.flat()].flatMap(list => list ? [...list] : []).filter(Number.isFinite);
    const top = Math.max(...known, 1e-6) * 1.04, along = share => Math.max(0, share) / top * length;
    const place = x => (x + 0.5) * breadth / labels.length, each = breadth / labels.length;
    const high = isUpright ? HIGH + 40 : breadth + 30;
    const svg = node("svg", { viewBox: `0 0 ${width} ${high}`, width, height: high, role: "img", "aria-label": title });
    const plot = node("g", { transform: `translate(${room} ${isUpright ? HIGH + 10 : 4})` });
    svg.append(plot);
    axis(plot, top, length, breadth, isUpright);
    names(plot, labels, place, room, isUpright);
    const thick = isUpright ? Math.max(1, Math.min(26, each * 0.8)) : 20, radius = Math.max(2, Math.min(5, each / 3));
    labels.forEach((label, x) => {
      if (bars) plot.append(node("path", { class: "try-bar", d: SHAPES.bar(place(x), thick, along(bars[x]), isUpright) }));
      if (ranges) plot.append(node("path", { class: "try-range", d: SHAPES.range(place(x), along(ranges[x][0]), along(ranges[x][1]), isUpright) }));
      if (ends?.[x]) plot.append(node("path", { class: "try-interval", d: SHAPES.range(place(x), along(ends[x][0]), along(ends[x][1]), isUpright) }));
    });
    labels.forEach((label, x) => {
      if (mle) plot.append(node("circle", { class: "try-mle", r: radius, ...SHAPES.at(place(x), along(mle[x]), isUpright) }));
      if (ibu) plot.append(node("circle", { class: "try-ibu", r: radius * 0.8, ...SHAPES.at(place(x), along(ibu[x]), isUpright) }));
    });
    box.replaceChildren(svg);
  }

  kit.draw = draw;
})();
