// What the fields of an instance tell: asked of another host, which loads the same modules and
// makes the instance of its arguments, among near misses and in an order that it cannot know.
'use strict';

const { createHash } = require('node:crypto');

const { leaves, must } = require('./codec.cjs');
const { Peer } = require('./peer.cjs');

const { parse, stringify } = JSON;
const NEAR = 8;

// Numbers below a limit, the same for the same text.
function dice(text) {
  let count = 0;
  return (limit) => createHash('sha256').update(`${text}\n${(count += 1)}`).digest().readUInt32LE(0) % limit;
}

const ALPHABETS = ['0123456789', 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];

function other(value, words, random) {
  const alike = [...words].filter((word) => typeof word === typeof value && word !== value);
  if (alike.length > 0 && random(2) === 0) return alike[random(alike.length)];
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'number') return value + (random(2) === 0 ? 1 : -1) * (1 + random(9)) * (Number.isInteger(value) ? 1 : 0.37);
  if (value === '') return 'a';
  const at = random(value.length);
  const letters = ALPHABETS.find((some) => some.includes(value[at])) ?? ALPHABETS[1];
  return value.slice(0, at) + letters[(letters.indexOf(value[at]) + 1 + random(letters.length - 1)) % letters.length] + value.slice(at + 1);
}

class Questions extends Peer {
  constructor(link, patience, seed) {
    super(link, patience);
    this.seed = seed;
    this.words = new Set(); // plain data of which tests made something
    this.answered = new Map();
    this.modules = []; // that were loaded
    this.loaded = 0;
    this.post(['n', 'cwd', '', '']); // it is taken
  }

  ended(why) {
    if (this.waiting.size > 0) throw new Error(`the submission's process: ${why}`);
  }

  perform() {
    must(false, 'it may not ask');
  }

  note() {}

  readAnswer(_, ok, form) {
    return { ok, value: form };
  }

  // The places in a recipe that can be changed.
  places(recipe) {
    return [...leaves([recipe], 0)].filter(([holder, at]) => ['string', 'number', 'boolean'].includes(typeof holder[at]));
  }

  // The form of what is made by a recipe, and those of its near misses.
  forms(recipe) {
    const text = stringify(recipe);
    if (this.answered.has(text)) return this.answered.get(text);
    for (; this.loaded < this.modules.length; this.loaded += 1) this.request('load', this.modules[this.loaded]);
    const random = dice(this.seed + text);
    for (const [holder, at] of this.places(recipe)) this.words.add(holder[at]);
    const before = random(NEAR + 1);
    const path = [recipe];
    for (let tries = 0; path.length <= NEAR && tries < 50; tries += 1) {
      const next = parse(stringify(path.length <= before ? path[0] : path.at(-1)));
      const places = this.places(next);
      if (places.length === 0) break;
      const [holder, at] = places[random(places.length)];
      holder[at] = other(holder[at], this.words, random);
      if (path.some((known) => stringify(known) === stringify(next))) continue;
      path[path.length <= before ? 'unshift' : 'push'](next);
    }
    const order = [];
    for (const one of path) order.splice(random(order.length + 1), 0, one);
    const { ok, value } = this.request('made', [null, ...order]);
    must(ok && typeof value === 'string');
    const made = parse(value);
    must(Array.isArray(made) && made.length === order.length);
    const found = { real: made[order.indexOf(recipe)], near: made.filter((_, at) => order[at] !== recipe) };
    this.answered.set(text, found);
    return found;
  }
}

module.exports = { NEAR, Questions };
