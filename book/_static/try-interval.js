/* Try your own counts: the profile likelihood interval of a share. It holds every value that some distribution gives the
   share whose log-likelihood is below the maximum by at most z^2 / 2, z the normal quantile of the level. A distribution
   that maximises f with the costs a_x = 1 - rho w_x is the most likely one with its w . theta; the end is at the tilt rho
   from 0 to 1 at which f has fallen to the floor. */
(() => {
  "use strict";
  const kit = globalThis.ibukitTry ||= {};
  const { forward, fitOf } = kit.ibu;
  const QUANTILES = { 0.9: 1.6448536269514722, 0.95: 1.959963984540054, 0.99: 2.5758293035489004 };
  const MAX_TILTS = 80, FIRST_TILT = 1e-3;
  const CLOSE = 1e-10; // of the fall of f, whose square root is proportional to the width

  const dot = (w, theta) => { let sum = 0; theta.forEach((share, x) => { sum += w[x] * share; }); return sum; };

  // the most likely distribution on the secrets of a face; its fit is -Infinity if they cannot give all reports
  function fitOnFace(rows, q, best, face) {
    const own = rows.filter((_, x) => face[x]);
    if (!q.every((_, z) => own.some(row => row[z] > 0))) return -Infinity;
    // part of the start is uniform, so that every report has a probability
    const start = Float64Array.from(best.theta.filter((_, x) => face[x]), share => share + 0.01 / own.length);
    return kit.maximise(own, q, new Float64Array(own.length).fill(1), start).fit;
  }

  function tilted(rows, q, w, rho, start) {
    const found = kit.maximise(rows, q, w.map(weight => 1 - rho * weight), start);
    const sum = found.theta.reduce((a, b) => a + b, 0), theta = found.theta.map(share => share / sum);
    const p = forward(rows, theta);
    return { theta, p, fit: fitOf(q, p), answer: dot(w, theta) };
  }

  // w . theta where the segment from a point inside to one outside leaves
  function between(q, inside, outside, floor) {
    let low = 0, high = 1;
    for (let i = 0; i < 60; i++) {
      const middle = (low + high) / 2;
      const fit = fitOf(q, inside.p.map((each, z) => each + middle * (outside.p[z] - each)));
      if (fit >= floor) low = middle; else high = middle;
    }
    return inside.answer + low * (outside.answer - inside.answer);
  }

  // the largest w . theta, for weights from 0 to 1, over the distributions whose fit is at least the floor
  function highest(rows, q, best, w, floor) {
    if (best.theta.every((share, x) => share === 0 || w[x] === 1)) return 1;
    if (fitOnFace(rows, q, best, w.map(weight => weight === 1 ? 1 : 0)) >= floor) return 1;
    const wanted = Math.sqrt(best.fit - floor);
    let inside = { ...best, answer: dot(w, best.theta) }, outside = null;
    let low = 0, below = -wanted, high = 1, above = Infinity, rho = FIRST_TILT, side = 0;
    // regula falsi that halves the value at an end which stays (Illinois)
    for (let i = 0; i < MAX_TILTS && rho > low && rho < high; i++) {
      const point = tilted(rows, q, w, rho, inside.theta);
      const miss = Math.sqrt(Math.max(best.fit - point.fit, 0)) - wanted;
      if (Math.abs(miss) <= CLOSE * wanted) return point.answer;
      if (miss < 0) {
        [low, below, inside] = [rho, miss, point];
        if (side < 0) above /= 2;
        side = -1;
      } else {
        [high, above, outside] = [rho, miss, point];
        if (side > 0) below /= 2;
        side = 1;
      }
      rho = outside ? low + (high - low) * below / (below - above)
        : Math.min(1.05 * low * wanted / Math.max(wanted + below, 1e-12 * wanted), (low + high) / 2);
    }
    if (outside) return between(q, inside, outside, floor);
    // A secret that hardly gives the reports seen takes no mass at any tilt below 1. Beyond it, mass moves to it alone.
    const corners = [...rows.keys()].filter(y => w[y] === 1).map(y => ({ p: rows[y], answer: 1 }));
    return Math.max(...corners.map(corner => between(q, inside, corner, floor)));
  }

  // the interval of the share of secret x
  function profile({ rows, q, n, level }, best, x) {
    const floor = best.fit - QUANTILES[level] ** 2 / 2 / n;
    const own = Float64Array.from(rows, (_, y) => y === x ? 1 : 0), others = own.map(weight => 1 - weight);
    return [1 - highest(rows, q, best, others, floor), highest(rows, q, best, own, floor)];
  }

  kit.profile = profile;
})();
