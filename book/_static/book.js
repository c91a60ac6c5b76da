// On a phone every piece of code folds; without this script it is simply there.
document.addEventListener("DOMContentLoaded", () => {
  if (!matchMedia("(max-width: 600px)").matches) return;
  for (const input of document.querySelectorAll("div.cell div.cell_input")) {
    if (input.closest("details")) continue;
    const fold = document.createElement("details"), title = document.createElement("summary");
    fold.className = "phone-fold";
    title.textContent = "Show the code";
    fold.addEventListener("toggle", () => { title.textContent = fold.open ? "Hide the code" : "Show the code"; });
    input.before(fold);
    fold.append(title, input);
  }
});

// The arrow that opens a part of the contents has no name of its own.
document.addEventListener("DOMContentLoaded", () => {
  for (const arrow of document.querySelectorAll(".bd-links .has-children summary")) {
    const page = arrow.closest(".has-children").querySelector("a");
    arrow.setAttribute("aria-label", `Pages below ${page ? page.textContent.trim() : "this one"}`);
  }
});

// What is folded is printed, too.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("div.cell details, details.phone-fold")) fold.open = true;
});

// On a phone a formula in a line may be wider than the page, which would cut it off.
addEventListener("load", async () => {
  if (!matchMedia("(max-width: 600px)").matches) return;
  await window.MathJax?.startup?.promise;
  const formulas = [...document.querySelectorAll(".bd-article span.math")];
  const column = formula => formula.closest("p, li, dd, dt, td, div").clientWidth;
  const wide = formulas.filter(formula => formula.firstElementChild?.offsetWidth > column(formula));
  for (const formula of wide) formula.classList.add("wide-formula");
});
