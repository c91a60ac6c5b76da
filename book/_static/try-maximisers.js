/* Try your own counts: all maximisers of the likelihood. They share the probabilities of the reports, so they are the
   distributions on the secrets whose ratio can be 1 that have theta M = p: a polytope. If the rows of these secrets are
   independent it is a point; otherwise the simplex method finds the least and the greatest share of each. */
(() => {
  "use strict";
  const kit = globalThis.ibukitTry ||= {};
  const POINT = 1e-7; // a range that is narrower is a point, as in ibukit.theory.mle_set
  const SLOPE = 1e-9; // a smaller slope, or pivot, is rounding
  const REFRESH = 40; // pivots after which the dictionary is computed again

  /* Secrets that can have mass in some maximiser: with the gap G and q_z (u - 1 - log u) <= G, u_z = p_z / p*_z is at most
     1 + r_z, which bounds the ratio g_x of every maximiser. */
  function possible({ rows, q }, best) {
    const weights = q.map((share, z) => {
      const allowed = best.gap / share + 1e-15;
      return share * (1 + 2 / 3 * allowed + Math.sqrt(4 / 9 * allowed * allowed + 2 * allowed)) / best.p[z];
    });
    return [...rows.keys()].filter(x => rows[x].reduce((sum, entry, z) => sum + entry * weights[z], 0) >= 1);
  }

  // an orthonormal basis of the span of vectors, the longest remainder first
  function basisOf(vectors) {
    const left = vectors.map(vector => Float64Array.from(vector)), basis = [], size = vectors[0].length;
    const norm = vector => Math.sqrt(vector.reduce((sum, entry) => sum + entry * entry, 0));
    const floor = Math.max(...left.map(norm)) * Math.max(left.length, size) * 2.3e-16;
    while (basis.length < size && left.length) {
      const lengths = left.map(norm), longest = lengths.indexOf(Math.max(...lengths));
      if (lengths[longest] <= floor) break;
      const [unit] = left.splice(longest, 1);
      // once more against the basis: what was taken away before left rounding
      for (const other of basis) remove(unit, other);
      const length = norm(unit);
      if (length <= floor) continue;
      basis.push(unit.map(entry => entry / length));
      for (const vector of left) remove(vector, basis[basis.length - 1]);
    }
    return basis;
  }

  function remove(vector, unit) {
    let along = 0;
    for (let i = 0; i < unit.length; i++) along += vector[i] * unit[i];
    for (let i = 0; i < unit.length; i++) vector[i] -= along * unit[i];
  }

  function pivot(table, i, j) {
    const row = table[i], by = row[j];
    for (let l = 0; l < row.length; l++) row[l] /= by;
    table.forEach((other, r) => {
      const times = other[j];
      if (r !== i && times !== 0) for (let l = 0; l < row.length; l++) other[l] -= times * row[l];
    });
  }

  /* The equations solved for the variables of a basis, taken in the given order; the last column is the right side.
     `elements` has the variable of each row. */
  function dictionary(equations, right, order) {
    const table = equations.map((row, i) => Float64Array.from([...row, right[i]])), elements = Array(table.length).fill(-1);
    for (const j of order) {
      let found = -1;
      table.forEach((row, i) => {
        if (elements[i] < 0 && Math.abs(row[j]) > (found < 0 ? SLOPE : Math.abs(table[found][j]))) found = i;
      });
      if (found < 0) continue;
      pivot(table, found, j);
      elements[found] = j;
    }
    return { table, elements };
  }

  // the row that leaves as variable j moves from its value by a growing step, and that step
  function leaving(table, values, j, sign, elements) {
    let found = -1, length = Infinity;
    table.forEach((row, i) => {
      const fall = sign * row[j];
      if (fall <= SLOPE) return;
      const steps = Math.max(0, values(i)) / fall;
      if (steps < length || (steps === length && elements[i] < elements[found])) { found = i; length = steps; }
    });
    return [found, length];
  }

  // a vertex: positive variables outside of the basis fall to 0, or until another one is 0 and makes room
  function vertex(equations, theta) {
    const right = equations.map(row => row.reduce((sum, entry, x) => sum + entry * theta[x], 0));
    const order = [...theta.keys()].sort((x, y) => theta[y] - theta[x]);
    const now = Float64Array.from(theta), start = dictionary(equations, right, order);
    for (const j of order.filter(x => now[x] > 0 && !start.elements.includes(x))) {
      const [i, length] = leaving(start.table, row => now[start.elements[row]], j, -1, start.elements);
      const step = Math.min(length, now[j]);
      start.table.forEach((row, r) => { now[start.elements[r]] += step * row[j]; });
      now[j] -= step;
      if (length >= step && now[j] <= 0) { now[j] = 0; continue; }
      now[start.elements[i]] = 0;
      pivot(start.table, i, j);
      start.elements[i] = j;
    }
    return { right, ...dictionary(equations, right, [...start.elements, ...order.filter(x => !start.elements.includes(x))]) };
  }

  // the largest sign * theta_x from a vertex; what is basic at the end stays for the next question
  function extreme(equations, state, x, sign) {
    const last = equations[0].length;
    for (let pivots = 1; pivots < 20 * last; pivots++) {
      const { table, elements } = state, row = table[elements.indexOf(x)];
      const slope = j => row ? -sign * row[j] : (j === x ? sign : 0);
      let enter = -1;
      for (let j = 0; j < last; j++) {
        if (elements.includes(j) || slope(j) <= SLOPE) continue;
        // the steepest, and after many pivots the first, which cannot go round in circles
        if (enter < 0 || (pivots < 2 * last && slope(j) > slope(enter))) enter = j;
      }
      if (enter < 0) return row ? Math.max(0, row[last]) : 0;
      const [i] = leaving(table, r => table[r][last], enter, 1, elements);
      if (i < 0) break;
      pivot(table, i, enter);
      elements[i] = enter;
      if (pivots % REFRESH === 0) Object.assign(state, dictionary(equations, state.right, elements));
    }
    return NaN;
  }

  /* Whether the maximum is unique, and the ranges of all shares over all maximisers. k-RR and geometric noise need no
     computation: only values that were reported have mass, and their rows are independent. */
  function maximisers(problem, best) {
    const { rows, kind } = problem, point = { unique: true, lower: best.theta, upper: best.theta };
    if (kind !== "matrix") return point;
    const some = possible(problem, best);
    const columns = [some.map(() => 1), ...[...problem.q.keys()].map(z => some.map(x => rows[x][z]))];
    const equations = basisOf(columns);
    if (equations.length === some.length) return point;
    const inside = some.map(x => best.theta[x]), sum = inside.reduce((a, b) => a + b, 0);
    const state = vertex(equations, inside.map(share => share / sum));
    const lower = new Float64Array(rows.length), upper = new Float64Array(rows.length);
    some.forEach((x, i) => {
      upper[x] = extreme(equations, state, i, 1);
      lower[x] = extreme(equations, state, i, -1);
    });
    const isPoint = lower.every((low, x) => upper[x] - low <= POINT);
    return isPoint ? point : { unique: false, lower, upper };
  }

  kit.maximisers = maximisers;
})();
