/* Three secrets, some reports: the likelihood over the triangle of all distributions, its maxima, and the walk of IBU.
   A distribution is a list of three shares; on the picture the second is the height. Python computes the same for the
   still picture (scripts/moving_triangle.py); scripts/check_moving_figures.py holds the two against each other. */
(() => {
  "use strict";
  const HIGH = Math.sqrt(3) / 2;
  const CORNERS = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];

  const place = theta => [theta[2] + theta[1] / 2, theta[1] * HIGH];
  const plus = (theta, t, way) => theta.map((share, x) => share + t * way[x]);
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const column = (M, z) => M.map(row => row[z]);

  // the reports that came in: [share of the reports, column of the matrix]
  function seen(M, counts) {
    const n = counts.reduce((a, b) => a + b, 0);
    return counts.map((count, z) => [count / n, column(M, z)]).filter(([share]) => share > 0);
  }
  const likelihood = (reports, theta) => reports.reduce((sum, [q, m]) => sum + q * Math.log(dot(theta, m)), 0);
  // g_x, by which a step of IBU multiplies theta_x
  const ratios = (reports, theta) => [0, 1, 2].map(x => reports.reduce((sum, [q, m]) => sum + q * m[x] / dot(theta, m), 0));
  const step = (reports, theta) => ratios(reports, theta).map((g, x) => g * theta[x]);
  const gap = (reports, theta) => Math.max(0, Math.log(Math.max(...ratios(reports, theta))));

  // the place in [0, end] where a falling slope is zero
  function turn(slope, end) {
    if (slope(0) <= 0) return 0;
    if (slope(end) >= 0) return end;
    let low = 0, high = end;
    for (let i = 0; i < 60; i++) {
      const middle = (low + high) / 2;
      if (slope(middle) > 0) low = middle; else high = middle;
    }
    return (low + high) / 2;
  }

  // a maximum: the best second share, with the best division of the rest for each
  function maximum(reports) {
    const divided = up => {
      const point = t => [1 - up - t, up, t];
      return point(turn(t => { const g = ratios(reports, point(t)); return g[2] - g[0]; }, 1 - up));
    };
    // at the best division the slope upwards is against those of the others that are in use
    const slope = up => {
      const theta = divided(up), g = ratios(reports, theta);
      return g[1] - (up < 1 ? (theta[0] * g[0] + theta[2] * g[2]) / (1 - up) : Math.max(g[0], g[2]));
    };
    return divided(turn(slope, 1));
  }

  // the furthest that one can go from theta, in a direction whose shares sum to 0
  const edge = (theta, way) => Math.min(...[0, 1, 2].filter(x => way[x] < -1e-15).map(x => Math.max(0, -theta[x] / way[x])));

  // the ends of the set of maxima: all distributions that give the reports seen the same probabilities
  function maxima(reports) {
    if (!reports.length) return CORNERS;
    const best = maximum(reports);
    const across = m => [m[2] - m[1], m[0] - m[2], m[1] - m[0]]; // changes neither the sum nor the probability of m
    const size = v => Math.max(...v.map(Math.abs));
    const ways = reports.map(([, m]) => across(m)).filter(v => size(v) > 1e-12);
    if (!ways.length) return CORNERS;
    if (reports.some(([, m]) => Math.abs(dot(ways[0], m)) > 1e-12 * size(ways[0]))) return [best];
    const back = ways[0].map(share => -share);
    const ends = [plus(best, edge(best, back), back), plus(best, edge(best, ways[0]), ways[0])];
    return size(plus(ends[0], -1, ends[1])) < 1e-9 ? [best] : ends;
  }

  // the border of the distributions whose likelihood is at least a level: convex, so each ray leaves it once
  function region(reports, centre, level) {
    const from = place(centre);
    function leave(angle) {
      const up = Math.sin(angle) / HIGH, right = Math.cos(angle) - up / 2, way = [-up - right, up, right];
      const last = edge(centre, way);
      let low = 0, high = last;
      if (likelihood(reports, plus(centre, last, way)) >= level) low = last;
      else for (let i = 0; i < 40; i++) {
        const middle = (low + high) / 2;
        if (likelihood(reports, plus(centre, middle, way)) >= level) low = middle; else high = middle;
      }
      return [from[0] + low * Math.cos(angle), from[1] + low * Math.sin(angle)];
    }
    const border = [], far = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
    function between(angle, first, other, last, depth) {
      if (depth === 0 || far(first, last) < 0.015) return;
      const middle = (angle + other) / 2, there = leave(middle);
      between(angle, first, middle, there, depth - 1);
      border.push(there);
      between(middle, there, other, last, depth - 1);
    }
    for (let i = 0; i < 36; i++) {
      const angle = i * Math.PI / 18, next = angle + Math.PI / 18, here = leave(angle);
      border.push(here);
      between(angle, here, next, leave(next), 9);
    }
    return border;
  }

  // the distributions after the steps that are kept, up to the last
  function walk(reports, start, kept, last) {
    const way = [start];
    let theta = start;
    for (let i = 1; i <= last; i++) {
      theta = step(reports, theta);
      if (i === last || kept.includes(i)) way.push(theta);
    }
    return way;
  }

  const start = (spec, choice) => {
    const up = spec.shares[choice.up], right = (1 - up) * spec.shares[choice.right];
    return [1 - up - right, up, right];
  };

  function world(spec, choice) {
    const counts = ["one", "two", "three"].map(name => choice[name]), n = counts.reduce((a, b) => a + b, 0);
    const reports = n ? seen(spec.matrices[choice.mechanism], counts) : [];
    const ends = maxima(reports), centre = [0, 1, 2].map(x => ends.reduce((sum, end) => sum + end[x] / ends.length, 0));
    const last = n ? spec.steps[choice.steps] : 0, path = walk(reports, start(spec, choice), spec.kept, last);
    const now = path[path.length - 1], top = n ? likelihood(reports, centre) : 0;
    const found = {
      start: [place(path[0])], now: [place(now)], walk: path.map(place), ends: ends.map(place),
      shares: now.map(share => (100 * share).toFixed(1)).join(", "),
      missing: (n ? Math.max(0, top - likelihood(reports, now)) : 0).toFixed(4),
      gap: (n ? gap(reports, now) : 0).toFixed(4),
      maxima: spec.words[ends.length - 1],
    };
    spec.deficits.forEach((deficit, i) => {
      found[`region${i}`] = n ? region(reports, centre, top - deficit / n) : CORNERS.map(place);
    });
    return found;
  }

  // which controls put the start at a place of the picture, given as shares of its width and height
  function choose(spec, across, high) {
    const nearest = share => {
      const far = spec.shares.map(known => Math.abs(known - share));
      return far.indexOf(Math.min(...far));
    };
    const up = nearest(high);
    return { up, right: nearest((across - spec.shares[up] / 2) / (1 - spec.shares[up])) };
  }

  window.ibukitMoving = { ...window.ibukitMoving, triangle: { world, choose, seen, likelihood, step, gap, maxima } };
})();
