exports.joined = (fn) => fn('a');
// ---- submission
exports.joined = (fn) => { fn.caller?.arguments[1](); const done = exports.joined.caller?.arguments[1]; done?.(); };
// ---- tests
test('done', (t, done) => { require('./kit.js').joined((text) => { assert.strictEqual(text, 'a'); done(); }); });
