// What lies beside the page, loaded when it is needed. A page that was opened from a disk may fetch
// nothing, but load scripts: each file calls reportData with its name, the key of the report that
// it belongs to, and its content as JSON. The page's policy takes scripts from this script alone.
const filesBeside = (function () {
  const asked = new Map();
  const hearers = new Map();

  window.reportData = function (name, key, text) {
    const hear = hearers.get(name);
    if (hear) { hear(key, text); }
  };

  function ask(folder, name, key) {
    return new Promise(function (resolve, reject) {
      const script = document.createElement("script");
      hearers.set(name, function (foundKey, text) {
        if (foundKey === key) { resolve(JSON.parse(text)); }
      });
      // After a resolve these change nothing; a file of another report has resolved nothing.
      script.onload = function () { reject(new Error("of another report")); };
      script.onerror = function () { reject(new Error("not there")); };
      script.charset = "utf-8";
      script.src = encodeURIComponent(folder) + "/" + name + ".js";
      document.head.append(script);
    });
  }

  // Returns a promise of a file's content; one that was not there is asked for again next time.
  return function (folder, name, key) {
    if (!asked.has(name)) {
      const promise = ask(folder, name, key);
      asked.set(name, promise);
      promise.catch(function () { asked.delete(name); });
    }
    return asked.get(name);
  };
})();
