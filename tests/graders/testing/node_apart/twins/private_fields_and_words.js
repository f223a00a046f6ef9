exports.Money = class Money { constructor(n) { this.n = n; } add(o) { return new exports.Money(this.n + o.n); } toString() { return `${this.n} EUR`; } toJSON() { return this.n; } };
// ---- submission
exports.Money = class Money { #n; constructor(n) { this.#n = n; } add(o) { return new Money(this.#n + o.#n); } toString() { return this.#n + ' EUR'; } toJSON() { return this.#n; } };
// ---- tests
const { Money } = require('./kit.js');
test('words', () => { const m = new Money(1).add(new Money(2)); assert.strictEqual(`${m}`, '3 EUR'); assert.strictEqual(JSON.stringify({ m }), '{"m":3}'); });
