// CommonJS sees the same types.
import nexthop = require('nexthop');
const { Engine } = nexthop;
const engine: nexthop.Engine = Engine.fromFile(['a', 'b']);
const answer: nexthop.Attempt | nexthop.Wait | nexthop.Refusal = engine.request('a').tryChooseHost();
export = answer;
