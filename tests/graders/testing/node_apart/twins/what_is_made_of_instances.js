class Point { constructor(x, y) { this.x = x; this.y = y; } }
exports.Point = Point;
exports.Line = class Line { constructor(a, b) { this.a = a; this.b = b; } flip() { return new exports.Line(this.b, this.a); } };
// ---- submission
class Point { constructor(x, y) { this.x = x; this.y = y; } }
exports.Point = Point;
exports.Line = class Line { constructor(a, b) { this.b = b; this.a = a; this.ends = [a, b]; } flip() { return new exports.Line(this.b, this.a); } };
// ---- tests
const { Point, Line } = require('./kit.js');
test('flip', () => assert.deepStrictEqual(new Line(new Point(0, 0), new Point(1, 2)).flip(), new Line(new Point(1, 2), new Point(0, 0))));
test('used', () => { const line = new Line(new Point(1, 2), new Point(3, 4)); assert.strictEqual(line.a.x, 1); assert.deepStrictEqual(line, new Line(new Point(1, 2), new Point(3, 4))); });
