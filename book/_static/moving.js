/* Figures that move. The page holds the still picture, drawn by scripts/moving_drawing.py, and the numbers for every choice;
   this script shows the controls and draws the choice that they make, by the rules of scripts/moving_marks.py. */
(() => {
  "use strict";

  // a number that depends on controls stands in a table {by: [...], values: [...]}; one that is computed here is {is: name}
  function at(table, choice) {
    if (table === null || typeof table !== "object" || Array.isArray(table)) return table;
    return table.is ? choice[table.is] : table.by.reduce((entry, name) => entry[choice[name]], table.values);
  }

  function along(axis, value, length) {
    if (!axis.log) return (value - axis.from) / (axis.to - axis.from) * length;
    return value <= 0 ? 0 : Math.log(value / axis.from) / Math.log(axis.to / axis.from) * length;
  }

  const path = places => "M" + places.map(place => place.map(c => c.toFixed(1)).join(" ")).join("L");

  function points(panel, mark, choice) {
    const [wide, high] = panel.plot, unit = mark.unit || 1;
    const place = (x, y) => [along(panel.x, x, wide), high - along(panel.y, y * unit, high)];
    if (mark.at) return at(mark.at, choice).map(([x, y]) => place(x, y));
    const xs = at(mark.x, choice), ys = at(mark.y, choice);
    return Array.isArray(xs) ? xs.map((x, i) => place(x, ys[i])) : [place(xs, ys)];
  }

  function tiles(panel, mark, choice) {
    const [wide, high] = panel.plot, w = wide / (panel.x.to - panel.x.from), h = high / (panel.y.to - panel.y.from);
    const tile = ([x, y]) => path([[x - w / 2, y - h / 2]]) + `h${w.toFixed(1)}v${h.toFixed(1)}h${(-w).toFixed(1)}Z`;
    return { d: points(panel, mark, choice).map(tile).join("") || "M0 0" };
  }

  // what of a mark depends on its place
  const SHAPES = {
    line: (panel, mark, choice) => ({ d: path(points(panel, mark, choice)) }),
    area(panel, mark, choice) {
      const places = points(panel, mark, choice), high = panel.plot[1];
      return { d: path([[places[0][0], high], ...places, [places[places.length - 1][0], high]]) + "Z" };
    },
    region: (panel, mark, choice) => ({ d: path(points(panel, mark, choice)) + "Z" }),
    ends: (panel, mark, choice) => ({ d: path(points(panel, mark, choice)) + "Z" }),
    dots: (panel, mark, choice) => ({ d: points(panel, mark, choice).map(place => path([place]) + "h0").join("") }),
    tiles,
    frame: tiles,
    level(panel, mark, choice) {
      const [wide, high] = panel.plot, y = high - along(panel.y, at(mark.y, choice) * (mark.unit || 1), high);
      return { d: path([[0, y], [wide, y]]) };
    },
    upright(panel, mark, choice) {
      const [wide, high] = panel.plot, x = along(panel.x, at(mark.x, choice), wide);
      return { d: path([[x, high], [x, 0]]) };
    },
    dot(panel, mark, choice) {
      const [[x, y]] = points(panel, mark, choice);
      return { cx: x.toFixed(1), cy: y.toFixed(1) };
    },
  };

  function set(node, attributes) {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  }

  function figure(box) {
    const spec = JSON.parse(box.querySelector("script").textContent), form = box.querySelector("form");
    const plots = [...box.querySelectorAll(".moving-plot")];
    const computed = spec.computed && window.ibukitMoving[spec.computed];
    const address = window.ibukitMoving.address(box, spec, form);
    function choice() {
      const chosen = Object.fromEntries(spec.controls.map(c => [c.name, Number(form.elements[c.name].value)]));
      return computed ? { ...chosen, ...computed.world(spec, chosen) } : chosen;
    }

    function draw() {
      const chosen = choice();
      spec.panels.forEach((panel, i) => panel.marks.forEach((mark, j) => {
        set(plots[i].children[j], SHAPES[mark.kind](panel, mark, chosen));
      }));
      const words = {};
      for (const control of spec.controls) {
        const field = form.elements[control.name], shown = control.values[chosen[control.name]];
        words[control.name] = shown;
        if (field.type !== "range") continue;
        field.setAttribute("aria-valuetext", shown);
        field.nextElementSibling.textContent = shown;
      }
      for (const [name, table] of Object.entries(spec.said.values)) words[name] = at(table, chosen);
      for (const node of box.querySelectorAll("[data-say]")) node.textContent = words[node.dataset.say];
    }
    function choose(indices) {
      const changed = Object.entries(indices).filter(([name, index]) => Number(form.elements[name].value) !== index);
      for (const [name, index] of changed) form.elements[name].value = index;
      if (changed.length) move();
    }
    function move() {
      draw();
      address.write();
    }

    // the numbers of the choice in the form of scripts/figure_data.py, for figure-files.js
    box.numbers = () => {
      const chosen = choice();
      const scaled = (list, unit) => [list].flat().map(value => Number((value * unit).toPrecision(6)));
      const series = mark => {
        const places = mark.at && at(mark.at, chosen), unit = mark.unit || 1, found = { kind: mark.kind, label: mark.key || mark.look };
        const [x, y] = places ? [0, 1].map(i => places.map(place => place[i])) : [at(mark.x, chosen), at(mark.y, chosen)];
        return { ...found, ...(x === undefined ? {} : { x }), ...(y === undefined ? {} : { y: scaled(y, unit) }) };
      };
      const axis = ({ title, log }) => ({ label: title, scale: log ? "log" : "linear" });
      return {
        setting: Object.fromEntries(spec.controls.map(c => [c.label, c.values[chosen[c.name]]])),
        panels: spec.panels.map(({ x, y, marks }) => ({ title: "", x: axis(x), y: axis(y), series: marks.map(series) })),
      };
    };

    form.hidden = false;
    form.reset(); // a browser that comes back to a page keeps what was chosen, but not what was drawn
    for (const [name, index] of Object.entries(address.asked)) form.elements[name].value = index;
    form.addEventListener("input", move);
    form.addEventListener("submit", event => event.preventDefault());
    box.querySelector(".moving-said").setAttribute("aria-live", "polite");
    spec.panels.forEach((panel, i) => {
      if (panel.pad) pad(plots[i].querySelector(".moving-pad"), panel, spec, choose, computed);
    });
    const button = box.querySelector("[data-play]");
    if (button) play(button, spec, form, choose);
    draw();
  }

  // a plot on which a finger or a mouse chooses; the keyboard has the sliders
  function pad(rect, panel, spec, choose, computed) {
    const { x, y, hover } = panel.pad;
    rect.style.touchAction = x && !y ? "pan-y" : "none";
    function nearest(name, axis, length, share) {
      const far = spec.controls.find(c => c.name === name).at.map(at => Math.abs(along(axis, at, length) - share * length));
      return far.indexOf(Math.min(...far));
    }
    function go(event) {
      const seen = rect.getBoundingClientRect(), [wide, high] = panel.plot;
      const across = (event.clientX - seen.left) / seen.width, up = (seen.bottom - event.clientY) / seen.height;
      const found = computed ? computed.choose(spec, across, up) : {};
      if (x) found[x] = nearest(x, panel.x, wide, across);
      if (y) found[y] = nearest(y, panel.y, high, up);
      choose(found);
    }
    rect.addEventListener("pointerdown", event => { rect.setPointerCapture(event.pointerId); go(event); });
    rect.addEventListener("pointermove", event => {
      if (event.buttons || (hover && event.pointerType === "mouse")) go(event);
    });
  }

  // from here to the end, or from the start where this is the end; not for readers who ask for less motion
  function play(button, spec, form, choose) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) { button.remove(); return; }
    const name = button.dataset.play, last = spec.controls.find(c => c.name === name).values.length - 1;
    let timer = 0;
    function stop() { clearInterval(timer); timer = 0; button.textContent = "Play"; }
    button.addEventListener("click", () => {
      if (timer) { stop(); return; }
      const now = () => Number(form.elements[name].value);
      if (now() === last) choose({ [name]: 0 });
      button.textContent = "Stop";
      timer = setInterval(() => { if (now() === last) stop(); else choose({ [name]: now() + 1 }); }, 150);
    });
    form.addEventListener("input", () => { if (timer) stop(); });
  }

  document.querySelectorAll(".moving").forEach(figure);
})();
