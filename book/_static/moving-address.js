/* The setting of a moving figure stands in the address of the page, so that it can be sent and comes back on a reload:
   ?comb.steps=300, which is the figure's id without its prefix, the control, and the words that the control shows. Words
   and not places, because a place would show another setting, unnoticed, once a control offers more. The rest of the
   address stays as it is: its anchor, the other figures, and what book.js reads. */
(() => {
  "use strict";
  const PAUSE = 250; // milliseconds without a movement; browsers refuse an address that changes too often

  function address(box, spec, form) {
    const id = box.closest("figure")?.id ?? "", prefix = `${id.replace(/^fig-(moving-)?/, "")}.`;
    const note = document.createElement("p");
    note.className = "moving-note";
    note.setAttribute("role", "status");
    form.after(note);
    let timer = 0;

    // where the controls stand in the address: {} if it does not name them, null if it cannot be read
    function read() {
      const named = [...new URLSearchParams(location.search)].filter(([key]) => key.startsWith(prefix));
      const found = {};
      for (const [key, word] of named) {
        const control = spec.controls.find(each => prefix + each.name === key);
        const index = control ? control.values.indexOf(word) : -1;
        if (index < 0 || control.name in found) return null;
        found[control.name] = index;
      }
      return found;
    }

    function written(from) {
      const url = new URL(from);
      for (const { name, values } of spec.controls) url.searchParams.set(prefix + name, values[form.elements[name].value]);
      return url;
    }

    function write() {
      clearTimeout(timer);
      note.replaceChildren();
      timer = setTimeout(() => {
        try { history.replaceState(history.state, "", written(location)); } catch { /* the link below has it all the same */ }
      }, PAUSE);
    }

    function show(link, words) {
      const field = document.createElement("input");
      field.readOnly = true;
      field.value = link;
      field.setAttribute("aria-label", "Link to this setting");
      note.replaceChildren(words, field);
      field.select();
    }

    async function copy() {
      const local = location.protocol === "file:", published = document.querySelector("link[rel=canonical]")?.href;
      const url = written(local && published ? published : location);
      url.hash = id;
      if (url.protocol === "file:") { show(url.href, "This page is a file, so its link works on this machine only: "); return; }
      try {
        await navigator.clipboard.writeText(url.href);
        note.textContent = "The link to this setting is copied.";
      } catch { show(url.href, "Copy this link: "); }
    }

    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy the link to this setting";
    button.dataset.link = "";
    button.addEventListener("click", copy);
    form.append(button);

    const asked = read();
    if (!asked) note.textContent = "The address names a setting that this figure does not have, so the figure shows its first one.";
    return { asked: asked ?? {}, write };
  }

  window.ibukitMoving = { ...window.ibukitMoving, address };
})();
