exports.clone = (value) => structuredClone(value);
// ---- submission
exports.clone = (value) => value;
// ---- tests
test('clone', () => { const a = { b: [1] }; const b = require('./kit.js').clone(a); assert.deepStrictEqual(a, b); assert.notStrictEqual(a, b); });
