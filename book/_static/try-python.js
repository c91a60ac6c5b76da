/* Try your own counts: the Python call that does the same. tests/book/test_try_page.py runs what is printed. */
(() => {
  "use strict";
  const kit = globalThis.ibukitTry ||= {};
  const WIDTH = 76;

  // the same text between quotes in Python as in JSON
  const text = JSON.stringify;

  // items in as many lines as they need
  function wrapped(open, items, close) {
    const one = open + items.join(", ") + close;
    if (one.length <= WIDTH) return one;
    const lines = [""];
    for (const item of items) {
      const last = lines.length - 1;
      if (lines[last] && lines[last].length + item.length + 6 > WIDTH) lines.push(item);
      else lines[last] += (lines[last] ? ", " : "") + item;
    }
    return `${open}\n${lines.map(line => `    ${line},`).join("\n")}\n${close}`;
  }

  const MECHANISMS = {
    krr: ({ labels, epsilon }) => [wrapped("values = [", labels.map(text), "]"), `mechanism = ik.RandomizedResponse(values, epsilon=${epsilon})`],
    cut: ({ first, last, epsilon }) => [`mechanism = ik.TruncatedGeometric(ik.Line(${first}, ${last}), epsilon=${epsilon})`],
    uncut: ({ first, last, epsilon }) => [`mechanism = ik.LinearGeometric(ik.Line(${first}, ${last}), epsilon=${epsilon})`],
    matrix: ({ labels, reports, matrix }) => [
      wrapped("values = [", labels.map(text), "]"),
      wrapped("reports = [", reports.map(text), "]"),
      `matrix = [\n${matrix.map(row => wrapped("    [", [...row].map(String), "    ],").replace(/ {4}\],$/, "],")).join("\n")}\n]`,
      "mechanism = ik.MatrixMechanism(matrix, alphabet=values, reports=reports)",
    ],
  };

  function tally({ kind, reports, counts }) {
    const some = reports.flatMap((report, z) => counts[z] > 0 ? [[report, counts[z]]] : []);
    if (kind === "uncut") { // whose reports have no end, so that it takes them and not their counts
      return [wrapped("places = [", some.map(([report]) => report), "]"), wrapped("counts = [", some.map(([, many]) => String(many)), "]"),
        "tally = mechanism.tally(np.repeat(places, counts))"];
    }
    const name = kind === "cut" ? report => report : text;
    return [wrapped("counts = {", some.map(([report, many]) => `${name(report)}: ${many}`), "}"), "tally = mechanism.tally_counts(counts)"];
  }

  function python(problem, steps, isUnique) {
    const head = problem.kind === "uncut" ? ["import numpy as np", "", "import ibukit as ik"] : ["import ibukit as ik"];
    const lines = [...head, "", ...MECHANISMS[problem.kind](problem), ...tally(problem), "", "estimate = ik.mle(tally)",
      `print(estimate.to_frame(level=${problem.level}, method="profile"))`, 'print("gap:", estimate.gap)'];
    if (!isUnique) lines.push("every = ik.theory.mle_set(tally)  # all maximisers", "print(every.lower, every.upper)");
    if (steps > 0) lines.push(`print(ik.ibu(tally, stop=ik.Steps(${steps})))  # IBU after ${steps === 1 ? "one step" : `${steps} steps`}`);
    return `${lines.join("\n")}\n`;
  }

  kit.python = python;
})();
