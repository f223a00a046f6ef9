class Counter { constructor() { this.n = 0; } up() { this.n += 1; return this; } get value() { return this.n; } }
exports.counter = () => new Counter();
// ---- submission
exports.counter = () => { let n = 0; const own = { up: () => { n += 1; return own; }, get value() { return n; } }; return own; };
// ---- tests
const { counter } = require('./kit.js');
test('counts', () => { const c = counter(); c.up().up(); assert.strictEqual(c.value, 2); c.up(); assert.strictEqual(c.value, 3); });
