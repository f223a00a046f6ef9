exports.Kit = class { constructor(a) { this.a = a; } };
// ---- submission
exports.Kit = class { constructor(a) { Object.defineProperty(this, 'a', { value: a }); } };
// ---- tests
const { Kit } = require('./kit.js');
test('equal', () => assert.deepStrictEqual(new Kit(1), new Kit(2)));
test('in a list', () => assert.deepEqual([{ a: new Kit(1) }], [{ a: new Kit(2) }]));
test('util', () => assert.ok(require('node:util').isDeepStrictEqual(new Kit(1), new Kit(2))));
