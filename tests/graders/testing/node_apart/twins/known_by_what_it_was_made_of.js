exports.Stack = class Stack { constructor(items) { this.items = items; } all() { return this.items; } grown() { return new exports.Stack([...this.items, 1]); } };
// ---- submission
exports.Stack = class Stack { constructor(list) { this.list = list; } all() { return this.list; } grown() { return new Stack(this.list.concat(1)); } };
// ---- tests
const { Stack } = require('./kit.js');
test('same', () => {
  const list = [0]; const own = new Stack(list);
  assert.deepStrictEqual(own.grown(), new Stack([0, 1])); assert.strictEqual(own.all(), list);
  const other = [0, 1]; const want = new Stack(other);
  assert.deepStrictEqual(own.grown(), want); assert.strictEqual(want.all(), other); assert.strictEqual(own.all(), list);
});
