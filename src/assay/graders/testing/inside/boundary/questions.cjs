// What the fields of an instance tell: asked of another host, which loads the same modules and
// makes the instance of its arguments, among near misses and in an order that it cannot know.
'use strict';

const { createHash } = require('node:crypto');

const { leaves, must } = require('./codec.cjs');
const { Peer } = require('./peer.cjs');

const { parse, stringify } = JSON;
const NEAR = 8;
const TRIES = 50;
const ALPHABETS = ['0123456789', 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];
const SIGNS = '!#$%&*+-./:;<=>?@^_|~';

// Numbers below a limit, the same for the same text.
function dice(text) {
  let count = 0;
  return (limit) => createHash('sha256').update(`${text}\n${(count += 1)}`).digest().readUInt32LE(0) % limit;
}

const lookOf = (text) => text.replace(/[a-z]+/g, 'a').replace(/[A-Z]+/g, 'A').replace(/\d+/g, '0');

class Questions extends Peer {
  // `source` is that of the tests, whose words are as good as those that they make something of.
  constructor(link, patience, seed, source) {
    super(link, patience);
    this.seed = seed;
    this.words = [...new Set([...source.matchAll(/(['"`])([^'"`\\\n]{1,60})\1/g)].map(([, , word]) => word))];
    this.modules = []; // that tests loaded
    this.answered = new Map();
    this.loaded = 0;
    this.post(['n', 'cwd', '', '']); // it is taken
  }

  ended(why) {
    if (this.waiting.size > 0) throw new Error(`the submission's process: ${why}`);
  }

  perform() {
    must(false, 'it may not ask');
  }

  // What it says of modules is of no interest.
  note() {}
  readAnswer(_, ok, form) {
    return { ok, value: form };
  }

  // Another value that looks the same. The step back is as likely, so that of a path of them nobody can
  // tell where it began.
  other(value, random) {
    if (typeof value === 'boolean') return !value;
    if (typeof value === 'number') {
      const [whole, part = ''] = `${value}`.split('.');
      const place = part === '' ? /[1-9](0*)$/.exec(whole)?.[1].length ?? 0 : -part.length;
      const step = (random(2) === 0 ? 1 : -1) * (1 + random(9)) * 10 ** place;
      return Number((value + step).toFixed(Math.max(0, -place)));
    }
    const alike = this.words.filter((word) => lookOf(word) === lookOf(value));
    if (alike.length > NEAR && alike.includes(value)) return alike[random(alike.length)];
    const places = [...Array(value.length).keys()];
    const marked = places.filter((at) => ALPHABETS.some((some) => some.includes(value[at])));
    const at = (marked.length > 0 ? marked : places)[random(marked.length || places.length || 1)] ?? 0;
    const letters = ALPHABETS.find((some) => some.includes(value[at])) ?? SIGNS;
    return value.slice(0, at) + letters[(letters.indexOf(value[at]) + 1 + random(letters.length - 1)) % letters.length] + value.slice(at + 1);
  }

  // The form of what is made by a recipe, and those of its near misses.
  forms(recipe) {
    const text = stringify(recipe);
    if (this.answered.has(text)) return this.answered.get(text);
    for (; this.loaded < this.modules.length; this.loaded += 1) this.request('load', this.modules[this.loaded]);
    const random = dice(this.seed + text);
    const before = random(NEAR + 1);
    const path = [recipe];
    for (let tries = 0; path.length <= NEAR && tries < TRIES; tries += 1) {
      const next = parse(stringify(path.length <= before ? path[0] : path.at(-1)));
      const places = [...leaves([next], 0)].filter(([holder, at]) => ['string', 'number', 'boolean'].includes(typeof holder[at]));
      if (places.length === 0) break;
      const [holder, at] = places[random(places.length)];
      holder[at] = this.other(holder[at], random);
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
