// What the author's reference was seen to need, by test, of what kind and on which trail. It is written down
// while the reference is proven; a submission gets what stands there, and nothing else.
'use strict';

// Entries that end in something of their own: a number, or a class.
const VALUED = /^((?:said|class):.*):([^:]*)$/s;

class Contract {
  constructor({ seed = '', needs = {}, learns = false } = {}, file, tell = () => {}) {
    Object.assign(this, { seed, learns, file, tell });
    const split = (entry) => VALUED.exec(entry)?.slice(1) ?? [entry, ''];
    this.known = new Map(Object.entries(needs).map(([test, entries]) => [test, new Map(entries.map(split))]));
  }

  // What is known of a test; of what comes before the first one, by the name of the file.
  entries(test) {
    const place = test?.path === undefined ? this.file : `${this.file}::${test.path}`;
    if (!this.known.has(place)) this.known.set(place, new Map());
    return { place, known: this.known.get(place) };
  }

  // What an entry ends in; undefined if it does not stand there.
  of(kind, trail, test) {
    return this.entries(test).known.get(`${kind}:${trail}`);
  }

  // All trails that have an entry of a kind.
  trails(kind, test) {
    return [...this.entries(test).known.keys()].filter((entry) => entry.startsWith(`${kind}:`)).map((entry) => entry.slice(kind.length + 1));
  }

  has(kind, trail, test) {
    return this.of(kind, trail, test) !== undefined;
  }

  // The same, but while the reference is proven, it is written down.
  permits(kind, trail, test, value = '') {
    if (!this.learns) return this.has(kind, trail, test);
    const { place, known } = this.entries(test);
    const entry = `${kind}:${trail}`;
    if (known.has(entry) && !(value > known.get(entry))) return true;
    known.set(entry, value);
    this.tell(place, value === '' ? entry : `${entry}:${value}`);
    return true;
  }

  learn(...entry) {
    if (this.learns) this.permits(...entry);
  }
}

module.exports = { Contract };
