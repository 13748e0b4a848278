// Search in the names of the API, and in the titles and the text of the sections of other pages. The
// list is loaded when the box is first used. Without scripts the box is not shown; "All names" lists the names of the API.
"use strict";
(() => {
  const root = document.currentScript.dataset.root;
  const form = document.querySelector(".search");
  const box = form.querySelector("input");
  const list = form.querySelector("ol");
  let entries = null;
  let chosen = -1;

  // Pages opened as files may not fetch, so the list is a script that calls this.
  window.searchEntries = (loaded) => {
    entries = loaded;
    show();
  };

  function load() {
    if (entries !== null) return;
    entries = [];
    const script = document.createElement("script");
    script.src = root + "search-entries.js";
    document.head.append(script);
  }

  // Returns how well an entry matches: the lower the better, -1 if it does not.
  function rank([title, , , body], words) {
    const text = title.toLowerCase();
    if (!words.every((word) => text.includes(word))) {
      return words.every((word) => text.includes(word) || body.includes(word)) ? 4 : -1;
    }
    const last = text.split("::").pop();
    if (last === words[0]) return 0;
    if (text.startsWith(words[0])) return 1;
    return last.startsWith(words[0]) ? 2 : 3;
  }

  function show() {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    chosen = -1;
    const found = words.length === 0 ? [] : entries
      .map((entry) => [rank(entry, words), entry])
      .filter((pair) => pair[0] >= 0)
      .sort((a, b) => a[0] - b[0] || a[1][0].length - b[1][0].length)
      .slice(0, 14);
    list.replaceChildren(...found.map(([, [title, address, where]]) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = root + address;
      link.append(title);
      const place = document.createElement("small");
      place.append(where);
      link.append(place);
      item.append(link);
      return item;
    }));
    if (words.length && entries.length && !found.length) {
      const item = document.createElement("li");
      item.append("Nothing contains these words.");
      list.append(item);
    }
  }

  function move(by) {
    const links = [...list.querySelectorAll("a")];
    if (!links.length) return;
    links[chosen]?.classList.remove("chosen");
    chosen = (chosen + by + links.length) % links.length;
    links[chosen].classList.add("chosen");
    links[chosen].scrollIntoView({block: "nearest"});
  }

  form.hidden = false;
  box.addEventListener("focus", load);
  box.addEventListener("input", () => { load(); show(); });
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Escape") { box.value = ""; show(); box.blur(); }
    else return;
    event.preventDefault();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const links = list.querySelectorAll("a");
    links[Math.max(chosen, 0)]?.click();
  });
  document.addEventListener("click", (event) => {
    if (!form.contains(event.target)) list.replaceChildren();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target === box || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    box.focus();
  });
})();
