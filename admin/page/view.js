// What is looked at, kept in the address: a link shows somebody else the same.
"use strict";

const View = (() => {
  const state = new URLSearchParams(location.hash.slice(1));
  // Somebody has typed another address.
  addEventListener("hashchange", () => location.reload());

  return {
    get: (name) => state.get(name) ?? "",
    set(name, value) {
      if (View.get(name) === String(value)) return;
      if (value === "") state.delete(name);
      else state.set(name, value);
      history.replaceState(null, "", `#${state}`);
    },
  };
})();
