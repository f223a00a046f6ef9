exports.sorted = (list) => [...list].sort((a, b) => a - b);
// ---- submission
exports.sorted = (list) => list.sort((a, b) => a - b);
// ---- tests
const { sorted } = require('./kit.js');
test('sorted', () => { const list = [3, 1, 2]; assert.deepStrictEqual(sorted(list), [1, 2, 3]); assert.strictEqual(list.length, 3); });
