"use strict";
(() => {
  const source = document.getElementById("threshold-data");
  if (source === null) return;
  const { start, points } = JSON.parse(source.textContent);
  const slider = document.getElementById("threshold-slider");

  const show = (index) => {
    const { words, at } = points[index];
    for (const element of document.querySelectorAll("[data-words]")) {
      element.textContent = words[element.dataset.words];
    }
    for (const element of document.querySelectorAll("[data-x]")) {
      const x = at[element.dataset.x];
      const y = element.dataset.y === undefined ? 0 : at[element.dataset.y];
      const known = x !== null && y !== null;
      if (known) element.setAttribute("transform", `translate(${x} ${y})`);
      element.setAttribute("visibility", known ? "visible" : "hidden");
    }
    slider.setAttribute("aria-valuetext", words.threshold);
  };

  slider.addEventListener("input", () => show(Number(slider.value)));
  document.getElementById("threshold-reset").addEventListener("click", () => {
    slider.value = start;
    show(start);
  });
  for (const element of document.querySelectorAll(".needs-script")) element.hidden = false;
  slider.value = start;
  show(start);
})();
