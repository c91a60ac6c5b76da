// The copy button of a cell takes along the cells that it needs, so that what is pasted runs. A
// command for a whole cell, such as %%capture, would be an error below its first line.
{
  const alone = window.copyTargetText; // of sphinx-copybutton
  const button = number => document.querySelector(`div.cell.shown-${number} .cell_input .copybtn`);
  window.copyTargetText = trigger => {
    const classes = [...(trigger.closest("div.cell")?.classList ?? [])];
    const needed = classes.filter(name => name.startsWith("needs-")).map(name => button(name.slice(6)));
    return [...needed, trigger].filter(Boolean).map(alone)
      .map(text => text.replace(/^%%.*\n/, "")).join("\n\n");
  };
}
