exports.Even = class Even { constructor(n) { if (n % 2) throw new RangeError('odd'); this.n = n; } half() { return new Even(this.n / 2); } };
// ---- submission
exports.Even = class Even { constructor(n) { this.pairs = Number.isInteger(n / 2) ? n / 2 : Even.bad(n); } half() { return new Even(this.pairs); } static bad() { throw new RangeError('is odd'); } };
// ---- tests
const { Even } = require('./kit.js');
test('odd', () => { assert.throws(() => new Even(3), /odd/); assert.deepStrictEqual(new Even(8).half(), new Even(4)); });
