// What the author's reference was seen to need, by test. It is written down while the reference is
// proven; a submission gets what stands there, and nothing else.
'use strict';

// Entries that end in something of their own: a number, or a class.
const VALUED = /^((?:said|class):.*):([^:]*)$/s;

class Contract {
  constructor({ seed = '', needs = {}, learns = false } = {}, tell = () => {}) {
    this.seed = seed;
    this.learns = learns;
    this.tell = tell;
    const split = (entry) => VALUED.exec(entry)?.slice(1) ?? [entry, ''];
    this.known = new Map(Object.entries(needs).map(([test, entries]) => [test, new Map(entries.map(split))]));
  }

  // What an entry of a test ends in; undefined if it does not stand there.
  of(entry, test) {
    return this.known.get(test)?.get(entry);
  }

  // Whether an entry stands there; it is written down while the reference is proven.
  permits(entry, test, value = '') {
    const known = this.of(entry, test);
    if (!this.learns) return known !== undefined;
    if (known === undefined || value > known) {
      if (!this.known.has(test)) this.known.set(test, new Map());
      this.known.get(test).set(entry, value);
      this.tell(test, value === '' ? entry : `${entry}:${value}`);
    }
    return true;
  }
}

module.exports = { Contract };
