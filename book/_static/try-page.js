/* Try your own counts: the form, the play of the steps and the address. What is computed stands in the other files. */
(() => {
  "use strict";
  const kit = globalThis.ibukitTry;
  const box = document.querySelector(".try");
  if (!box) return;
  const form = box.querySelector("form"), part = name => box.querySelector(`[data-part=${name}]`);
  const FIELDS = ["kind", "data", "column", "heading", "mechanism", "epsilon", "labels", "first", "last", "matrix", "level"];
  const { STEPS } = kit.ibu;
  const PAUSE = 250; // ms after the last key before it is computed
  const SLICE = 30; // ms of work after which the page may answer the reader
  const MAX_FILE = 50e6; // bytes
  const MAX_ADDRESS = 8000; // characters that mail and chat leave whole
  const START = 9; // 30 steps
  // more reports, more digits
  const digits = () => Math.min(4, Math.max(1, Math.floor(Math.log10(now.problem.n) / 2)));
  const percent = share => `${(100 * share).toFixed(digits())}\u00a0%`;
  const range = (low, high) => `${(100 * low).toFixed(digits())} to ${percent(high)}`;
  const small = value => value === 0 ? "0" : value < 1e-4 ? value.toExponential(1).replace(".0e", "e") : value.toPrecision(2);
  let now = null, waiting = 0, playing = 0, pasted = -1;

  const EXAMPLES = {
    ways: { kind: "counts", data: "bike, 187\nbus, 268\ncar, 145", mechanism: "krr", epsilon: "1", labels: "" },
    ages: {
      kind: "counts", mechanism: "cut", epsilon: "0.4", first: "0", last: "20",
      data: [36, 17, 24, 35, 42, 56, 57, 77, 84, 79, 87, 79, 62, 59, 51, 48, 32, 28, 20, 14, 33].map((many, age) => `${age}, ${many}`).join("\n"),
    },
    open: {
      kind: "counts", data: "yes, 62\nno, 38", mechanism: "matrix",
      matrix: ", yes, no\nnever, 0.25, 0.75\nonce, 0.5, 0.5\noften, 0.75, 0.25",
    },
  };

  const values = () => Object.fromEntries(FIELDS.map(name => [name, name === "heading" ? form.elements.heading.checked : form.elements[name].value]));

  function fill(wanted) {
    for (const name of FIELDS) {
      if (!(name in wanted) || name === "column") continue;
      if (name === "heading") form.elements.heading.checked = wanted.heading === true || wanted.heading === "1";
      else form.elements[name].value = wanted[name];
      if (form.elements[name].selectedIndex === -1) form.elements[name].selectedIndex = 0;
    }
    offerColumns();
    if (wanted.column) form.elements.column.value = wanted.column;
    if (form.elements.column.selectedIndex === -1) form.elements.column.selectedIndex = 0;
  }

  // the columns of a table of reports, by the names in its first line
  function offerColumns() {
    const list = form.elements.column, before = list.value;
    const known = kit.read.columns(form.elements.data.value).slice(0, 100);
    list.replaceChildren(...(known.length ? known : [""]).map((name, i) => new Option(known.length > 1 ? `${i + 1}: ${name.slice(0, 30)}` : "1", String(i))));
    list.value = before;
    if (list.selectedIndex === -1) list.selectedIndex = 0;
  }

  // fields that the chosen mechanism and kind of input do not need are away
  function showFields() {
    const chosen = [form.elements.mechanism.value, form.elements.kind.value];
    for (const field of box.querySelectorAll("[data-for]")) {
      field.hidden = !field.dataset.for.split(" ").some(name => chosen.includes(name));
    }
  }

  function refuse(field, sentence) {
    for (const each of form.querySelectorAll("[aria-invalid]")) { each.removeAttribute("aria-invalid"); each.removeAttribute("aria-describedby"); }
    part("problem").textContent = sentence;
    part("problem").hidden = !sentence;
    part("answer").hidden = Boolean(sentence);
    if (!sentence) return;
    const wrong = form.elements[field];
    if (!wrong) return;
    wrong.closest("label").after(part("problem")); // where the reader looks
    wrong.setAttribute("aria-invalid", "true");
    wrong.setAttribute("aria-describedby", part("problem").id);
  }

  function compute() {
    stop();
    box.dataset.state = "busy";
    showFields();
    now = null;
    try {
      const problem = kit.problem(values()), best = kit.maximum(problem.rows, problem.q);
      const set = kit.maximisers(problem, best);
      now = { problem, best, set, walk: kit.ibu.walk(problem.rows, problem.q), ends: problem.labels.map(() => null) };
    } catch (error) {
      refuse(error.field, error instanceof kit.Refusal ? error.message
        : "This could not be computed; check the numbers, or use the Python package.");
      if (!(error instanceof kit.Refusal)) console.error(error);
      box.dataset.state = "refused";
      return;
    }
    refuse("", "");
    const { problem, best, set } = now, zeros = best.theta.filter(share => share === 0).length;
    part("read").textContent = `You have ${kit.read.readable(problem.n)} ${problem.n === 1 ? "report" : "reports"} and ${problem.labels.length} possible values.`;
    part("certified").textContent = best.gap <= 1e-9 ? "The maximum is certified:" : "The maximum is certified less closely than to 1e-9:";
    part("gap").textContent = small(Math.max(best.gap, 1e-15));
    part("unique").textContent = set.unique ? "No other shares fit as well."
      : "Other shares fit exactly as well, and these reports cannot tell which are right. The last column gives the range of each share over all that fit best.";
    part("range-key").hidden = set.unique;
    if (problem.kind === "krr") {
      const [truth, other] = problem.matrix[0];
      part("truth").textContent = `With these ${problem.labels.length} values the truth is reported with probability ${percent(truth)}, and each of the other values with probability ${percent(other)}.`;
    }
    part("misfit").hidden = kit.fit(problem, best) > 1e-3;
    part("zeros").hidden = zeros === 0;
    part("zeros-count").textContent = `${zeros} of ${problem.labels.length} shares ${zeros === 1 ? "is" : "are"}`;
    writeTable();
    show();
    intervals(now);
  }

  // one interval after the other, and between them the page is free for the reader
  function intervals(task) {
    let x = 0;
    (function more() {
      if (task !== now) return;
      const from = performance.now();
      while (x < task.ends.length && performance.now() - from < SLICE) {
        task.ends[x] = kit.profile(task.problem, task.best, x);
        writeInterval(x);
        x++;
      }
      const done = x === task.ends.length;
      part("progress").textContent = done ? "" : `Intervals: ${x} of ${task.ends.length} computed.`;
      if (done) { show(); box.dataset.state = "done"; } else setTimeout(more);
    })();
  }

  const reportsAreValues = ({ labels, reports }) => labels.length === reports.length && labels.every((label, x) => label === reports[x]);

  function writeTable() {
    const { problem, best, set } = now, isSame = reportsAreValues(problem);
    const heads = ["value", "reports", "IBU", "maximum", `${100 * problem.level} % interval`];
    if (!isSame) heads.splice(1, 1);
    if (!set.unique) heads.push("all maximisers");
    const cell = (name, words, key) => {
      const made = document.createElement(name);
      made.textContent = words;
      if (key) made.dataset.cell = key;
      if (name === "th") made.scope = key === undefined ? "row" : "col";
      return made;
    };
    const line = cells => { const row = document.createElement("tr"); row.append(...cells); return row; };
    part("head").replaceChildren(line(heads.map(head => cell("th", head, "head"))));
    part("body").replaceChildren(...problem.labels.map((label, x) => line([
      cell("th", label), ...(isSame ? [cell("td", percent(problem.counts[x] / problem.n), "reports")] : []),
      cell("td", "", "ibu"), cell("td", percent(best.theta[x]), "mle"), cell("td", "…", "interval"),
      ...(set.unique ? [] : [cell("td", range(set.lower[x], set.upper[x]), "range")]),
    ])));
  }

  const column = key => box.querySelectorAll(`[data-part=body] [data-cell=${key}]`);
  function writeInterval(x) {
    const [low, high] = now.ends[x];
    column("interval")[x].textContent = range(low, high);
  }

  // everything that the slider changes
  function show() {
    if (!now) return;
    const { problem, best, set, walk, ends } = now, i = Number(form.elements.step.value), steps = STEPS[i];
    const theta = walk(i), gap = kit.ibu.gap(problem.rows, problem.q, theta);
    const words = kit.read.readable(steps);
    form.elements.step.setAttribute("aria-valuetext", `${words} steps`);
    form.elements.step.nextElementSibling.textContent = words;
    const short = Math.max(0, best.fit - kit.ibu.fitOf(problem.q, kit.ibu.forward(problem.rows, theta)));
    part("said").textContent = `After ${words} ${steps === 1 ? "step" : "steps"} IBU is ${small(short)} nats per report below the maximum; its gap, computed without knowing the maximum, is ${small(gap)}.`;
    column("ibu").forEach((cell, x) => { cell.textContent = percent(theta[x]); });
    const isLine = problem.first !== undefined, isSame = reportsAreValues(problem);
    const frequencies = problem.counts.map(many => many / problem.n);
    part("reports").hidden = isSame;
    if (!isSame) kit.draw(part("reports").querySelector("div"), { title: "The share of each report.", labels: problem.reports, isLine, bars: frequencies });
    kit.draw(part("picture"), {
      title: "The share of each value: as reported, at the maximum with its intervals, and by IBU. The table below has the numbers.",
      labels: problem.labels, isLine, bars: isSame ? frequencies : null, ibu: theta, mle: best.theta, ends,
      ranges: set.unique ? null : [...set.lower].map((low, x) => [low, set.upper[x]]),
    });
    part("python").textContent = kit.python(problem, steps, set.unique);
  }

  function stop() {
    clearInterval(playing);
    playing = 0;
    part("play").textContent = "Play";
  }

  function play() {
    if (playing) { stop(); return; }
    const field = form.elements.step;
    if (Number(field.value) === STEPS.length - 1) field.value = 0;
    part("play").textContent = "Stop";
    playing = setInterval(() => {
      field.value = Number(field.value) + 1;
      show();
      if (Number(field.value) === STEPS.length - 1) stop();
    }, 250);
  }

  // the setting in the address, behind #, which no browser sends to a server; only if the reader asks for it
  function link() {
    const all = values(), query = new URLSearchParams();
    for (const name of FIELDS) {
      const field = form.elements[name].closest("[data-for]");
      if (field?.hidden || all[name] === "" || all[name] === false) continue;
      query.set(name, all[name] === true ? "1" : all[name]);
    }
    query.set("step", form.elements.step.value);
    const address = `${location.href.split("#")[0]}#${query}`;
    if (address.length > MAX_ADDRESS) {
      part("link-said").textContent = "These counts are too long for a link; send the Python call instead.";
      return;
    }
    part("link").value = address;
    part("link").parentElement.hidden = false;
    part("link").select();
    navigator.clipboard?.writeText(address).catch(() => {});
    part("link-said").textContent = "Here is the link. It holds your counts, so send it only to people who may see them.";
  }

  function takeAddress() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (!wanted.has("data")) return false;
    fill({ ...Object.fromEntries(FIELDS.map(name => [name, ""])), kind: "counts", mechanism: "krr", level: "0.95", ...Object.fromEntries(wanted) });
    if (wanted.has("step")) form.elements.step.value = wanted.get("step");
    return true;
  }

  function load(file) {
    if (file.size > MAX_FILE) { refuse("file", "The file is larger than 50 MB; count its reports first, and paste the counts."); return; }
    const reader = new FileReader();
    reader.onload = () => {
      const text = String(reader.result);
      fill({ data: text, ...kit.read.guess(text) });
      compute();
    };
    reader.onerror = () => refuse("file", "The file could not be read; open it elsewhere, and paste its lines.");
    reader.readAsText(file);
  }

  box.querySelector("[data-part=needs-script]").remove();
  form.hidden = false;
  form.reset();
  form.elements.step.max = STEPS.length - 1;
  form.elements.step.value = START;
  form.elements.step.addEventListener("input", () => { stop(); show(); });
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("input", event => {
    if (event.target.name === "step" || event.target.type === "file" || event.target.readOnly) return;
    if (event.target.name === "data") {
      const { value } = event.target;
      // what was pasted is all that there is: what its lines hold can be guessed
      if (event.inputType === "insertFromPaste" && value.length === pasted) fill(kit.read.guess(value));
      offerColumns();
    }
    box.dataset.state = "busy";
    clearTimeout(waiting);
    waiting = setTimeout(compute, PAUSE);
  });
  form.elements.data.addEventListener("paste", event => { pasted = (event.clipboardData?.getData("text") ?? "").replace(/\r\n?/g, "\n").length; });
  form.elements.file.addEventListener("change", () => { if (form.elements.file.files[0]) load(form.elements.file.files[0]); form.elements.file.value = ""; });
  for (const button of form.querySelectorAll("[data-example]")) {
    button.addEventListener("click", () => { fill(EXAMPLES[button.dataset.example]); compute(); });
  }
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) part("play").hidden = true;
  part("play").addEventListener("click", play);
  part("make-link").addEventListener("click", link);
  part("copy").addEventListener("click", () => {
    getSelection().selectAllChildren(part("python"));
    navigator.clipboard?.writeText(part("python").textContent).catch(() => {});
    part("copy").textContent = "Copied";
    setTimeout(() => { part("copy").textContent = "Copy"; }, 1500);
  });
  let width = 0;
  new ResizeObserver(([seen]) => {
    if (Math.abs(seen.contentRect.width - width) > 1) { width = seen.contentRect.width; show(); }
  }).observe(part("picture"));
  addEventListener("hashchange", () => { if (takeAddress()) compute(); });
  if (!takeAddress()) fill(EXAMPLES.ways);
  compute();
})();
