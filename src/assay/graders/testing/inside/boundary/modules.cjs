// What is not the author's is the submission's: `require` and `import` of it give stand-ins.
'use strict';

const Module = require('node:module');
const { fileURLToPath } = require('node:url');

const { parse, stringify } = JSON;
const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;

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
    const isTheirs = !Module.isBuiltin(name) && parent?.filename && isElsewhere(name, parent, isMain);
    return isTheirs ? judge.load(parent.filename, name, 'require') : load(name, parent, isMain);
  };
}

// Gives the source of a module that exports what one of the submission's does.
function importer(judge) {
  const loaded = new Map();
  process[Symbol.for('assay.solution')] = (url) => loaded.get(url)();
  return (url) => {
    const [parent, name] = parse(decodeURIComponent(url.slice(url.indexOf(':') + 1)));
    let names = [];
    try {
      const values = judge.load(fileURLToPath(parent), name, 'import');
      names = Reflect.ownKeys(values).filter((key) => typeof key === 'string' && IDENTIFIER.test(key));
      loaded.set(url, () => names.map((key) => values[key]));
    } catch (error) {
      loaded.set(url, () => { throw error; });
    }
    return `const [${names.map((_, at) => `v${at}`)}] = process[Symbol.for('assay.solution')](${stringify(url)});
export { ${names.map((key, at) => `v${at} as ${key}`)} };`;
  };
}

module.exports = { hookRequire, importer };
