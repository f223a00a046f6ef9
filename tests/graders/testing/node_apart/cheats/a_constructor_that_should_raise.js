exports.Even = class Even { constructor(n) { if (n % 2) throw new RangeError('odd'); this.n = n; } };
// ---- submission
exports.Even = class Even { constructor(n) { this.n = n; } };
// ---- tests
const { Even } = require('./kit.js');
test('odd', () => { assert.throws(() => new Even(3), RangeError); });
