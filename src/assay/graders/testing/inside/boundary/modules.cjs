// What is not the author's is the submission's: `require` and `import` of it give stand-ins.
'use strict';

const Module = require('node:module');
const { fileURLToPath } = require('node:url');

const { must } = require('./codec.cjs');

const { stringify } = JSON;
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;
const PLACE = Symbol.for('assay.solution');

// `isHere` says of a file whether it is to be loaded in this process.
function hookRequire(judge, isHere) {
  const load = Module._load;
  const isElsewhere = (name, parent, isMain) => {
    try {
      return !isHere(Module._resolveFilename(name, parent, isMain));
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
      return true;
    }
  };
  Module._load = (name, parent, isMain) => {
    if (Module.isBuiltin(name) || !parent?.filename || !isElsewhere(name, parent, isMain)) {
      return load(name, parent, isMain);
    }
    return judge.load(parent.filename, name, 'require');
  };
}

// Gives the source of a module that exports what one of the submission's does.
function importer(judge) {
  const loaded = new Map();
  process[PLACE] = (url) => loaded.get(url)();
  return (url) => {
    const [parent, name] = JSON.parse(decodeURIComponent(url.slice(url.indexOf(':') + 1)));
    const call = `process[Symbol.for('assay.solution')](${stringify(url)})`;
    let values;
    try {
      values = judge.load(fileURLToPath(parent), name, 'import');
      must(values instanceof Map);
    } catch (error) {
      loaded.set(url, () => { throw error; });
      return call;
    }
    const names = [...values.keys()].filter((key) => typeof key === 'string' && IDENTIFIER.test(key));
    loaded.set(url, () => names.map((key) => values.get(key)));
    const own = names.map((_, at) => `v${at}`);
    return `const [${own.join(', ')}] = ${call};
export { ${names.map((key, at) => `v${at} as ${key}`).join(', ')} };`;
  };
}

module.exports = { hookRequire, importer };
