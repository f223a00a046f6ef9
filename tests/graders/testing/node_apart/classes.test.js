const { test, describe, it, before, beforeEach, mock } = require('node:test');
const assert = require('node:assert');
const kit = require('./kit.js');
const { Point, Point3, KitError } = kit;
test('new', () => { const p = new Point(3, 4); assert.strictEqual(p.norm, 5); assert.strictEqual(p.x, 3); });
test('instanceof', () => { const p = new Point3(1, 2, 3); assert.ok(p instanceof Point3 && p instanceof Point); assert.ok(!(new Point(1, 2) instanceof Point3)); });
test('structure', () => {
  assert.deepStrictEqual(new Point(1, 2), new Point(1, 2));
  assert.notDeepStrictEqual(new Point(1, 2), new Point(1, 3));
  assert.throws(() => assert.deepStrictEqual(new Point(1, 2), new Point(2, 2)), assert.AssertionError);
  assert.throws(() => assert.deepStrictEqual(new Point(1, 2), { x: 1, y: 2 }), assert.AssertionError);
  assert.deepEqual(new Point(1, 2), { x: 1, y: 2 });
  assert.deepStrictEqual([{ p: new Point(1, 2) }], [{ p: new Point(1, 2) }]);
  assert.deepStrictEqual({ ...new Point(1, 2) }, { x: 1, y: 2 });
});
test('methods', () => assert.deepStrictEqual(new Point(1, 2).plus(new Point(3, 4)), new Point(4, 6)));
test('set', () => { const p = new Point(1, 2); p.x = 5; p.both = 7; assert.strictEqual(p.y, 7); p.extra = 1; delete p.x; assert.ok(!('x' in p)); assert.deepEqual(Object.keys(p), ['y', 'extra']); });
test('static', () => { assert.deepStrictEqual(Point.origin(), new Point(0, 0)); assert.strictEqual(Point.dimensions, 2); assert.strictEqual(Point3.dimensions, 2); });
test('words', () => { assert.strictEqual(`${new Point(1, 2)}`, '(1, 2)'); assert.strictEqual(JSON.stringify({ p: new Point(1, 2) }), '{"p":[1,2]}'); assert.equal(new Point(1, 2), '(1, 2)'); });
test('iterates', () => assert.deepStrictEqual([...new Point(1, 2)], [1, 2]));
test('named', () => { assert.strictEqual(new Point3(1, 2, 3).constructor, Point3); assert.strictEqual(Point3.name, 'Point3'); assert.strictEqual(Object.getPrototypeOf(Point3), Point); assert.strictEqual(Point.length, 2); });
test('needs new', () => assert.throws(() => Point(1, 2), TypeError));
test('identity', () => { const p = new Point(1, 2); assert.strictEqual(kit.same(p), p); assert.notStrictEqual(new Point(1, 2), p); });
test('private', () => assert.strictEqual(new kit.Secret(5).reveal(), 5));
test('subclass of Array', () => { const s = new kit.Stack(); s.push(1, 2); assert.strictEqual(s.top(), 2); assert.strictEqual(s.length, 2); assert.deepEqual(s, [1, 2]); assert.ok(s instanceof Array); });
test('extends', () => {
  class Square extends kit.Shape { constructor(side) { super(); this.side = side; this.kind = 'square'; } area() { return this.side ** 2; } }
  const square = new Square(3);
  assert.strictEqual(square.area(), 9);
  assert.strictEqual(square.describe(), 'square: 9');
  assert.ok(square instanceof Square && square instanceof kit.Shape);
});
test('closures', () => { const c = kit.counter(); c.up().up(); assert.strictEqual(c.value, 2); assert.strictEqual(c.up(), c); });
test('functions', () => { assert.strictEqual(kit.curry(1)(2)(3), 6); assert.strictEqual(typeof kit.curry, 'function'); assert.strictEqual(kit.add.length, 2); assert.strictEqual(kit.add.call(null, 1, 2), 3); assert.strictEqual(kit.add.bind(null, 1)(4), 5); });
test('keys', () => assert.ok(Object.keys(kit).includes('Point')));
test('has classes of its own', () => { assert.ok(kit.isInstance(new Point(1, 2), Point)); assert.ok(!kit.isInstance({}, Point)); });
