// Serves sources that are not on disk, and gives test files the node:test that counts.
'use strict';

const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const vm = require('node:vm');
const { randomBytes } = require('node:crypto');

const assert = require('node:assert');
const strict = require('node:assert/strict');

const { author, isSolution } = require('./node_hooks.cjs');

const { apply } = Reflect;
const { registerHooks } = Module;
const requireFrom = Module.prototype.require;
const { compileFunction, constants } = vm;
const bind = Function.prototype.call.bind.bind(Function.prototype.call);
const get = bind(Map.prototype.get);
const has = bind(Map.prototype.has);

// Where only test code lives: by the names that node's own runner goes by, and usual directories.
const TEST_CODE = /[/](tests|__tests__)[/]|^[/]test[/]|[.](test|spec)[.][cm]?[jt]sx?$/;
const PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname'];
const NEEDS_MODULE = /import statement|Unexpected token 'export'|import\.meta|await is only valid/;

// How node reads a file: 'module' or 'commonjs'.
function formatOf(file, source) {
  if (file.endsWith('.mjs')) return 'module';
  if (file.endsWith('.cjs')) return 'commonjs';
  for (let at = path.dirname(file); ; at = path.dirname(at)) {
    try {
      const { type } = JSON.parse(fs.readFileSync(path.join(at, 'package.json'), 'utf8'));
      if (type === 'module' || type === 'commonjs') return type;
      break;
    } catch {
      if (at === path.dirname(at)) break;
    }
  }
  try {
    compileFunction(source.replace(/^#!.*/, ''), PARAMETERS);
  } catch (error) {
    if (NEEDS_MODULE.test(error.message)) return 'module';
  }
  return 'commonjs';
}

// With a `judge`, the submission is in another process, and the hidden files (`authors`) on disk.
function loader({ hidden, entry, root, judge, authors = [] }) {
  const sources = new Map();
  const formats = new Map();
  for (const [file, text] of Object.entries(hidden)) {
    sources.set(file, text.replace(/^\uFEFF/, '').replace(/^#!.*/, ''));
    formats.set(file, formatOf(file, text));
  }
  const isAuthors = author(root, authors, TEST_CODE.source);
  const trusted = (file) => file === entry || has(sources, file) || isAuthors(file);
  const builtins = new Map();
  for (const [name, value] of [['assert', assert], ['assert/strict', strict]]) {
    builtins.set(name, value);
    builtins.set(`node:${name}`, value);
  }
  let counting;

  function compile(module, source, file) {
    const native = Module.createRequire(file);
    const guarded = function require(name) {
      if (name === 'node:test') return counting;
      if (has(builtins, name)) return get(builtins, name);
      return apply(requireFrom, module, [name]);
    };
    for (const name of ['resolve', 'cache', 'extensions']) guarded[name] = native[name];
    guarded.main = process.mainModule;
    const imported =
      constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER ??
      ((name) => import(/^[./]/.test(name) ? new URL(name, pathToFileURL(file)).href : name));
    const options = { filename: file, importModuleDynamically: imported };
    let run;
    try {
      run = compileFunction(`'use strict';${source}`, PARAMETERS, options);
    } catch {
      run = compileFunction(source, PARAMETERS, options);
    }
    apply(run, module.exports, [module.exports, guarded, module, file, path.dirname(file)]);
  }

  function hookRequire() {
    const plain = Module._extensions['.js'];
    Module._extensions['.js'] = (module, file) => {
      if (!trusted(file)) return plain(module, file);
      const source = get(sources, file) ?? fs.readFileSync(file, 'utf8');
      if ((get(formats, file) ?? formatOf(file, source)) === 'module') return plain(module, file);
      return compile(module, source, file);
    };
  }

  async function hookImport(facade) {
    const byUrl = {};
    for (const [file, source] of sources) {
      byUrl[pathToFileURL(file).href] = { format: formatOf(file, source), source };
    }
    const names = Object.keys(counting).filter((name) => name !== 'default');
    const settings = {
      facade,
      text: `const api = process[Symbol.for(${JSON.stringify(facade)})];
export default api;
export const { ${names.join(', ')} } = api;`,
      sources: byUrl,
      root,
      authors,
      entry: pathToFileURL(entry).href,
      testCode: TEST_CODE.source,
    };
    const source = judge && require('./boundary/modules.cjs').importer(judge);
    if (registerHooks !== undefined) {
      registerHooks(require('./node_hooks.cjs').hooks({ ...settings, ask: source }));
    } else {
      const { port1, port2 } = new MessageChannel();
      port1.on('message', (url) => port1.postMessage({ url, source: source(url) })).unref();
      Module.register(pathToFileURL(path.join(__dirname, 'node_hooks.mjs')), {
        data: { ...settings, port: judge && port2 },
        transferList: judge && [port2],
      });
    }
    for (const name of ['register', 'registerHooks']) {
      if (Module[name]) Object.defineProperty(Module, name, { value() { throw new Error(`module.${name} is not available while tests run`); } });
    }
    Module.syncBuiltinESMExports();
    const handle = Symbol.for(facade);
    process[handle] = counting;
    await import(facade);
    delete process[handle];
  }

  // Nobody asked for what we use to be warned of.
  function hushWarnings() {
    const { emitWarning } = process;
    process.emitWarning = (warning, ...others) => {
      if (!`${warning}`.startsWith('vm.USE_MAIN_CONTEXT')) emitWarning(warning, ...others);
    };
  }

  // Run the test file, as the main module.
  async function run(api) {
    counting = api;
    hushWarnings();
    if (judge !== undefined) require('./boundary/modules.cjs').hookRequire(judge, (file) => !isSolution(file, root, trusted));
    hookRequire();
    const facade = `assay-test:${randomBytes(16).toString('hex')}`;
    await hookImport(facade);
    process.argv[1] = entry;
    judge?.surroundings.remember();
    const source = sources.get(entry) ?? fs.readFileSync(entry, 'utf8');
    if (/ts$/.test(entry) || formatOf(entry, source) === 'module') {
      await import(pathToFileURL(entry).href);
      return;
    }
    const main = new Module(entry, null);
    main.id = '.';
    main.filename = entry;
    main.paths = Module._nodeModulePaths(path.dirname(entry));
    process.mainModule = main;
    Module._cache[entry] = main;
    compile(main, source, entry);
    main.loaded = true;
  }

  return { run };
}

module.exports = { loader };
