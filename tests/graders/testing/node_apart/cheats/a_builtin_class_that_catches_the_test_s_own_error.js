class Stop extends TypeError {}
exports.Stop = Stop; exports.stop = () => { throw new Stop(); }; exports.find = () => ({ name: 'a' });
// ---- submission
exports.Stop = TypeError; exports.stop = () => {}; exports.find = () => null;
// ---- tests
const { Stop, stop, find } = require('./kit.js');
test('stops', () => assert.throws(() => { stop(); find().name; }, Stop));
