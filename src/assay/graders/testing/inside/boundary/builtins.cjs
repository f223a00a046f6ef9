// What both ends have of their own, by name: it never crosses, only its name does.
'use strict';

const { getOwnPropertyDescriptor, getOwnPropertyNames, getPrototypeOf } = Object;

const MODULES = [
  'buffer', 'child_process', 'crypto', 'dns', 'events', 'fs', 'fs/promises', 'http', 'https',
  'net', 'os', 'path', 'readline', 'stream', 'string_decoder', 'timers', 'timers/promises', 'url',
  'util', 'zlib',
];
// What nobody replaces, so that less is looked at before each call.
const STILL = /^(buffer|events|net|path|readline|stream|string_decoder|url|util|zlib)$/;
const REPLACED = ['Math', 'JSON', 'Date', 'console', 'process', 'Object', 'Array', 'Number', 'Promise', 'globalThis'];
// These make code of text: they stay where they are.
const MAKERS = /^(Function|eval|process|WebAssembly)\b/;
const hidden = {
  TypedArray: getPrototypeOf(Uint8Array.prototype),
  Iterator: getPrototypeOf(getPrototypeOf([][Symbol.iterator]())),
  ArrayIterator: getPrototypeOf([][Symbol.iterator]()),
  MapIterator: getPrototypeOf(new Map().entries()),
  SetIterator: getPrototypeOf(new Set().values()),
  AsyncIterator: getPrototypeOf(getPrototypeOf(getPrototypeOf((async function* () {})()))),
  Generator: getPrototypeOf(getPrototypeOf((function* () {})())),
  AsyncGenerator: getPrototypeOf(getPrototypeOf((async function* () {})())),
};

const names = new Map();
const things = new Map();
const shared = new Set();
// Data properties that a test may replace for a while.
const replaceable = [];

const valueOf = (owner, key) =>
  getOwnPropertyDescriptor(owner, key)?.value ??
  (owner === globalThis && (key === 'process' || key === 'Buffer') ? owner[key] : undefined);

// Names something that has no name yet, its functions and, so many levels down, theirs.
function add(thing, name, levels, isShared = typeof thing === 'symbol') {
  if (thing === null || !['object', 'function', 'symbol'].includes(typeof thing) || names.has(thing)) return;
  const hasInstances = typeof thing === 'function' && typeof thing.prototype === 'object' && thing.prototype !== null;
  const isClass = hasInstances && (isShared || /(^|\.)[A-Z]\w*$/.test(name));
  names.set(thing, name);
  things.set(name, thing);
  if ((isShared || isClass) && !MAKERS.test(name)) shared.add(name);
  if (isClass) add(thing.prototype, `${name}.prototype`, levels, true);
  for (const key of levels > 0 ? getOwnPropertyNames(thing) : []) {
    const value = valueOf(thing, key);
    if (['function', 'symbol'].includes(typeof value) && key !== 'constructor') add(value, `${name}.${key}`, levels - 1);
  }
}

function watch(owner, name) {
  for (const key of getOwnPropertyNames(owner)) {
    const found = getOwnPropertyDescriptor(owner, key);
    if ('value' in found && (found.writable || found.configurable) && !/^_|^exitCode$|^mainModule$|^env$/.test(key)) {
      replaceable.push({ owner, name, key, plain: found.value });
    }
  }
}

add(globalThis, 'globalThis', 0);
for (const name of getOwnPropertyNames(globalThis)) add(valueOf(globalThis, name), name, 1);
for (const [name, prototype] of Object.entries(hidden)) add(prototype, `%${name}%`, 0, true);
for (const name of MODULES) {
  const api = require(`node:${name}`);
  add(api, name, 1, typeof api === 'function');
  if (!STILL.test(name)) watch(api, name);
}
for (const name of REPLACED) watch(things.get(name), name);
for (const name of ['stdout', 'stderr']) {
  add(process[name], `process.${name}`, 0);
  replaceable.push({ owner: process[name], name: `process.${name}`, key: 'write' });
}

module.exports = { names, replaceable, shared, things };
