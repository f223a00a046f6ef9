// Makes values hold still while assert compares them. It asks an array for its length, a set for
// its size and its members, more than once and through methods that the value may bring along. A
// value that could answer differently each time is compared as what it says once.
'use strict';

const types = require('node:util').types;

const { apply, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
const { create, defineProperty, setPrototypeOf } = Object;
const { isArray } = Array;
const { isMap, isProxy, isSet } = types;
const bind = Function.prototype.call.bind.bind(Function.prototype.call);
const isEnumerable = bind(Object.prototype.propertyIsEnumerable);
const eachOfMap = bind(Map.prototype.forEach);
const eachOfSet = bind(Set.prototype.forEach);
const put = bind(Map.prototype.set);
const get = bind(Map.prototype.get);
const has = bind(Map.prototype.has);
const add = bind(Set.prototype.add);
const includes = bind(Set.prototype.has);

// What assert asks of each kind, as the language has it.
const VIEW = ['buffer', 'byteLength', 'byteOffset', 'length'];
const KINDS = [
  [isMap, Map.prototype, ['size', 'get', 'has', Symbol.iterator]],
  [isSet, Set.prototype, ['size', 'has', Symbol.iterator]],
  [types.isTypedArray, getPrototypeOf(Uint8Array.prototype), VIEW],
  [types.isDataView, DataView.prototype, VIEW],
].map(([is, prototype, names]) => ({
  is,
  members: names.map((name) => ({ name, plain: getOwnPropertyDescriptor(prototype, name) })),
}));

// Whose contents are not their properties: these cannot be copied.
const EXOTIC = [
  'isAnyArrayBuffer',
  'isArrayBufferView',
  'isBoxedPrimitive',
  'isDate',
  'isExternal',
  'isGeneratorObject',
  'isModuleNamespaceObject',
  'isNativeError',
  'isPromise',
  'isRegExp',
  'isWeakMap',
  'isWeakSet',
].map((name) => types[name]);

// What a lookup would find, without calling anything.
function find(value, name) {
  for (let at = value; at !== null && !isProxy(at); at = getPrototypeOf(at)) {
    const found = getOwnPropertyDescriptor(at, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

// Whether a value answers what assert asks by methods of its own.
function answersByItself(value) {
  for (let i = 0; i < KINDS.length; i += 1) {
    const { is, members } = KINDS[i];
    if (!is(value)) continue;
    for (let j = 0; j < members.length; j += 1) {
      const found = find(value, members[j].name);
      const { plain } = members[j];
      if (found?.value !== plain?.value || found?.get !== plain?.get) return true;
    }
  }
  return false;
}

// Whether anything in a value may change while it is looked at.
function moves(value, seen) {
  if (value === null || typeof value !== 'object' || includes(seen, value)) return false;
  if (isProxy(value) || answersByItself(value)) return true;
  add(seen, value);
  let found = false;
  const look = (item, key) => {
    found = found || moves(item, seen) || moves(key, seen);
  };
  if (isMap(value)) eachOfMap(value, look);
  else if (isSet(value)) eachOfSet(value, look);
  if (found || types.isArrayBufferView(value)) return found;
  const keys = ownKeys(value);
  for (let i = 0; i < keys.length; i += 1) {
    const property = getOwnPropertyDescriptor(value, keys[i]);
    if (property.enumerable && (property.get !== undefined || moves(property.value, seen))) {
      return true;
    }
  }
  return false;
}

function emptyLike(value) {
  if (isArray(value)) return [];
  if (isMap(value)) return new Map();
  if (isSet(value)) return new Set();
  for (let i = 0; i < EXOTIC.length; i += 1) if (EXOTIC[i](value)) return undefined;
  return create(null);
}

// What a value says once. Loose comparisons do not look at prototypes, so they get plain ones.
function copied(value, copies, loose) {
  if (value === null || typeof value !== 'object') return value;
  if (has(copies, value)) return get(copies, value);
  const copy = emptyLike(value);
  if (copy === undefined) {
    if (moves(value, new Set())) {
      throw new TypeError('an object that changes while it is looked at cannot be compared');
    }
    return value;
  }
  put(copies, value, copy);
  const still = (item) => copied(item, copies, loose);
  if (isMap(copy)) eachOfMap(value, (item, key) => put(copy, still(key), still(item)));
  else if (isSet(copy)) eachOfSet(value, (item) => add(copy, still(item)));
  else if (isArray(copy)) copy.length = value.length;
  const collection = isMap(copy) || isSet(copy);
  const keys = ownKeys(value);
  for (let i = 0; i < keys.length; i += 1) {
    const key = keys[i];
    const said = collection && (key === 'size' || key === Symbol.iterator);
    if (said || !isEnumerable(value, key)) continue;
    const item = still(value[key]);
    defineProperty(copy, key, { value: item, enumerable: true, writable: true, configurable: true });
  }
  return collection && loose ? copy : setPrototypeOf(copy, getPrototypeOf(value));
}

// A comparison of two values that hold still.
function comparing(original, loose) {
  const compare = function (actual, expected, ...others) {
    if (arguments.length < 2) return apply(original, this, arguments);
    const seen = new Set();
    if (!moves(actual, seen) && !moves(expected, seen)) return apply(original, this, arguments);
    const copies = new Map();
    const still = [copied(actual, copies, loose), copied(expected, copies, loose)];
    return apply(original, this, [still[0], still[1], ...others]);
  };
  return defineProperty(compare, 'name', { value: original.name });
}

const LOOSE = new Set(['deepEqual', 'notDeepEqual']);
const DEEP = ['deepEqual', 'deepStrictEqual', 'notDeepEqual', 'notDeepStrictEqual'];
const made = new Map();

// Put comparisons of still values into an object that has comparisons.
function holdStill(api, names = [...DEEP, 'partialDeepStrictEqual']) {
  for (const name of names) {
    const original = api?.[name];
    if (typeof original !== 'function') continue;
    if (!made.has(original)) {
      const compare = comparing(original, LOOSE.has(original.name));
      made.set(original, compare).set(compare, compare);
    }
    defineProperty(api, name, { value: made.get(original), enumerable: true });
  }
}

module.exports = { holdStill };
