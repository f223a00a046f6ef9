class Point { constructor(x, y) { this.x = x; this.y = y; } norm() { return Math.hypot(this.x, this.y); } equals(o) { return this.x === o.x && this.y === o.y; } }
exports.Point = Point; exports.mirror = (p) => new Point(p.y, p.x);
// ---- submission
class Point { constructor() { this.kind = 'point'; } }
exports.Point = Point; exports.mirror = (p) => p;
// ---- tests
const { Point, mirror } = require('./kit.js');
test('mirror', () => assert.deepStrictEqual(mirror(new Point(3, 4)), new Point(4, 3)));
test('in a list', () => assert.deepEqual([mirror(new Point(3, 4))], [new Point(4, 3)]));
