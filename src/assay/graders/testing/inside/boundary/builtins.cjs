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
// These make code of text: they stay where they are.
const MAKERS = /^(Function|eval|process|WebAssembly)\b/;

const names = new Map();
const things = new Map();
const shared = new Set();
// Data properties that a test may replace for a while.
const replaceable = [];

function add(thing, name, isShared = false) {
  if (thing === null || !['object', 'function', 'symbol'].includes(typeof thing) || names.has(thing)) return false;
  names.set(thing, name);
  things.set(name, thing);
  if (isShared && !MAKERS.test(name)) shared.add(name);
  return true;
}

const valueOf = (owner, key) =>
  getOwnPropertyDescriptor(owner, key)?.value ??
  (owner === globalThis && (key === 'process' || key === 'Buffer') ? owner[key] : undefined);

function members(owner, name) {
  for (const key of getOwnPropertyNames(owner)) {
    const value = valueOf(owner, key);
    if (!['function', 'symbol'].includes(typeof value) || key === 'constructor') continue;
    const isClass = typeof value.prototype === 'object' && value.prototype !== null && /^[A-Z]/.test(key);
    add(value, `${name}.${key}`, isClass || typeof value === 'symbol');
    if (isClass) add(value.prototype, `${name}.${key}.prototype`, true);
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

add(globalThis, 'globalThis');
for (const name of getOwnPropertyNames(globalThis)) {
  const thing = valueOf(globalThis, name);
  const isClass = /^[A-Z]/.test(name) && typeof thing === 'function' && typeof thing.prototype === 'object';
  if (!add(thing, name, isClass) || name === 'global') continue;
  if (isClass && add(thing.prototype, `${name}.prototype`, true)) members(thing.prototype, `${name}.prototype`);
  members(thing, name);
}
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
for (const [name, prototype] of Object.entries(hidden)) add(prototype, `%${name}%`, true);
for (const name of MODULES) {
  const api = require(`node:${name}`);
  add(api, name, typeof api === 'function');
  if (typeof api === 'function' && api.prototype) add(api.prototype, `${name}.prototype`, true);
  members(api, name);
  if (!STILL.test(name)) watch(api, name);
}
for (const name of ['Math', 'JSON', 'Date', 'console', 'process', 'Object', 'Array', 'Number', 'Promise', 'globalThis']) {
  watch(things.get(name), name);
}
for (const name of ['stdout', 'stderr']) {
  add(process[name], `process.${name}`);
  replaceable.push({ owner: process[name], name: `process.${name}`, key: 'write' });
}

module.exports = { names, replaceable, shared, things };
