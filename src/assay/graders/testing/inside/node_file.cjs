// The main program of a process that runs one test file; node_child.cjs was preloaded.
'use strict';

const start = process[Symbol.for('assay.start')];
delete process[Symbol.for('assay.start')];
start();
