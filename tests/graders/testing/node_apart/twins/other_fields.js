class Point { constructor(x, y) { this.x = x; this.y = y; } norm() { return Math.hypot(this.x, this.y); } equals(o) { return this.x === o.x && this.y === o.y; } }
exports.Point = Point; exports.mirror = (p) => new Point(p.y, p.x);
// ---- submission
class Point { constructor(x, y) { this.at = [x, y]; this.made = true; } get x() { return this.at[0]; } norm() { return Math.hypot(...this.at); } }
exports.Point = Point; exports.mirror = (p) => new Point(p.at[1], p.at[0]);
// ---- tests
const { Point, mirror } = require('./kit.js');
test('mirror', () => { assert.deepStrictEqual(mirror(new Point(3, 4)), new Point(4, 3)); assert.notDeepStrictEqual(mirror(new Point(3, 4)), new Point(3, 4)); });
test('used before', () => { const want = new Point(4, 3); assert.strictEqual(want.norm(), 5); assert.deepStrictEqual([mirror(new Point(3, 4))], [want]); assert.strictEqual(want.x, 4); });
