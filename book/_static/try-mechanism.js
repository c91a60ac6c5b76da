/* Try your own counts: the matrix of the mechanism, a row for each value that a person can have, a column for each report. */
(() => {
  "use strict";
  const kit = globalThis.ibukitTry ||= {};
  const MAX_VALUES = 200, MAX_COLUMNS = 1000;
  const MAX_EPSILON = 36; // beyond it, doubles do not hold the probability of a report other than the truth
  const SUM_TOLERANCE = 1e-9; // as in ibukit.MatrixMechanism

  const { shown, readable } = kit.read;

  // a number, or the logarithm of one, as in ln 3 for a fair coin
  function epsilonOf(text) {
    const logarithm = text.trim().match(/^(?:ln|log)\s*\(?([\d.,/]+)\)?$/i);
    const epsilon = logarithm ? Math.log(kit.read.number(logarithm[1])) : kit.read.number(text.trim());
    if (Number.isNaN(epsilon)) throw new kit.Refusal("epsilon", "Write epsilon, the level of privacy, as a number above 0, such as 2.");
    if (epsilon < 1e-6 || epsilon > MAX_EPSILON) {
      throw new kit.Refusal("epsilon", `Epsilon is ${text.trim()}; write a number from 0.000001 to ${MAX_EPSILON}.`);
    }
    return epsilon;
  }

  function refuseSize(many, field) {
    if (many < 2) throw new kit.Refusal(field, "There is only one value; give at least two that people can have.");
    if (many > MAX_VALUES) {
      throw new kit.Refusal(field, `There are ${readable(many)} values, but this page takes ${MAX_VALUES}; use the Python package, or join neighbours.`);
    }
  }

  function krr(form, seen) {
    const epsilon = epsilonOf(form.epsilon), given = kit.read.labels(form.labels, "labels");
    const labels = given.length ? given : seen.labels, k = labels.length;
    refuseSize(k, given.length ? "labels" : "data");
    const unknown = seen.labels.find(each => !labels.includes(each));
    if (unknown !== undefined) {
      throw new kit.Refusal("labels", `The report ${shown(unknown)} is not in your list of all values; add it, or leave that field empty.`);
    }
    const other = 1 / (k - 1 + Math.exp(epsilon)), truth = Math.exp(epsilon) * other;
    const rows = labels.map((_, x) => Float64Array.from(labels, (_, z) => z === x ? truth : other));
    return { kind: "krr", epsilon, labels, reports: labels, rows };
  }

  function whole(text, what, field) {
    const value = kit.read.number(text.trim());
    if (!Number.isSafeInteger(value)) {
      throw new kit.Refusal(field, text.trim() ? `${what} is ${shown(text.trim())}; write a whole number.` : `Write ${what.toLowerCase()}, a whole number.`);
    }
    return value;
  }

  // geometric noise on a line: a report beyond an end is moved to it, or stays where it is
  function geometric(form, seen, isCut) {
    const epsilon = epsilonOf(form.epsilon), decay = Math.exp(-epsilon);
    const first = whole(form.first, "The first value", "first"), last = whole(form.last, "The last value", "last");
    if (last <= first) throw new kit.Refusal("last", `The last value, ${last}, must be greater than the first, ${first}; exchange the two, or change one.`);
    refuseSize(last - first + 1, "last");
    const places = seen.labels.map(each => kit.read.number(each));
    for (const [i, place] of places.entries()) {
      if (!Number.isSafeInteger(place)) {
        throw new kit.Refusal("data", `The report ${shown(seen.labels[i])} is not a whole number; geometric noise gives whole numbers, so change it or choose k-RR.`);
      }
      if (isCut && (place < first || place > last)) {
        throw new kit.Refusal("data", `The report ${place} lies outside ${first} to ${last}; change the ends, or choose geometric noise that is not cut.`);
      }
    }
    const twice = places.find((place, i) => places.indexOf(place) < i);
    if (twice !== undefined) throw new kit.Refusal("data", `The report ${twice} is written in two ways; write it once, with the sum of its counts.`);
    const values = Array.from({ length: last - first + 1 }, (_, i) => first + i);
    const sorted = isCut ? values : [...places].sort((a, b) => a - b);
    const inside = -Math.expm1(-epsilon) / (1 + decay), atEnd = 1 / (1 + decay);
    const factor = z => isCut && (z === first || z === last) ? atEnd : inside;
    // of a report beyond the ends, the probability is relative to that from the nearest end, which may be too small for a double
    const beyond = z => Math.max(0, first - z, z - last);
    const rows = values.map(x => Float64Array.from(sorted, z => factor(z) * Math.exp(-epsilon * (Math.abs(z - x) - beyond(z)))));
    return { kind: isCut ? "cut" : "uncut", epsilon, first, last, labels: values.map(String), reports: sorted.map(String), rows };
  }

  // numbers in rows, also as Python prints them; a heading names the reports, and a first column the values
  function readMatrix(text) {
    const plain = text.replace(/\]\s*,?\s*\[/g, "\n").replace(/[[\]]/g, ""), mark = kit.read.separator(plain);
    const table = kit.read.lines(plain).map(([line, at]) => [kit.read.fields(line.replace(/[,;\s]+$/, ""), mark), at]);
    if (!table.length) throw new kit.Refusal("matrix", "Paste the matrix: a row for each value, a column for each report, such as: 0.9, 0.1.");
    const isWord = cell => Number.isNaN(kit.read.number(cell)) && !/^[+-]?(nan|inf\w*)$/i.test(cell);
    const widest = Math.max(...table.map(([row]) => row.length));
    if (widest > MAX_COLUMNS + 1) {
      throw new kit.Refusal("matrix", `The matrix has ${readable(widest)} columns, but this page takes ${readable(MAX_COLUMNS)}; use the Python package for more.`);
    }
    const [top] = table[0], heads = top[0] === "" || (top.length > 1 && top.slice(1).every(isWord)) ? table.shift()[0] : null;
    if (!table.length) throw new kit.Refusal("matrix", "The matrix has no row of numbers; write one for each value that people can have.");
    const hasNames = heads?.[0] === "" || table.every(([row]) => row.length > 1 && isWord(row[0]));
    const labels = hasNames ? table.map(([row]) => row.shift()) : null;
    const columns = heads && hasNames && heads.length === table[0][0].length + 1 ? heads.slice(1) : heads;
    return { labels, columns, table };
  }

  function entries({ table, columns }) {
    const width = columns ? columns.length : table[0]?.[0].length;
    refuseSize(table.length, "matrix");
    return table.map(([cells, at], x) => {
      const row = `Row ${x + 1} of the matrix (line ${at})`;
      if (cells.length !== width) {
        throw new kit.Refusal("matrix", `${row} has ${cells.length} numbers, but there are ${width} columns; give each row one number for each report.`);
      }
      const numbers = Float64Array.from(cells, kit.read.number), wrong = numbers.findIndex(p => !(p >= 0 && p <= 1));
      if (wrong >= 0) throw new kit.Refusal("matrix", `${row} holds ${shown(cells[wrong])}; write a probability, a number from 0 to 1.`);
      const sum = numbers.reduce((a, b) => a + b, 0);
      if (Math.abs(sum - 1) > SUM_TOLERANCE) {
        throw new kit.Refusal("matrix", `${row} sums to ${Number(sum.toPrecision(10))} and must sum to 1; correct the row, or give more digits (fractions such as 1/3 are read).`);
      }
      return numbers;
    });
  }

  function matrix(form, seen) {
    const read = readMatrix(form.matrix), rows = entries(read), m = rows[0].length;
    const reports = read.columns || seen.labels;
    if (reports.length !== m) {
      throw new kit.Refusal("matrix", `The matrix has ${m} columns, but there are ${seen.labels.length} counts; name the columns in a first line, or write a count for each.`);
    }
    const labels = read.labels || (rows.length === m ? reports : rows.map((_, x) => `value ${x + 1}`));
    for (const names of [labels, reports]) {
      const twice = names.find((each, i) => names.indexOf(each) < i);
      if (twice !== undefined) throw new kit.Refusal("matrix", `The name ${shown(twice)} occurs twice in the matrix; give each row and each column a name of its own.`);
      if (names.some(each => !each)) throw new kit.Refusal("matrix", "A row or a column of the matrix has an empty name; name all of them, or none.");
    }
    const unknown = seen.labels.find(each => !reports.includes(each));
    if (unknown !== undefined) {
      throw new kit.Refusal("matrix", `The report ${shown(unknown)} has no column in the matrix; the columns are ${reports.slice(0, 4).map(shown).join(", ")}${reports.length > 4 ? " and more" : ""}, so rename one.`);
    }
    const never = seen.labels.find((each, i) => seen.counts[i] > 0 && rows.every(row => row[reports.indexOf(each)] === 0));
    if (never !== undefined) {
      throw new kit.Refusal("matrix", `The report ${shown(never)} was counted, but its column holds zeros only, so nobody can send it; correct the counts or the matrix.`);
    }
    return { kind: "matrix", labels, reports, rows };
  }

  const KINDS = {
    krr, matrix,
    cut: (form, seen) => geometric(form, seen, true),
    uncut: (form, seen) => geometric(form, seen, false),
  };

  /* The question that a form asks. `rows` and `q` are of the reports that came in, each column divided by its largest
     entry: that changes neither the maximum nor the gap. */
  function problem(form) {
    const isTable = form.kind === "reports";
    const seen = isTable ? kit.read.reports(form.data, Number(form.column) || 0, form.heading) : kit.read.counts(form.data);
    const mechanism = KINDS[form.mechanism](form, seen);
    const counted = new Map(seen.labels.map((each, i) => [mechanism.first === undefined ? each : String(kit.read.number(each)), seen.counts[i]]));
    const counts = mechanism.reports.map(each => counted.get(each) || 0);
    const came = counts.flatMap((many, z) => many > 0 ? [z] : []);
    const largest = came.map(z => Math.max(...mechanism.rows.map(row => row[z])));
    return {
      ...mechanism, counts, n: seen.n, level: Number(form.level),
      matrix: mechanism.rows,
      rows: mechanism.rows.map(row => Float64Array.from(came, (z, i) => row[z] / largest[i])),
      q: Float64Array.from(came, z => counts[z] / seen.n),
    };
  }

  kit.problem = problem;
})();
