/* Try your own counts: what is typed, pasted or loaded, read into labels and numbers. Whatever cannot be read is answered
   by one sentence, a Refusal, which names the field that it belongs to. */
(() => {
  "use strict";
  const kit = globalThis.ibukitTry ||= {};
  const MAX_COUNT = 1e12; // sums of counts must be exact in doubles
  const MAX_LABEL = 60;
  const MAX_SEEN_REPORTS = 1000;

  class Refusal extends Error {
    constructor(field, sentence) { super(sentence); this.field = field; }
  }

  const shown = text => `“${text.length > 30 ? `${text.slice(0, 30)}…` : text}”`;
  const readable = number => number.toLocaleString("en-GB");
  // the lines that are not empty, each with its number
  const lines = text => text.replace(/^\ufeff/, "").split(/\r\n|\r|\n/)
    .map((line, i) => [line.trim(), i + 1]).filter(([line]) => line);

  // what separates the fields of a table; in a line without any of these it is the last space
  const separator = text => ["\t", ";", ","].find(mark => text.includes(mark)) || "";

  function fields(line, mark) {
    if (!mark) return line.split(/\s+/);
    const found = [];
    let field = "", quoted = false;
    for (let i = 0; i < line.length; i++) {
      const letter = line[i];
      if (quoted && letter === '"' && line[i + 1] === '"') { field += '"'; i++; }
      else if (letter === '"' && (quoted || !field.trim())) quoted = !quoted;
      else if (letter === mark && !quoted) { found.push(field.trim()); field = ""; }
      else field += letter;
    }
    return [...found, field.trim()];
  }

  // a number, or a fraction such as 1/3; NaN for everything else
  function number(text) {
    const plain = /^\d+,\d+$/.test(text) ? text.replace(",", ".") : text;
    const one = part => /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(part.trim()) ? Number(part) : NaN;
    const parts = plain.split("/");
    return parts.length === 2 ? one(parts[0]) / one(parts[1]) : one(plain);
  }

  function label(text, line) {
    if (!text) throw new Refusal("data", `Line ${line} has no value; write a value and its count, such as: bus, 52.`);
    if (text.length > MAX_LABEL) {
      throw new Refusal("data", `The value in line ${line} has ${readable(text.length)} characters; shorten it to ${MAX_LABEL} at most.`);
    }
    return text;
  }

  function count(text, name, line) {
    const value = number(text), of = `Line ${line}: the count of ${shown(name)} is`;
    if (Number.isNaN(value)) {
      throw new Refusal("data", `${of} ${shown(text)}, which is not a number; write a whole number, or choose “one report” under “Each line holds”.`);
    }
    if (value < 0) throw new Refusal("data", `${of} ${text}, and a count cannot be negative; write 0 or more.`);
    if (value > MAX_COUNT) throw new Refusal("data", `${of} ${text}; this page takes counts up to ${readable(MAX_COUNT)}, so write a smaller one.`);
    if (!Number.isInteger(value)) {
      throw new Refusal("data", `${of} ${text}; write how many reports there were, a whole number, and not their share.`);
    }
    return value;
  }

  const tooMany = many => new Refusal("data",
    `There are ${readable(many)} different reports, but this page takes ${readable(MAX_SEEN_REPORTS)}; use the Python package for more.`);

  // a value and its count from a line; the separator of a line without any is the space before the last word
  function pair(text, mark, line) {
    const parts = mark ? fields(text, mark) : [text.replace(/[\s:=]+\S+$/, ""), text.match(/\S+$/)[0]];
    while (parts.length > 2 && !parts[parts.length - 1]) parts.pop();
    if (parts.length < 2 || (!mark && parts[0] === text)) {
      throw new Refusal("data",
        `Line ${line} has no count; write a value and its count, such as: bus, 52, or choose “one report” under “Each line holds”.`);
    }
    if (parts.length > 2) {
      throw new Refusal("data", `Line ${line} has ${readable(parts.length)} parts; write a value and its count only, such as: bus, 1200.`);
    }
    return parts;
  }

  // a value and its count in each line; a first line whose count is a word is a heading
  function readCounts(text) {
    const all = lines(text), mark = separator(text), found = new Map(), seen = new Map();
    if (!all.length) throw new Refusal("data", "Type, paste or load your counts: a value and its count in each line, such as: bus, 52.");
    if (all.length > MAX_SEEN_REPORTS + 1) throw tooMany(all.length);
    for (const [i, [line, at]] of all.entries()) {
      const [name, many] = pair(line, mark, at);
      if (i === 0 && all.length > 1 && /^[a-z_ ]+$/i.test(many) && !/^(nan|inf|infinity|none|null)$/i.test(many)) continue;
      if (found.has(name)) {
        throw new Refusal("data", `${shown(name)} occurs in lines ${seen.get(name)} and ${at}; write it once, with the sum of its counts.`);
      }
      found.set(label(name, at), count(many, name, at));
      seen.set(name, at);
    }
    return total([...found.keys()], [...found.values()]);
  }

  // the names of the columns of a table of reports; one column where there is no separator
  function columns(text) {
    const first = lines(text.slice(0, 100_000))[0];
    return first ? fields(first[0], separator(first[0]) || "\n") : [];
  }

  // one report in each line, from a column of a table
  function readReports(text, column, hasHeading) {
    const all = lines(text), counts = new Map();
    if (!all.length) throw new Refusal("data", "Type, paste or load your reports, one in each line.");
    const mark = separator(all[0][0]) || "\n", body = hasHeading ? all.slice(1) : all;
    if (!body.length) throw new Refusal("data", "There is nothing below the first line; untick “the first line is a heading” if it is a report.");
    for (const [line, at] of body) {
      const cell = mark === "\n" ? line.replace(/^"(.*)"$/, "$1") : fields(line, mark)[column];
      if (!cell) throw new Refusal("data", `Line ${at} has no report in column ${column + 1}; write it, or delete the line.`);
      counts.set(label(cell, at), (counts.get(cell) || 0) + 1);
      if (counts.size > MAX_SEEN_REPORTS) throw tooMany(counts.size);
    }
    return total([...counts.keys()], [...counts.values()]);
  }

  /* What the lines of a text hold. Two fields of which the second is a number are a report and its count. Of a table it is
     the column with the fewest different entries, but more than one. An entry of it that comes back is no heading. */
  function guess(text) {
    const all = lines(text.slice(0, 1_000_000)), mark = all.length ? separator(all[0][0]) || "\n" : "\n";
    const rows = all.map(([line]) => mark === "\n" ? [line] : fields(line, mark)), width = rows[0]?.length ?? 0;
    const isPair = ([name, many, ...more]) => name && !Number.isNaN(number(many ?? "")) && more.every(each => !each);
    const spaced = mark === "\n" && all.every(([line], i) => i === 0 || !Number.isNaN(number(line.match(/[\s:=](\S+)$/)?.[1] ?? "")));
    if (!all.length || spaced || (width === 2 && rows.slice(1).every(isPair))) return { kind: "counts" };
    const different = rows[0].map((_, i) => new Set(rows.slice(1).map(row => row[i])).size);
    const most = different.map(many => many > 1 ? many : Infinity), column = most.indexOf(Math.min(...most));
    return { kind: "reports", column: String(column), heading: !rows.slice(1).some(row => row[column] === rows[0][column]) };
  }

  function total(labels, counts) {
    const n = counts.reduce((sum, each) => sum + each, 0);
    if (n === 0) throw new Refusal("data", "All counts are 0; write at least one report.");
    if (n > MAX_COUNT) throw new Refusal("data", `There are ${readable(n)} reports, but this page takes ${readable(MAX_COUNT)}; use the Python package for more.`);
    return { labels, counts, n };
  }

  // names in one line, between commas or semicolons
  function readLabels(text, field) {
    const mark = ["\n", ";", ","].find(each => text.trim().includes(each)) || "\n";
    const found = text.split(mark).map(each => each.trim()).filter(Boolean);
    for (const [i, each] of found.entries()) {
      if (found.indexOf(each) < i) throw new Refusal(field, `${shown(each)} is listed twice among all values; list it once.`);
      if (each.length > MAX_LABEL) throw new Refusal(field, `${shown(each)} has ${readable(each.length)} characters; shorten it to ${MAX_LABEL} at most.`);
    }
    return found;
  }

  kit.Refusal = Refusal;
  kit.read = { counts: readCounts, reports: readReports, columns, labels: readLabels, guess, number, lines, separator, fields, shown, readable };
})();
