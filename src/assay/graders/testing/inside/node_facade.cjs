// The node:test that test files see: node's own, with every function that a test file hands over
// wrapped, so that whether a test ran to its end is known from the test itself and not only from
// what the runner prints. Everybody else gets plain node:test, whose tests do not count.
'use strict';

const { AsyncLocalStorage } = require('node:async_hooks');
const nodeTest = require('node:test');

const { apply } = Reflect;
const { create, defineProperty, freeze, getOwnPropertyDescriptors } = Object;
const bind = Function.prototype.call.bind.bind(Function.prototype.call);
const runInside = bind(AsyncLocalStorage.prototype.run);
const innermost = bind(AsyncLocalStorage.prototype.getStore);
const has = bind(Set.prototype.has);
const inspect = String;

// What tests compute with. Not what tests themselves replace for a while: clocks, timers, chance.
const { getOwnPropertyDescriptor, is, values } = Object;
const { ownKeys } = Reflect;
const WATCHED = [
  Array, Array.prototype, JSON, Map.prototype, Math, Number, Number.prototype, Object,
  RegExp.prototype, Set.prototype, String, String.prototype,
];
const PRISTINE = [];
for (const owner of WATCHED) {
  for (const key of ownKeys(owner)) {
    if (key === 'random') continue;
    const { value, get } = getOwnPropertyDescriptor(owner, key);
    PRISTINE[PRISTINE.length] = { owner, key, value, get };
  }
}

// The name of a built-in that is not what it was.
function replaced() {
  for (let i = 0; i < PRISTINE.length; i += 1) {
    const { owner, key, value, get } = PRISTINE[i];
    const now = getOwnPropertyDescriptor(owner, key);
    if (now === undefined || !is(now.value, value) || now.get !== get) return String(key);
  }
  return undefined;
}

const SEPARATOR = ' > ';
const TESTS = ['test', 'it'];
const SUITES = ['describe', 'suite'];
const VARIANTS = ['skip', 'todo', 'only'];

// The name, options and function of a test, as node reads them.
function read(name, options, fn) {
  if (typeof name === 'function') fn = name;
  else if (name !== null && typeof name === 'object') {
    fn = options;
    options = name;
  } else if (typeof options === 'function') fn = options;
  if (options === null || typeof options !== 'object') options = {};
  if (typeof fn !== 'function') fn = undefined;
  if (typeof name !== 'string' || name === '') name = fn?.name || '<anonymous>';
  return { name, options, fn };
}

function wordsOf(error) {
  try {
    return inspect(error?.message ?? error);
  } catch {
    return 'an error that cannot be shown';
  }
}

// Node looks at both to decide how to call a test.
function shapedLike(fn, wrapped) {
  defineProperty(wrapped, 'length', { value: fn.length });
  defineProperty(wrapped, 'name', { value: fn.name });
  return wrapped;
}

function facade({ tell, skip, only, ending }) {
  const within = new AsyncLocalStorage();
  let count = 0;
  let loaded = false;
  let plant;

  function ran(serial, failure) {
    tell('ran', { __proto__: null, serial, ok: failure === undefined, message: failure ?? '' });
  }

  // Give a test's own context a `test` that counts too.
  function adopt(context, path) {
    const original = context?.test;
    if (typeof original !== 'function') return context;
    const own = (...given) => {
      const { name, options, fn } = read(given[0], given[1], given[2]);
      return register((...words) => apply(original, context, words), path, name, options, fn);
    };
    defineProperty(context, 'test', { value: own });
    return context;
  }

  function body(serial, path, fn) {
    const test = { path, ended: false, failure: undefined };
    const begin = () => {
      tell('start', { __proto__: null, serial });
      // Not by the test, which may: it has not begun.
      const name = replaced();
      if (name !== undefined) test.failure = `the built-in ${name} was replaced`;
    };
    const end = (failure) => {
      test.ended = true;
      ran(serial, ending(test, failure));
    };
    if (fn.length === 2) {
      return shapedLike(fn, function (context, done) {
        begin();
        const ended = (error) => {
          end(error ? wordsOf(error) : undefined);
          return done(error);
        };
        try {
          return runInside(within, test, () => apply(fn, this, [adopt(context, path), ended]));
        } catch (error) {
          end(wordsOf(error));
          throw error;
        }
      });
    }
    return shapedLike(fn, async function (context) {
      begin();
      try {
        const result = runInside(within, test, () => apply(fn, this, [adopt(context, path)]));
        // At once, before anybody puts back what a test that is over was computed with.
        if (typeof result?.then !== 'function') {
          end(undefined);
          return;
        }
        await result;
      } catch (error) {
        end(wordsOf(error));
        throw error;
      }
      end(undefined);
    });
  }

  function register(original, above, name, options, fn) {
    const path = above === '' ? name : above + SEPARATOR + name;
    const serial = count;
    count += 1;
    tell('registered', { __proto__: null, serial, id: path, empty: fn === undefined });
    const again = has(skip, path) ? { ...options, skip: 'it ended the process before' } : options;
    const begun = fn === undefined ? original(name, again) : original(name, again, body(serial, path, fn));
    if (loaded) plantNow();
    return begun;
  }

  function plantNow() {
    const planted = plant;
    plant = undefined;
    if (planted !== undefined) planted();
  }

  const wrapTest = (original) => (...given) => {
    const { name, options, fn } = read(given[0], given[1], given[2]);
    return register(original, innermost(within)?.path ?? '', name, options, fn);
  };

  const wrapSuite = (original) => (...given) => {
    const { name, options, fn } = read(given[0], given[1], given[2]);
    const above = innermost(within)?.path ?? '';
    const path = above === '' ? name : above + SEPARATOR + name;
    const inner = fn && shapedLike(fn, function (...words) {
      return runInside(within, { path }, () => apply(fn, this, words));
    });
    return inner === undefined ? original(name, options) : original(name, options, inner);
  };

  function wrap(name, original, kind) {
    const wrapped = kind(original);
    for (const variant of VARIANTS) {
      if (typeof original[variant] === 'function') wrapped[variant] = kind(original[variant]);
    }
    return defineProperty(wrapped, 'name', { value: name });
  }

  const wrapped = create(null);
  for (const name of TESTS) wrapped[name] = wrap(name, nodeTest[name], wrapTest);
  for (const name of SUITES) {
    if (nodeTest[name] !== undefined) wrapped[name] = wrap(name, nodeTest[name], wrapSuite);
  }
  const exported = wrapped.test;
  for (const [name, descriptor] of Object.entries(getOwnPropertyDescriptors(nodeTest))) {
    if (['length', 'name', 'prototype', ...VARIANTS].includes(name)) continue;
    const value = name in wrapped ? { value: wrapped[name], enumerable: true } : descriptor;
    defineProperty(exported, name, { ...value, configurable: true });
  }
  for (const name of [...TESTS, ...SUITES]) {
    if (wrapped[name] !== undefined) freeze(wrapped[name]);
  }

  return {
    exports: exported,
    count: () => count,
    // The test, or the suite, that code runs on behalf of.
    current: () => innermost(within),
    // A test that must fail, registered behind the file's own and only if it has any.
    plantWhenUsed(name, fail) {
      plant = () => void nodeTest.test(name, only ? { only } : {}, fail);
    },
    loaded() {
      loaded = true;
      if (count > 0) plantNow();
    },
  };
}

module.exports = { facade };
