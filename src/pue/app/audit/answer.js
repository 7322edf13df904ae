"use strict";
(() => {
  const data = JSON.parse(document.getElementById("rows").textContent);
  const { header, rows, answer, hidden, images, name, key } = data;
  const byId = (id) => document.getElementById(id);
  const given = rows.map((row) => row[answer]);
  let at = 0;
  let stored = true;

  // The browser writes its storage when it has time, and a reload can come first; the entry of the history is there at
  // once, but goes with the tab. Both are kept, and the one that has seen more steps is read.
  let steps = 0;
  const keep = () => {
    const now = { given, at, steps: ++steps };
    history.replaceState(now, "");
    try {
      localStorage.setItem(key, JSON.stringify(now));
    } catch {
      stored = false;
    }
  };
  const held = [history.state];
  try {
    held.push(JSON.parse(localStorage.getItem(key)));
  } catch {
    stored = false;
  }
  const count = (one) => Number(one.steps) || 0;
  const whole = held.filter((one) => one && Array.isArray(one.given) && one.given.length === rows.length);
  if (whole.length > 0) {
    const old = whole.reduce((best, one) => (count(one) > count(best) ? one : best));
    old.given.forEach((value, index) => { if (typeof value === "string" && value !== "") given[index] = value; });
    at = Math.min(Math.max(0, Number(old.at) || 0), rows.length);
    steps = count(old);
  } else {
    at = Math.max(0, given.indexOf(""));
  }

  const words = { yes: "yes", no: "no", "?": "unknown" };
  const show = () => {
    const done = given.filter((value) => value !== "").length;
    byId("progress").value = done;
    byId("count").textContent = `${done} of ${rows.length} answered`;
    byId("stored").textContent = stored
      ? "Answers are kept in this browser; save them to a file when you are done."
      : "This browser keeps nothing: save before you close the page.";
    const over = at >= rows.length;
    byId("place").textContent = over ? "That was the last row." : `Row ${at + 1} of ${rows.length}`;
    byId("said").textContent = over || given[at] === "" ? "" : `Answered: ${words[given[at]] ?? given[at]}`;
    for (const button of document.querySelectorAll("[data-answer]")) {
      button.setAttribute("aria-pressed", String(!over && given[at] === button.dataset.answer));
      button.disabled = over;
    }
    const picture = byId("picture");
    const shown = over ? undefined : images[at];
    picture.hidden = shown === undefined || shown === null;
    if (!picture.hidden) picture.src = shown;
    else picture.removeAttribute("src");
    const list = byId("fields");
    list.replaceChildren();
    if (over) return;
    header.forEach((title, column) => {
      if (column === answer || hidden.includes(column)) return;
      const term = document.createElement("dt");
      const value = document.createElement("dd");
      term.textContent = title;
      value.textContent = rows[at][column].replace(/^'(?=\s*[=+\-@\t\r\n])/, "");
      list.append(term, value);
    });
  };

  const move = (to) => {
    at = Math.min(Math.max(0, to), rows.length);
    keep();
    show();
    scrollTo(0, 0);
  };
  const say = (what) => {
    if (at >= rows.length) return;
    given[at] = what;
    move(at + 1);
  };
  const cell = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const save = () => {
    const lines = [header, ...rows.map((row, index) => row.map((text, column) => (column === answer ? given[index] : text)))];
    const text = "\ufeff" + lines.map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  const keys = {
    y: () => say("yes"), n: () => say("no"), "?": () => say("?"), u: () => say("?"),
    backspace: () => move(at - 1), arrowleft: () => move(at - 1), arrowright: () => move(at + 1), s: save,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = keys[event.key.toLowerCase()];
    if (act === undefined) return;
    event.preventDefault();
    act();
  });
  for (const button of document.querySelectorAll("[data-answer]")) {
    button.addEventListener("click", () => say(button.dataset.answer));
  }
  byId("back").addEventListener("click", () => move(at - 1));
  byId("save").addEventListener("click", save);
  byId("progress").max = rows.length;
  show();
})();
