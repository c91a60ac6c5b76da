/* Try your own counts: the maximum of the likelihood. Newton's method on the shares that are above 0: at theta, with p =
   theta M and the ratios g, the function

       F(theta) = sum_z q_z log p_z - sum_x a_x theta_x,   theta >= 0,

   has the gradient g - a and the curvature J = M diag(q / p^2) M^T. Its maximum has a . theta = 1, so with all costs a = 1
   it is the most likely distribution, and with other costs a tilted one, which intervals need (try-interval.js). */
(() => {
  "use strict";
  const kit = globalThis.ibukitTry ||= {};
  const { forward, ratios, fitOf } = kit.ibu;
  const MAX_STEPS = 200, MAX_HALVINGS = 40, MAX_ENTERING = 20;
  const FINEST = 1e-15; // below it the gap is rounding
  const PATIENCE = 4; // steps without a smaller gap, after which rounding is in the way
  const RIDGE = 1e-13; // of the largest curvature: a model without a unique maximum has one then

  // lower Cholesky factor in place; false where the matrix is not positive definite
  function factorise(A) {
    for (let j = 0; j < A.length; j++) {
      for (let i = j; i < A.length; i++) {
        let sum = A[i][j];
        for (let l = 0; l < j; l++) sum -= A[i][l] * A[j][l];
        if (i > j) A[i][j] = sum / A[j][j];
        else if (sum > 0) A[j][j] = Math.sqrt(sum);
        else return false;
      }
    }
    return true;
  }

  function solve(L, b) {
    const y = Float64Array.from(b), size = y.length;
    for (let i = 0; i < size; i++) {
      for (let l = 0; l < i; l++) y[i] -= L[i][l] * y[l];
      y[i] /= L[i][i];
    }
    for (let i = size - 1; i >= 0; i--) {
      y[i] /= L[i][i];
      for (let l = 0; l < i; l++) y[l] -= L[i][l] * y[i];
    }
    return y;
  }

  /* The y >= 0 with the largest b . y - y H y / 2. All shares that violate its conditions change sides at once; if that
     does not lessen their number, the last one alone, which cannot go round in circles. */
  function quadratic(H, b, on) {
    let fewest = b.length + 1, patience = 3;
    for (let i = 0; i < 20 + 10 * b.length; i++) {
      const inside = on.flatMap((is, x) => is ? [x] : []);
      const L = inside.map(x => Float64Array.from(inside, y => H[x][y]));
      if (!factorise(L)) return null;
      const solved = solve(L, inside.map(x => b[x])), y = new Float64Array(b.length);
      inside.forEach((x, j) => { y[x] = solved[j]; });
      const wrong = on.flatMap((is, x) => {
        if (is) return y[x] < 0 ? [x] : [];
        let slope = b[x];
        for (const j of inside) slope -= H[x][j] * y[j];
        return slope > 1e-14 ? [x] : [];
      });
      if (!wrong.length) return y;
      patience = wrong.length < fewest ? 3 : patience - 1;
      fewest = Math.min(fewest, wrong.length);
      for (const x of patience >= 0 ? wrong : wrong.slice(-1)) on[x] = !on[x];
    }
    return null;
  }

  function curvature(rows, weights, some) {
    const H = some.map(() => new Float64Array(some.length));
    some.forEach((x, i) => {
      const weighted = rows[x].map((entry, z) => entry * weights[z]);
      for (let j = 0; j <= i; j++) {
        const other = rows[some[j]];
        let sum = 0;
        for (let z = 0; z < other.length; z++) sum += weighted[z] * other[z];
        H[i][j] = H[j][i] = sum;
      }
    });
    return H;
  }

  // where the quadratic model of F at theta is largest, over the shares above 0 and those that should rise most
  function target(rows, q, costs, { theta, p, g }) {
    const rising = g.map((ratio, x) => ratio - costs[x]);
    const entering = [...rising.keys()].filter(x => theta[x] === 0 && rising[x] > 0).sort((x, y) => rising[y] - rising[x]);
    const some = [...theta.keys()].filter(x => theta[x] > 0).concat(entering.slice(0, MAX_ENTERING));
    const H = curvature(rows, q.map((share, z) => share / (p[z] * p[z])), some);
    const largest = Math.max(...some.map((_, i) => H[i][i]));
    for (let ridge = RIDGE * largest, added = 0; ridge < largest; ridge *= 100) {
      some.forEach((_, i) => { H[i][i] += ridge - added; });
      added = ridge;
      const y = quadratic(H, some.map(x => g[x] + rising[x] + ridge * theta[x]), some.map(x => theta[x] > 0));
      if (!y) continue;
      const all = new Float64Array(theta.length);
      some.forEach((x, i) => { all[x] = y[i]; });
      return all;
    }
    return null;
  }

  // theta scaled so that a . theta = 1, with all that belongs to it
  function at(rows, q, costs, theta) {
    let scale = 0;
    theta.forEach((share, x) => { scale += share * costs[x]; });
    const scaled = theta.map(share => share / scale), p = forward(rows, scaled), g = ratios(rows, q, p);
    const off = Math.max(...g.map((ratio, x) => ratio / costs[x])) - 1;
    return { theta: scaled, p, g, fit: fitOf(q, p), off };
  }

  function maximise(rows, q, costs, start) {
    let point = at(rows, q, costs, start), best = point, patience = PATIENCE;
    for (let i = 0; i < MAX_STEPS && best.off > FINEST && patience > 0; i++) {
      const goal = target(rows, q, costs, point);
      if (!goal) break;
      let next = null;
      for (let j = 0, t = 1; j < MAX_HALVINGS && !next; j++, t /= 2) {
        const there = at(rows, q, costs, point.theta.map((share, x) => t === 1 ? goal[x] : share + t * (goal[x] - share)));
        if (there.fit >= point.fit - 1e-15 * (1 + Math.abs(point.fit))) next = there;
      }
      if (!next) break;
      point = next;
      patience = point.off < best.off ? PATIENCE : patience - (best.off < 1e-9 ? 1 : 0);
      if (point.off < best.off) best = point;
    }
    return best;
  }

  // the most likely distribution, with its gap
  function maximum(rows, q) {
    const ones = new Float64Array(rows.length).fill(1);
    let start = kit.ibu.uniform(rows.length);
    for (let i = 0; i < 20; i++) start = kit.ibu.step(rows, q, start);
    const best = maximise(rows, q, ones, start);
    return { ...best, gap: Math.max(0, Math.log1p(best.off)) };
  }

  kit.maximise = maximise;
  kit.maximum = maximum;
})();
