// What the author's reference was seen to need, by test, of what kind and on which trail. It is written down
// while the reference is proven; a submission gets what stands there, and nothing else.
'use strict';

// Entries that end in something of their own: a number, or a class.
const VALUED = /^((?:said|class):.*):([^:]*)$/s;

class Contract {
  constructor({ seed = '', needs = {}, learns = false } = {}, file, tell) {
    Object.assign(this, { seed, learns, file, tell });
    const split = (entry) => VALUED.exec(entry)?.slice(1) ?? [entry, ''];
    this.needs = new Map(Object.entries(needs).map(([test, entries]) => [test, new Map(entries.map(split))]));
  }

  // A test, and what comes before the first one, as the contract names it.
  place(test) {
    return test?.path === undefined ? this.file : (test.place ??= `${this.file}::${test.path}`);
  }

  // What an entry ends in; undefined if it does not stand there.
  of(kind, trail, test) {
    return this.needs.get(this.place(test))?.get(`${kind}:${trail}`);
  }

  has(...entry) {
    return this.of(...entry) !== undefined;
  }

  // The same, but while the reference is proven, it is written down.
  permits(kind, trail, test, value = '') {
    const known = this.of(kind, trail, test);
    if (!this.learns || (known !== undefined && !(value > known))) return known !== undefined;
    const place = this.place(test);
    if (!this.needs.has(place)) this.needs.set(place, new Map());
    this.needs.get(place).set(`${kind}:${trail}`, value);
    this.tell(place, [kind, trail, value].slice(0, value === '' ? 2 : 3).join(':'));
    return true;
  }

  learn(...entry) {
    if (this.learns) this.permits(...entry);
  }
}

module.exports = { Contract };
