// What a stand-in does when a test uses it: it asks the host.
'use strict';

const { names, things } = require('./builtins.cjs');
const { must, stepOf } = require('./codec.cjs');

const { apply, defineProperty, get, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
const { setPrototypeOf } = Object;
const { isArray } = Array;
const ofFunctions = Function.prototype;
const NOT_STATIC = new Set(['length', 'name', 'prototype', 'arguments', 'caller']);
const ITERATORS = new Map([
  [Symbol.iterator, things.get('%Iterator%')], [Symbol.asyncIterator, things.get('%AsyncIterator%')],
]);
// What JavaScript itself asks of objects where values are compared, added, shown or awaited.
// Which of three methods makes a text or a number of it is a matter of style.
const ASKED = new Map([...[Symbol.toPrimitive, 'valueOf', 'toString'].map((key) => [key, 'toString']), ['toJSON', 'toJSON'], ['then', 'then']]);

function traps(judge) {
  const { infos } = judge;

  // What is answered here: by symbols that only this process knows, and what every function has.
  const isOurs = (key) =>
    typeof key === 'symbol' && !names.has(key) && !judge.theirIds.has(key) && Symbol.keyFor(key) === undefined;
  const isLocal = (target, key) =>
    isOurs(key) || (typeof target === 'function' && (NOT_STATIC.has(key) || (key in ofFunctions && !(key in Object.prototype))));

  // What a class of the test that extends one of the submission's has of its own.
  function* ownOf(prototype) {
    for (let at = prototype; at !== null && !infos.has(at); at = getPrototypeOf(at)) {
      for (const key of ownKeys(at)) if (key !== 'constructor') yield [key, getOwnPropertyDescriptor(at, key)];
    }
  }

  const overridden = (target, wanted) =>
    infos.get(target).derived && [...ownOf(getPrototypeOf(target))].find(([key]) => key === wanted)?.[1];

  function look(info, target, key, receiver) {
    const op = info.kind === 'o' ? ASKED.get(key) : undefined;
    const cx = judge.from(info, stepOf(op ?? key), { path: info.path && typeof key === 'string' && [...info.path, key] });
    if (op !== undefined && op !== 'then') judge.demand(info, op, `${cx.trail} decides, and does not for the reference`);
    const value = receiver.length === 0 ? judge.property(info, cx, key) : judge.ask('get', info, cx, key, ...receiver);
    if (op === 'then' && typeof value === 'function') judge.demand(info, op, `${judge.trailsOf(info)[0]} is awaited, but is no Promise`);
    if (value !== undefined || op !== undefined) return cx.path ? judge.named(value, cx.trail) : value;
    const test = judge.current();
    judge.contract.learn('missing', cx.trail, test);
    const [wanted, missing] = ['object', 'missing'].map((kind) => judge.contract.has(kind, cx.trail, test));
    // A name that is not there is never the error that a test waits for.
    return wanted && !missing ? judge.passedOn(() => {}, { entry: `missing:${cx.trail}`, why: `there is no ${cx.trail}` }) : value;
  }

  const change = (op) => (target, key, ...given) =>
    judge.ask(op, infos.get(target), { touched: judge.comparisons.freeze([target, ...given]) }, key, ...given);
  const [set, define] = ['set', 'defineProperty'].map(change);

  return {
    get(target, key, receiver) {
      const info = infos.get(target);
      if (key === Symbol.hasInstance && info.kind === 'f') {
        if (info.answers) judge.demand(info, 'hasInstance', `${info.name} answers instanceof by itself`);
        return ofFunctions[Symbol.hasInstance];
      }
      const own = overridden(target, key);
      if (own) return own.get === undefined ? own.value : apply(own.get, receiver, []);
      if (isLocal(target, key)) {
        const local = get(target, key);
        if (key === 'prototype' && infos.has(local)) infos.get(local).trails ??= judge.trailsOf(info, '.prototype');
        return local;
      }
      if (ITERATORS.has(key) && info.kind === 'o') return judge.iterable(judge.idOf(info), key, judge.trailsOf(info)[0]);
      const other = infos.get(receiver) ?? judge.theirIds.get(receiver); // an instance, or the copy of an error
      return look(info, target, key, other !== undefined && other !== info ? [receiver] : []);
    },
    set(target, key, value, receiver) {
      const own = overridden(target, key);
      if (own?.set !== undefined) return apply(own.set, receiver, [value]), true;
      if (isOurs(key)) return (target[key] = value), true;
      return set(target, key, value);
    },
    has: (target, key) => (isLocal(target, key) ? key in target : judge.ask('has', infos.get(target), {}, key)),
    deleteProperty: change('deleteProperty'),
    defineProperty(target, key, found) {
      if (found.configurable === false || isOurs(key)) defineProperty(target, key, found);
      return define(target, key, found);
    },
    getOwnPropertyDescriptor(target, key) {
      const kept = getOwnPropertyDescriptor(target, key);
      if (isLocal(target, key) || kept?.configurable === false) return kept;
      const info = infos.get(target);
      const found = judge.ask('getOwnPropertyDescriptor', info, judge.from(info, stepOf(key), { counts: false }), key);
      if (found === undefined) return undefined;
      const [enumerable, writable, value, getter, setter] = found;
      return { ...(getter || setter ? { get: getter, set: setter } : { value, writable }), enumerable, configurable: true };
    },
    ownKeys(target) {
      const told = judge.ask('ownKeys', infos.get(target), {});
      must(isArray(told) && told.every((key) => typeof key === 'string' || typeof key === 'symbol'));
      return [...new Set([...told.filter((key) => !isLocal(target, key)), ...ownKeys(target)])];
    },
    apply: (target, self, given) => judge.conclude(judge.call('call', infos.get(target), given, self)),
    construct(target, given, made) {
      const info = infos.get(target);
      if (infos.get(made) === info) return judge.comparisons.make(info, target, given);
      const methods = new Map();
      for (const [key, { value }] of ownOf(made.prototype)) {
        if (typeof value === 'function' && !methods.has(key)) methods.set(key, value);
      }
      const value = judge.conclude(judge.call('new', info, given, [...methods]));
      must(typeof value === 'object' && value !== null);
      const own = infos.get(value);
      if (own === undefined) return setPrototypeOf(value, made.prototype);
      own.derived = true;
      setPrototypeOf(own.target, made.prototype);
      return value;
    },
  };
}

module.exports = { ITERATORS, NOT_STATIC, traps };
