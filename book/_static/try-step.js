/* Try your own counts: one step of IBU, and what it tells. A distribution is a vector of shares; `rows` is the matrix of
   the reports that came in, and `q` their frequencies. */
(() => {
  "use strict";
  const kit = globalThis.ibukitTry ||= {};

  // the probabilities of the reports, theta M
  function forward(rows, theta) {
    const p = new Float64Array(rows[0].length);
    rows.forEach((row, x) => {
      if (theta[x] !== 0) for (let z = 0; z < p.length; z++) p[z] += theta[x] * row[z];
    });
    return p;
  }

  // g_x, by which a step of IBU multiplies the share of x
  function ratios(rows, q, p) {
    const quotients = q.map((share, z) => share / p[z]);
    return Float64Array.from(rows, row => {
      let sum = 0;
      for (let z = 0; z < row.length; z++) sum += row[z] * quotients[z];
      return sum;
    });
  }

  const uniform = k => new Float64Array(k).fill(1 / k);

  function step(rows, q, theta) {
    const g = ratios(rows, q, forward(rows, theta));
    return theta.map((share, x) => share * g[x]);
  }

  // mean log-likelihood, up to a constant of the reports; -Infinity if one of them has no probability
  function fitOf(q, p) {
    let sum = 0;
    for (let z = 0; z < q.length; z++) sum += q[z] * Math.log(p[z]);
    return sum;
  }

  // no distribution has a mean log-likelihood above that of theta by more than this
  const gap = (rows, q, theta) => Math.max(0, Math.log(Math.max(...ratios(rows, q, forward(rows, theta)))));

  const STEPS = [0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 7000, 10000];

  // the distributions after so many steps from the uniform one, each computed when it is first asked for
  function walk(rows, q) {
    const known = [uniform(rows.length)];
    return i => {
      while (known.length <= i) {
        let theta = known[known.length - 1];
        for (let t = STEPS[known.length - 1]; t < STEPS[known.length]; t++) theta = step(rows, q, theta);
        known.push(theta);
      }
      return known[i];
    };
  }

  kit.ibu = { forward, ratios, uniform, step, fitOf, gap, walk, STEPS };
})();
