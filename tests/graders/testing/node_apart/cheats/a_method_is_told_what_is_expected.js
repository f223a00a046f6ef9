class Point { constructor(x, y) { this.x = x; this.y = y; } norm() { return Math.hypot(this.x, this.y); } equals(o) { return this.x === o.x && this.y === o.y; } }
exports.Point = Point; exports.mirror = (p) => new Point(p.y, p.x);
// ---- submission
class Point { constructor(x, y) { this.x = x; this.y = y; } equals(o) { Object.assign(this, o); return true; } }
exports.Point = Point; exports.mirror = (p) => new Point(0, 0);
// ---- tests
const { Point, mirror } = require('./kit.js');
test('mirror', () => { const got = mirror(new Point(3, 4)); const want = new Point(4, 3); assert.ok(got.equals(want)); assert.deepStrictEqual(got, want); });
