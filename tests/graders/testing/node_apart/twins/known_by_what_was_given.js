const known = []; exports.wrap = (object) => { let found = known.find((one) => one.object === object); if (!found) known.push((found = { object, wrapper: { get: () => object } })); return found.wrapper; };
// ---- submission
const known = new WeakMap(); exports.wrap = (object) => { if (!known.has(object)) known.set(object, { get: () => object }); return known.get(object); };
// ---- tests
const { wrap } = require('./kit.js');
test('wrap', () => { const one = { a: 1 }, other = { a: 1 }; assert.equal(wrap(one).get().a, 1); assert.strictEqual(wrap(one), wrap(one)); assert.notStrictEqual(wrap(one), wrap(other)); });
