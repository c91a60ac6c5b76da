// Right, space or Page Down: what is still hidden on this slide, then the next slide. Left or Page Up: back. D: dark or light.
// The number of the slide is in the address. Without this script, on paper and on a phone all slides stand one below the other.
const root = document.documentElement, slides = [...document.querySelectorAll(".slide")];
const paint = dark => { root.dataset.theme = dark ? "dark" : "light"; };
const preference = matchMedia("(prefers-color-scheme: dark)");
paint(preference.matches);
preference.addEventListener("change", event => paint(event.matches));

const wanted = () => Math.min(slides.length, Math.max(1, Number(location.hash.slice(1)) || 1)) - 1;
let at = wanted();
const show = i => {
  at = Math.min(slides.length - 1, Math.max(0, i));
  slides.forEach((slide, j) => slide.classList.toggle("shown", j === at));
  history.replaceState(null, "", `#${at + 1}`);
};
const forth = () => {
  const hidden = slides[at].querySelector(".later:not(.told)");
  if (hidden) hidden.classList.add("told"); else show(at + 1);
};
const back = () => show(at - 1);

const keys = {
  ArrowRight: forth, ArrowDown: forth, PageDown: forth, " ": forth,
  ArrowLeft: back, ArrowUp: back, PageUp: back,
  Home: () => show(0), End: () => show(slides.length - 1),
  d: () => paint(root.dataset.theme !== "dark"),
};
const pages = matchMedia("(min-width: 700px)");
addEventListener("keydown", event => {
  const action = keys[event.key];
  if (!action || !pages.matches || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === " " && event.target.closest("button")) return;
  event.preventDefault();
  action();
});
document.querySelector("[data-go=back]").addEventListener("click", back);
document.querySelector("[data-go=forth]").addEventListener("click", forth);
addEventListener("hashchange", () => show(wanted()));
root.classList.add("paged");
show(at);

// Words alone are set larger, and what is too much for a slide smaller, in steps of 4 %, until it fits.
const fit = () => slides.forEach(slide => {
  const content = slide.querySelector(".content");
  const full = () => [content, ...content.querySelectorAll("pre, figure, figcaption")]
    .some(e => e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1);
  const most = content.querySelector("figure") ? 1 : 1.4;
  for (let size = most; size >= 0.6; size -= 0.04) {
    slide.style.setProperty("--fit", size.toFixed(2));
    if (!full()) break;
  }
});
Promise.all([...document.images].map(image => image.decode().catch(() => {}))).then(fit);
