// How `import` finds what is not on disk; for either kind of node's module hooks.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { fileURLToPath } = require('node:url');

// Says of a file whether it is hidden, or in a place where only test code lives.
function author(root, hidden, testCode) {
  const known = new Set(hidden.map((file) => path.join(root, file)));
  const pattern = new RegExp(testCode);
  return (file) => known.has(file) || (file.startsWith(root + path.sep) && pattern.test(file.slice(root.length)));
}

const INSTALLED = /[/]node_modules[/]/;

// Whether a judge must not load a file: the source's version of what is judged, or one that was
// written while the tests ran.
function isSolution(file, root, isAuthors) {
  if (![root + path.sep, '/tmp/'].some((place) => file.startsWith(place)) || INSTALLED.test(file) || isAuthors(file)) return false;
  if (file.startsWith(__dirname + path.sep)) return false; // ours, wherever it lies
  try {
    return !/['"]node:test['"]/.test(fs.readFileSync(file, 'utf8'));
  } catch {
    return true;
  }
}

const MISSING = new Set([
  'ERR_MODULE_NOT_FOUND',
  'ERR_PACKAGE_PATH_NOT_EXPORTED',
  'ERR_UNSUPPORTED_DIR_IMPORT',
  'MODULE_NOT_FOUND',
]);
const SOLUTION = 'assay-solution:';

// With `ask`, which gives the source of a stand-in, what is not the author's is the submission's.
function hooks({ facade, text, sources, root, entry, authors, testCode, ask }) {
  const known = new Map(Object.entries(sources));
  const isAuthors = author(root, authors, testCode);
  const trusted = (url) =>
    url === entry || known.has(url) || (url.startsWith('file:') && isAuthors(fileURLToPath(url)));
  return {
    resolve(name, context, next) {
      const imported = context.conditions.includes('import');
      const counts = imported && name === 'node:test' && trusted(context.parentURL ?? '');
      if (counts || name === facade) return { url: facade, format: 'module', shortCircuit: true };
      if (ask === undefined) return next(name, context);
      const solution = () => {
        const url = SOLUTION + encodeURIComponent(JSON.stringify([context.parentURL, name]));
        return { url, format: 'module', shortCircuit: true };
      };
      const missing = (error) => {
        if (!MISSING.has(error.code)) throw error;
        return solution();
      };
      const known = (found) =>
        found.url.startsWith('file:') && isSolution(fileURLToPath(found.url), root, isAuthors) ? solution() : found;
      try {
        const found = next(name, context);
        return typeof found.then === 'function' ? found.then(known, missing) : known(found);
      } catch (error) {
        return missing(error);
      }
    },
    load(url, context, next) {
      if (url.startsWith(SOLUTION)) {
        const given = (source) => ({ format: 'module', source, shortCircuit: true });
        const source = ask(url);
        return typeof source === 'string' ? given(source) : source.then(given);
      }
      if (url === facade) return { format: 'module', source: text, shortCircuit: true };
      const served = known.get(url);
      if (served === undefined || served.format !== 'module') return next(url, context);
      return { ...served, shortCircuit: true };
    },
  };
}

module.exports = { author, hooks, isSolution };
