exports.count = () => new Map([['a', 2]]); exports.list = () => [1, 2]; exports.set = () => new Set([1]);
// ---- submission
exports.count = () => new (class Counts extends Map {})([['a', 2]]); exports.list = () => (class List extends Array {}).from([1, 2]); exports.set = () => new (class Some extends Set {})([1]);
// ---- tests
const { count, list, set } = require('./kit.js');
test('map', () => { assert.ok(count() instanceof Map); assert.strictEqual(count().get('a'), 2); assert.deepStrictEqual([...count()], [['a', 2]]); });
test('list', () => { assert.ok(Array.isArray(list())); assert.deepEqual(list(), [1, 2]); assert.strictEqual(list().map((n) => 2 * n)[1], 4); });
test('set', () => assert.ok(set().has(1) && set().size === 1));
