// Hides the text of tests. A solution is handed their functions - a callback, the function that
// called it - and a function tells its source to whoever asks, in whatever realm he asks.
'use strict';

const vm = require('node:vm');

const { apply, getPrototypeOf } = Reflect;
const { defineProperty } = Object;
const { toString } = Function.prototype;
const { createContext, isContext, runInContext, runInNewContext } = vm;
const inScript = vm.Script.prototype.runInNewContext;
const bind = Function.prototype.call.bind.bind(Function.prototype.call);
const includes = bind(String.prototype.includes);

function hideText(texts) {
  const hiding = {
    toString() {
      const text = apply(toString, this, []);
      for (let i = 0; i < texts.length; i += 1) {
        if (includes(texts[i], text)) return 'function () { [native code] }';
      }
      return text;
    },
  }.toString;
  const install = (prototype) =>
    defineProperty(prototype, 'toString', { value: hiding, writable: true, configurable: true });

  // A realm's own function says where the realm keeps its functions' methods; its globals may be
  // anything.
  function create(object = {}, options = {}) {
    const known = typeof object === 'object' && object !== null && isContext(object);
    const context = createContext(object, options);
    if (!known) install(getPrototypeOf(runInContext('(() => {})', context)));
    return context;
  }

  // The options of a script that are its new context's.
  function ofContext(options) {
    if (options === null || typeof options !== 'object') return {};
    const { contextName, contextOrigin, contextCodeGeneration, microtaskMode } = options;
    const given = { microtaskMode };
    if (contextName !== undefined) given.name = contextName;
    if (contextOrigin !== undefined) given.origin = contextOrigin;
    if (contextCodeGeneration !== undefined) given.codeGeneration = contextCodeGeneration;
    return given;
  }

  install(Function.prototype);
  vm.createContext = create;
  vm.runInNewContext = (code, object, options) =>
    runInNewContext(code, create(object, ofContext(options)), options);
  defineProperty(vm.Script.prototype, 'runInNewContext', {
    value: function (object, options) {
      return apply(inScript, this, [create(object, ofContext(options)), options]);
    },
    writable: true,
    configurable: true,
  });
}

module.exports = { hideText };
