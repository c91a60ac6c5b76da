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

// What is folded is printed, too.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("div.cell details, details.phone-fold")) fold.open = true;
});
