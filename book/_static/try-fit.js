/* Try your own counts: whether the mechanism can have made such reports. The deviance compares the best fit with the
   frequencies themselves. If the mechanism is right it is at most that of the truth, which follows chi-square with one
   degree of freedom less than there are reports; so its tail bounds the p-value, as in ibukit's fit_test. */
(() => {
  "use strict";
  const kit = globalThis.ibukitTry ||= {};
  const MIN_EXPECTED = 5; // reports of each kind, below which chi-square is no approximation
  const MAX_TERMS = 10000;
  const ROUNDING = 1e-4; // a deviance that is not larger is 0

  // logarithm of the gamma function, by Stirling's series beyond 10
  function logGamma(a) {
    let shift = 0;
    for (; a < 10; a++) shift -= Math.log(a);
    const square = a * a;
    return shift + (a - 0.5) * Math.log(a) - a + 0.5 * Math.log(2 * Math.PI)
      + (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * square)) / square) / square) / a;
  }

  // the probability that chi-square with some degrees of freedom is above a value
  function chiSquareTail(freedom, value) {
    const a = freedom / 2, x = value / 2;
    if (x <= 0) return 1;
    const scale = Math.exp(a * Math.log(x) - x - logGamma(a));
    if (x < a + 1) { // the series of the lower tail
      let term = 1 / a, sum = term;
      for (let i = 1; i < MAX_TERMS && term > 1e-17 * sum; i++) { term *= x / (a + i); sum += term; }
      return 1 - scale * sum;
    }
    // the continued fraction of the upper tail (Lentz)
    let b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (let i = 1, change = 0; i < MAX_TERMS && Math.abs(change - 1) > 1e-15; i++) {
      const each = -i * (i - a);
      b += 2;
      d = 1 / (each * d + b);
      c = b + each / c;
      change = c * d;
      h *= change;
    }
    return scale * h;
  }

  // a bound of the p-value; 1 where nothing can be said
  function fit({ kind, n, counts, matrix }, best) {
    if (kind === "uncut") return 1;
    const expected = kit.ibu.forward(matrix, best.theta).map(p => n * p);
    if (expected.some(each => each > 0 && each < MIN_EXPECTED)) return 1;
    let deviance = 0;
    counts.forEach((many, z) => { if (many > 0) deviance += 2 * many * Math.log(many / expected[z]); });
    return deviance <= ROUNDING ? 1 : chiSquareTail(counts.length - 1, deviance);
  }

  kit.fit = fit;
  kit.tail = chiSquareTail;
})();
