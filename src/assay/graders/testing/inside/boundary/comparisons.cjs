// What tests make, and what they compare: instances are equal if what they hold is. They are compared as they
// were before the submission was told anything else, and fields that are the same for near misses decide nothing.
'use strict';

const assert = require('node:assert');
const { types } = require('node:util');

const { labelled, must, put } = require('./codec.cjs');
const { NEAR } = require('./questions.cjs');

const { apply, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
const { create, is, setPrototypeOf } = Object;
const { isArray } = Array;
const { stringify } = JSON;
const COMPARISONS = [
  'deepEqual', 'deepStrictEqual', 'notDeepEqual', 'notDeepStrictEqual', 'partialDeepStrictEqual', 'isDeepStrictEqual',
];

class Comparisons {
  constructor(judge) {
    this.judge = judge;
    this.live = new Set(); // instances that the reference compared in this test
    this.plain = new Map(); // classes: the prototype of copies
  }

  // A test ends.
  end() {
    this.live.clear();
    this.judge.questions?.answered.clear();
  }

  // What a test makes of plain values to compare with it is not made before something else is
  // asked of it: the host is not told what is expected.
  make(info, target, given) {
    const { judge } = this;
    const cx = judge.from(info, '()');
    const [recipe, isWhole] = this.recipeOf(info, given);
    const { contract } = judge;
    const [isCompared, raises] = ['op:equal', 'raises'].map((kind) => contract.has(kind, cx.trail, judge.current()));
    if (contract.learns || !isWhole || !isCompared || raises) {
      const answer = judge.call('new', info, given, null);
      if (!answer.ok) contract.learn('raises', cx.trail, judge.current());
      const value = judge.conclude(answer);
      must(typeof value === 'object' && value !== null);
      const own = judge.infos.get(value);
      if (own !== undefined) own.recipe = recipe;
      return value;
    }
    const made = judge.standIn(create(target.prototype), { kind: 'o', name: info.name, trails: [cx.trail], recipe });
    const own = judge.infos.get(made);
    const written = () => given.map((one) => judge.encode(one));
    const forms = stringify(recipe[2]).includes('["N",') ? undefined : written(); // as they are now
    own.make = () => {
      this.freeze([]);
      const real = judge.infos.get(judge.conclude(judge.request('new', [info.id, null, ...(forms ?? written())], cx)));
      if (real === undefined) throw judge.refuse(`object:${cx.trail}`, `${cx.trail} is an object in the reference`);
      this.live.delete(real);
      this.live.add(own);
      judge.meet(real.id, made);
      return own.id;
    };
    return made;
  }

  // How another host could make the same, as far as that needs no more than plain values; and
  // whether it would be the same still.
  recipeOf(info, given) {
    const { judge } = this;
    if (info.path === undefined || judge.surroundings.replaced.size > 0 || judge.questions === undefined) return [];
    const recipe = { isWhole: true };
    const forms = given.map((one) => judge.encode(one, { recipe }));
    return /\["([RJthPyB]|Error)",/.test(stringify(forms)) ? [] : [['N', info.path, forms], recipe.isWhole];
  }

  // What the host is told next must not change what came before: instances are copied. Gives what
  // the call is about, which it may change.
  freeze(things) {
    const isUnmade = (info) => info.make !== undefined && info.id === undefined;
    for (const info of this.live) info.fields ??= this.judge.fieldsOf(info);
    const touched = new Set(things.map((thing) => this.judge.infos.get(thing)).filter((info) => info?.kind === 'o'));
    return [...touched].filter((info) => this.live.has(info) || isUnmade(info)).length > 1 ? undefined : touched;
  }

  thaw(touched) {
    for (const info of touched ? this.live : []) {
      for (let at = info; at !== undefined; at = at.from) if (touched.has(at) && at.path === undefined) info.fields = undefined;
    }
  }

  // The fields of an instance, which is asked another host for as long as it need not be made in this.
  fieldsOf(info) {
    const { judge } = this;
    const form = info.id === undefined ? judge.questions.forms(info.recipe).real : undefined;
    if (form === null) throw new assert.AssertionError({ message: `${info.name} cannot be made`, operator: 'boundary' });
    if (form !== undefined && !/\["f",/.test(stringify(form))) return form;
    judge.idOf(info); // functions are the same in one host only
    return info.fields ?? judge.fieldsOf(info);
  }

  // A value in which instances are copies; `found` gets these.
  still(value, side) {
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || types.isNativeError(value)) return value;
    const { judge } = this;
    const { copies, found } = side;
    if (copies.has(value)) return copies.get(value);
    const info = judge.infos.get(value);
    if (info !== undefined) {
      found.add(info);
      judge.demand(info, 'equal', `${judge.trailsOf(info)[0]} is not compared in the reference`);
      const copy = judge.decode(this.fieldsOf(info), { bare: side.functions });
      copies.set(value, copy);
      const prototype = getPrototypeOf(value);
      return setPrototypeOf(copy, judge.infos.has(prototype) ? this.plainOf([prototype], getPrototypeOf(copy)) : prototype);
    }
    const own = judge.inert.get(value) ?? value;
    const copy = isArray(own) ? [] : own instanceof Map ? new Map() : own instanceof Set ? new Set() : create(getPrototypeOf(own));
    copies.set(value, copy);
    let differs = own !== value;
    const next = (item) => {
      const stilled = this.still(item, side);
      differs ||= stilled !== item;
      return stilled;
    };
    if (isArray(own)) copy.length = own.length;
    if (copy instanceof Map) apply(Map.prototype.forEach, own, [(item, key) => copy.set(next(key), next(item))]);
    if (copy instanceof Set) apply(Set.prototype.forEach, own, [(item) => copy.add(next(item))]);
    for (const key of ownKeys(own)) {
      const { enumerable, value: item } = getOwnPropertyDescriptor(own, key);
      if (enumerable) put(copy, key, next(item));
    }
    if (!differs) copies.set(value, value);
    return differs ? copy : value;
  }

  // The prototype of copies: below a proxy, V8 takes an array for an object.
  plainOf(classes, base) {
    return classes.reduceRight((above, name) => {
      if (!this.plain.has(above)) this.plain.set(above, new Map());
      const below = this.plain.get(above);
      const shown = { name: this.judge.infos.get(name)?.name ?? name };
      if (!below.has(name)) below.set(name, create(above, { constructor: { value: shown } }));
      return below.get(name);
    }, base);
  }

  // Whether fields tell instances apart: of the near misses of what the test made, no more may be
  // equal to it than were for the reference.
  tellApart(sides, original) {
    const { judge } = this;
    const test = judge.current();
    const isEqual = (...both) => {
      try {
        return original(...both) !== false;
      } catch {
        return false;
      }
    };
    const made = sides.find(({ found }) => [...found].every((info) => info.recipe !== undefined));
    for (const info of made?.found ?? sides.flatMap(({ found }) => [...found])) {
      const { real, near } = info.recipe ? judge.questions.forms(info.recipe) : { near: [] };
      const functions = new Map();
      const bare = (form) => judge.decode(form, { bare: functions });
      const alike = near.filter((form) => form !== null && isEqual(bare(real), bare(form)));
      const most = near.length === 0 ? NEAR : Math.round((NEAR * alike.length) / near.length);
      const [trail] = judge.trailsOf(info);
      for (const one of judge.trailsOf(info)) judge.contract.learn('said:equal', one, test, most);
      const allowed = Number(judge.contract.of('said:equal', trail, test) ?? 0);
      if (most > allowed && !judge.loose.has(info.name)) {
        throw judge.refuse(`said:equal:${trail}`, `what ${trail} gives for other arguments is equal to it, too`);
      }
    }
  }

  // A comparison of copies; `negated` if equality makes it fail.
  comparing(original, negated) {
    const comparisons = this;
    const compare = function (actual, expected, ...others) {
      if (arguments.length < 2) return apply(original, this, arguments);
      const functions = new Map();
      const one = { copies: new Map(), found: new Set(), functions };
      const sides = [one, is(actual, expected) ? one : { copies: new Map(), found: new Set(), functions }];
      const still = [actual, expected].map((value, at) => comparisons.still(value, sides[at]));
      const told = apply(original, this, [...still, ...others]);
      if (!negated && told !== false && sides.every(({ found }) => found.size > 0)) comparisons.tellApart(sides, original);
      return told;
    };
    return labelled(compare, original.name, original.length);
  }

  guard() {
    const made = new Map();
    for (const api of [assert, assert.strict, require('node:util')]) {
      for (const name of COMPARISONS.filter((one) => typeof api[one] === 'function')) {
        if (!made.has(api[name])) made.set(api[name], this.comparing(api[name], name.startsWith('not')));
        api[name] = made.get(api[name]);
      }
    }
    require('node:module').syncBuiltinESMExports();
  }
}

module.exports = { Comparisons };
